"""Progress on stderr: a bar on a terminal, from the first count or after two seconds, and a line a minute in a log."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from swizzle_sim.base.text import visible

if TYPE_CHECKING:
    from rich import progress

LOG_FIRST_S, LOG_EVERY_S = 10.0, 60.0
SOON_S = 2.0  # a step without counts that is over by then shows nothing


class Progress:
    """Context that is called with counts: ``with Progress("sweep") as progress: progress(3, 8)``.

    Everything else on stderr counts as a log: a file, a pipe, a terminal that cannot move its cursor (``TERM=dumb``).
    """

    def __init__(self, what: str, unit: str = ""):
        self.what, self.unit = what, unit
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._bar: progress.Progress | None = None  # made by the first count: a cached answer shows none
        self._lock = threading.Lock()  # of the bar, which the timer may make too
        self._later = threading.Timer(SOON_S, self._shown)
        self._later.daemon = True
        self._began_s = self._log_at_s = time.monotonic()
        self._from: int | None = None  # the first count: of a run that goes on much was done before

    def __enter__(self) -> Progress:
        self._began_s = time.monotonic()
        self._log_at_s = self._began_s + LOG_FIRST_S
        if self._live:
            self._later.start()
        return self

    def __call__(self, done: int, total: int | None = None, *, note: str = "", what: str = "") -> None:
        """Count."""
        if self._from is None or (what and visible(what) != self.what):
            self._began_s, self._from = time.monotonic(), done
        self.what, note = visible(what or self.what), visible(note)
        if self._live:
            bar = self._shown()
            bar.update(bar.task_ids[0], description=self.what, completed=done, total=total, note=note)
        elif time.monotonic() >= self._log_at_s:
            of = f" of {total}" if total is not None else ""
            unit = f" {self.unit}" if self.unit else ""
            parts = [f"{self.what}: {done}{of}{unit}", self._left(done, total), note]
            print(", ".join(filter(None, parts)), file=sys.stderr, flush=True)
            self._log_at_s = time.monotonic() + LOG_EVERY_S

    def _left(self, done: int, total: int | None) -> str:
        """How long the rest takes at the pace so far; empty where nobody knows."""
        pace = (done - (self._from or 0)) / max(time.monotonic() - self._began_s, 1e-9)
        if total is None or pace <= 0:
            return ""
        seconds = (total - done) / pace
        return f"{seconds:.0f} s left" if seconds < 90 else f"{seconds / 60:.0f} min left"

    def say(self, line: str) -> None:
        """Print a line that stays: above the bar, or in the log."""
        line = visible(line)
        if self._bar is not None:
            self._bar.console.print(line, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def __exit__(self, *exc_info: object) -> None:
        self._later.cancel()
        if self._live and self._later.is_alive():
            self._later.join()
        if self._bar is not None:
            self._bar.stop()

    def _shown(self) -> progress.Progress:
        with self._lock:
            if self._bar is None:
                self._bar = self._made()
            return self._bar

    def _made(self) -> progress.Progress:
        from rich import progress  # noqa: PLC0415 - slow to import
        from rich.console import Console  # noqa: PLC0415

        bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=24),
            progress.MofNCompleteColumn(),
            progress.TextColumn(self.unit, markup=False),
            progress.TimeRemainingColumn(compact=True),
            progress.TextColumn("{task.fields[note]}", markup=False),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        bar.add_task(self.what, total=None, note="")
        bar.start()
        return bar
