"""``swizzle-sim explore``: a local page on which a swizzle is typed and its verdict, map and score are seen at once.

The way of a change: page -> `State` -> `desk` (the newest wins) -> `worker` (a process that can be stopped) ->
`evaluate` -> `show` -> page. Only `layout`, `show` and `app` know Dash, an extra.
"""
