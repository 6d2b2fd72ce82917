"""How far the work is: bars on a terminal, a line a finished piece in a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import progress
from rich.console import Console


class Progress:
    """Progress over named pieces of work.

    Parameters
    ----------
    names : sequence of str
        What is to be done.
    known : int
        Pieces that were there already.
    """

    def __init__(self, names: Sequence[str], known: int):
        self._total, self._done = len(names), 0
        self._console = Console(stderr=True, highlight=False)
        self._live = self._console.is_terminal and bool(names)
        if names:
            kept = f", {known} kept from before" if known else ""
            self._console.print(f"{len(names)} pieces of work{kept}", markup=False)
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            console=self._console,
            disable=not self._live,
            transient=True,
        )
        self._task = self._bar.add_task("the paper", total=len(names))
        self._rows: dict[str, progress.TaskID] = {}

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *exc_info) -> None:
        self._bar.stop()

    def show(self, said: Mapping[str, str]) -> None:
        """What the pieces at work say of themselves."""
        if not self._live:
            return
        for name in set(self._rows) - set(said):
            self._bar.remove_task(self._rows.pop(name))
        for name, words in said.items():
            if name not in self._rows:
                self._rows[name] = self._bar.add_task("", total=None)
            self._bar.update(self._rows[name], description=f"  {name}: {words}")

    def finished(self, name: str, seconds: float) -> None:
        """Take note of a piece that is done, ``seconds`` after the beginning."""
        self._done += 1
        self._bar.update(self._task, completed=self._done)
        if not self._live:
            self._console.print(f"{self._done} of {self._total}: {name} ({seconds:.0f} s)", markup=False)
