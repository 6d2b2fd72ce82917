"""How far something is, on stderr: one line written over and over on a terminal, and now and then a line in a log."""

from __future__ import annotations

import os
import sys
import time

LOG_EVERY_S = 10.0


class ProgressLine:
    """Context that is called with a text.

    A log is what is no terminal, or a terminal that cannot go back to the beginning of a line (``TERM=dumb``).
    """

    def __enter__(self) -> ProgressLine:
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.wide, self.said = 0, time.monotonic()
        return self

    def __call__(self, text: str) -> None:
        """Say how far it is."""
        if self.live:
            print("\r" + text.ljust(self.wide), file=sys.stderr, end="", flush=True)
            self.wide = max(self.wide, len(text))
        elif time.monotonic() - self.said >= LOG_EVERY_S:
            print(text, file=sys.stderr, flush=True)
            self.said = time.monotonic()

    def __exit__(self, *exc_info) -> None:
        if self.live and self.wide:
            print("\r" + " " * self.wide + "\r", file=sys.stderr, end="", flush=True)
