"""``swizzle-sim explore``: a local page on which a swizzle is typed and its verdict, map and score follow at once.

Path of a change: page -> `State` -> `request_queue` (superseded requests are dropped; a process that
can be stopped) -> `evaluate` -> `show` -> page. Only `layout`, `show` and `app` know Dash, an extra.
"""
