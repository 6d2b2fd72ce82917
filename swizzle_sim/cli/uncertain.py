"""How ranges over plausible constants are printed, and the bar while they are worked out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swizzle_sim.uncertainty import Span, Uncertainty

COLUMNS = ("as it is", "low", "high", "moved most by", "to, alone")
WORDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "l2_hit_rate": ("L2 hit rate [%]", lambda value: f"{100 * value:.2f}"),
    "mall_hit_rate": ("Infinity Cache hit rate [%]", lambda value: f"{100 * value:.2f}"),
    "l2_misses": ("L2 misses [M]", lambda value: f"{value / 1e6:.3f}"),
    "hbm_bytes": ("HBM [GB]", lambda value: f"{value / 1e9:.3f}"),
    "time_us": ("time [µs]", lambda value: f"{value:.1f}"),
}
PAIRED: dict[str, tuple[str, Callable[[float], str]]] = {
    "l2_hit_rate": ("L2 hit rate gained [points]", lambda value: f"{100 * value:+.2f}"),
    "hbm_bytes": ("HBM bytes, over as launched", lambda value: f"{value:.3f}"),
    "speedup": ("speedup", lambda value: f"{value:.3f}"),
}


def print_uncertainty(found: Uncertainty, name: str, replay: str) -> None:
    """Print the ranges of a candidate, and of its difference from the order as launched."""
    from swizzle_sim.cli.output import console, table

    rows = [_row(*WORDS[key], span) for key, span in found.candidate.items() if span.value is not None]
    rows += [_row(*PAIRED[key], span) for key, span in found.difference.items() if span.value is not None]
    note = (
        f"simulated, {replay} replay; {len(found.effects)} constants, each alone at its ends and all together in "
        f"{found.draws} draws, {found.replays} replays; the last rows take the same constants for both orders"
    )
    table(f"{name}, over the plausible constants", ("", *COLUMNS), rows, note=note)
    ahead, draws = found.ahead
    console(wide=True).print(f"L2 hit rate above the order as launched in {ahead} of {draws} draws", markup=False)


def _row(words: str, figure: Callable[[float], str], span: Span) -> list[str]:
    cells = ["-" if value is None else figure(value) for value in (span.value, span.low, span.high)]
    if span.moved_low is None or span.moved_high is None or span.value is None:
        return [words, *cells, "nothing", ""]
    far = max(span.moved_low, span.moved_high, key=lambda value: abs(value - (span.value or 0.0)))
    return [words, *cells, span.moved_by, figure(far)]


class Draws:
    """A bar on a terminal, one line in a log."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.console = Console(stderr=True, highlight=False)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=self.console, disable=not self.console.is_terminal)
        self.task = self.bar.add_task("replaying under other constants", total=None)
        self.told = self.console.is_terminal

    def __enter__(self) -> Draws:
        self.bar.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.bar.stop()

    def advance(self, done: int, total: int) -> None:
        """Take note of one draw."""
        self.bar.update(self.task, completed=done, total=total)
        if not self.told:
            self.console.print(f"replaying two orders under {total} sets of constants ...", markup=False)
            self.told = True
