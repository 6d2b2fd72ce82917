"""The line on stderr that says how far a capture is."""

from __future__ import annotations

import sys


class CaptureProgress:
    """Context that is called as ``progress(kernel, done, total)``; prints only where stderr is a terminal."""

    def __enter__(self) -> CaptureProgress:
        self.live, self.wide = sys.stderr.isatty(), 0
        return self

    def __call__(self, name: str, done: int, total: int) -> None:
        """Say how far it is."""
        if self.live:
            text = f"\rcapturing {name}: {done} of {total} workgroups"
            self.wide = max(self.wide, len(text))
            print(text, file=sys.stderr, end="", flush=True)

    def __exit__(self, *exc_info) -> None:
        if self.wide:
            print("\r" + " " * self.wide + "\r", file=sys.stderr, end="", flush=True)
