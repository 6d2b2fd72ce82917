"""Progress on stderr: a bar on a terminal, one line every ten seconds in a log, nothing where nothing is counted."""

from __future__ import annotations

import os
import sys
import time

from rich import progress
from rich.console import Console

from swizzle_sim.text import visible

LOG_EVERY_S = 10.0


class Progress:
    """Context that is called with counts: ``with Progress("sweep") as progress: progress(3, 8)``.

    Everything else on stderr counts as a log: a file, a pipe, a terminal that cannot move its cursor (``TERM=dumb``).

    Parameters
    ----------
    what : str
        What is done, such as ``capturing gemm``.
    unit : str
        What is counted, such as ``workgroups``.
    """

    def __init__(self, what: str, unit: str = ""):
        self.what, self.unit = what, unit
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._bar: progress.Progress | None = None  # made by the first count: a cached answer shows none
        self._logged_s = time.monotonic()

    def __enter__(self) -> Progress:
        self._logged_s = time.monotonic()
        return self

    def __call__(self, done: int, total: int | None = None, *, note: str = "", what: str = "") -> None:
        """Count.

        Parameters
        ----------
        done : int
        total : int, optional
            None where it is not known.
        note : str
            Stands behind the count, such as the best figure so far.
        what : str
            A new title, where one display serves several parts of the work.
        """
        self.what, note = visible(what or self.what), visible(note)
        if self._live:
            bar = self._shown()
            bar.update(bar.task_ids[0], description=self.what, completed=done, total=total, note=note)
        elif time.monotonic() - self._logged_s >= LOG_EVERY_S:
            of = f" of {total}" if total is not None else ""
            unit = f" {self.unit}" if self.unit else ""
            print(f"{self.what}: {done}{of}{unit}{', ' + note if note else ''}", file=sys.stderr, flush=True)
            self._logged_s = time.monotonic()

    def say(self, line: str) -> None:
        """Print a line that stays: above the bar, or in the log."""
        line = visible(line)
        if self._bar is not None:
            self._bar.console.print(line, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def __exit__(self, *exc_info: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _shown(self) -> progress.Progress:
        if self._bar is None:
            self._bar = progress.Progress(
                progress.TextColumn("{task.description}", markup=False),
                progress.BarColumn(bar_width=24),
                progress.MofNCompleteColumn(),
                progress.TextColumn(self.unit, markup=False),
                progress.TimeRemainingColumn(compact=True),
                progress.TextColumn("{task.fields[note]}", markup=False),
                console=Console(stderr=True, highlight=False),
                transient=True,
            )
            self._bar.add_task(self.what, total=None, note="")
            self._bar.start()
        return self._bar
