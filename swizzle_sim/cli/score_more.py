"""What ``score`` tells of one order on request, and of the remap that a user's kernel holds already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swizzle_sim.cli.arguments import Lengths

if TYPE_CHECKING:
    import numpy as np

    from swizzle_sim.capture.own_remap import OwnRemap
    from swizzle_sim.language import Swizzle
    from swizzle_sim.pricing.scores import Score
    from swizzle_sim.pricing.scoring import Scorer, Spread
    from swizzle_sim.search.draws import OverDraws
    from swizzle_sim.uncertainty import Span, Uncertainty
    from xcd_model import Traffic

OF_ONE = "Of one order"
Seeds = Annotated[
    int,
    typer.Option(
        "--seeds",
        min=1,
        max=10_000,
        help="Seeds to try; prints mean and spread.",
        rich_help_panel=OF_ONE,
    ),
]
Plots = Annotated[
    Path | None,
    typer.Option(
        "--plots", metavar="FOLDER", help="Draw hit rate over time and per XCD there (PNG).", rich_help_panel=OF_ONE
    ),
]
Perfetto = Annotated[
    Path | None,
    typer.Option(
        "--perfetto",
        metavar="FILE",
        help="Write when each workgroup runs, by XCD and CU, for ui.perfetto.dev.",
        rich_help_panel=OF_ONE,
    ),
]
Uncertain = Annotated[
    bool,
    typer.Option(
        "--uncertainty", help="Range of each number over the plausible constants of the model.", rich_help_panel=OF_ONE
    ),
]
Draws = Annotated[
    int | None,
    typer.Option(
        "--draws", min=2, max=10_000, help="Draws of all constants at once, with --uncertainty.", rich_help_panel=OF_ONE
    ),
]

RANGE_COLUMNS = ("as it is", "low", "high", "moved most by", "to, alone")
OF_CANDIDATE: dict[str, tuple[str, Callable[[float], str]]] = {
    "l2_hit_rate": ("L2 hit rate [%]", lambda value: f"{100 * value:.2f}"),
    "mall_hit_rate": ("Infinity Cache hit rate [%]", lambda value: f"{100 * value:.2f}"),
    "l2_misses": ("L2 misses [M]", lambda value: f"{value / 1e6:.3f}"),
    "hbm_bytes": ("HBM [GB]", lambda value: f"{value / 1e9:.3f}"),
    "time_us": ("time [µs]", lambda value: f"{value:.1f}"),
}
OF_DIFFERENCE: dict[str, tuple[str, Callable[[float], str]]] = {
    "l2_hit_rate": ("L2 hit rate gained [points]", lambda value: f"{100 * value:+.2f}"),
    "hbm_bytes": ("HBM bytes, relative to launch order", lambda value: f"{value:.3f}"),
    "speedup": ("speedup", lambda value: f"{value:.3f}"),
}


@dataclass(frozen=True)
class OfOne:
    """What is told of one order on one GPU alone."""

    seeds: Seeds = 1
    lengths: Lengths = 1
    uncertainty: Uncertain = False
    draws: Draws = None
    plots: Plots = None
    perfetto: Perfetto = None


def write_perfetto(path: Path, scorer: Scorer, order: np.ndarray, name: str) -> Path:
    """Write the trace of one timed replay; return its file."""
    from swizzle_sim.base.atomic_write import write_whole
    from swizzle_sim.report.display.perfetto import perfetto_trace

    traffic, spans = scorer.traffic_and_spans(order)
    title = f"{scorer.kernel.name} on {scorer.gpu.title}, {name}"
    write_whole(path, perfetto_trace(spans, order, traffic, scorer.gpu, title).encode())
    return path


def write_plots(folder: Path, name: str, traffics: tuple[Traffic, Traffic], scores: tuple[Score, Score]) -> list[Path]:
    """Write hit rate over time and per XCD of launch order and candidate; return the files.

    Raises
    ------
    RunError
        If the folder cannot be written.
    """
    from swizzle_sim.report.display.picture import png
    from swizzle_sim.report.figures import over_time, per_xcd
    from xcd_model.errors import RunError

    note = f"simulated, {'lockstep' if traffics[0].turns else 'timed'} replay"
    figures = {"over_time.png": over_time(*traffics, name=name), "per_xcd.png": per_xcd(*scores, name=name)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, figure in figures.items():
            (folder / file).write_bytes(png(figure, note=note))
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror})") from None
    return [folder / file for file in figures]


def replayed_ranges(scorer: Scorer, order: np.ndarray, draws: int | None) -> Uncertainty:
    """Replay under other constants, with progress on stderr."""
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.uncertainty import uncertainty
    from swizzle_sim.uncertainty.study import DRAWS

    with Progress("replaying under other constants", "sets of constants") as progress:
        return uncertainty(scorer, order, draws=draws or DRAWS, on_replay=progress)


def of_lengths(scorer: Scorer, candidate: Swizzle, draws: int) -> OverDraws:
    """Scores over draws of the kernel's lengths."""
    from swizzle_sim.search.draws import over_draws

    return over_draws(scorer, candidate, draws)


def print_lengths(over: OverDraws) -> None:
    """Print mean and spread over draws of the kernel's lengths."""

    def said(pair: tuple[float, float], scale: float, digits: int) -> str:
        return f"{scale * pair[0]:.{digits}f} ± {scale * pair[1]:.{digits}f}"

    print(
        f"over {over.draws} draws of the lengths (mean ± standard deviation): L2 hit rate "
        f"{said(over.launch_l2_hit_rate, 100, 2)} % in launch order, {said(over.l2_hit_rate, 100, 2)} % so ordered, "
        f"gain {said(over.gain_points, 1, 2)} points; speedup {said(over.speedup, 1, 3)}, slower on {over.slower} of "
        f"{over.draws}"
    )


def remap_and_score_without(scorer: Scorer) -> tuple[OwnRemap, Score] | None:
    """Remap of a user's kernel, and the score without it."""
    from swizzle_sim.capture.own_remap import own_remap

    found = own_remap(scorer.kernel, scorer.gpu.xcds)
    return (found, scorer.score_order(found.without, baseline_us=scorer.baseline.time_us)) if found else None


def print_own_remap(scorer: Scorer) -> None:
    """Print what a remap is worth that the kernel holds already."""
    from swizzle_sim.cli.output import console

    inside, before = remap_and_score_without(scorer), scorer.baseline
    if inside is None:
        return
    found, without = inside
    console(wide=True).print(
        f"{found}: L2 hit rate {100 * before.l2_hit_rate:.2f} % with it, {100 * without.l2_hit_rate:.2f} % without; "
        f"{before.time_us:.1f} and {without.time_us:.1f} µs. The candidate is stacked on it.",
        markup=False,
    )
    if found.constants:
        given = " ".join(f"{name}={value}" for name, value in found.constants.items())
        console(wide=True).print(f"  in its place: swizzle-sim score {scorer.kernel.file} {given} ...", markup=False)


def print_next(scorer: Scorer) -> None:
    """Print the commands that go on from the launch order: a family that is an order of this kernel, and the search."""
    import shlex
    import sys

    from swizzle_sim.cli.output import console
    from swizzle_sim.search.advice import one_xcd
    from swizzle_sim.search.candidates import shortlist

    if said := one_xcd(scorer.gpu).removeprefix("; "):
        console(wide=True).print(f"  {said}", markup=False)
    words = shlex.join(["swizzle-sim", *sys.argv[1:]])
    first = next(shortlist(scorer.kernel, scorer.gpu), None)
    try_one = [f"{words} --swizzle {shlex.quote(first.name)}"] if first else []
    for command in (*try_one, words.replace(" score ", " optimize ", 1)):
        console(wide=True).print(f"  next: {command}", markup=False)


def print_spread(found: Spread) -> None:
    """Print mean and standard deviation over seeds."""
    from swizzle_sim.cli.output import console

    console(wide=True).print(
        f"over {found.seeds} seeds: L2 hit rate "
        f"{100 * found.l2_hit_rate_mean:.2f} ± {100 * found.l2_hit_rate_std:.2f} %, "
        f"time {found.time_us_mean:.1f} ± {found.time_us_std:.1f} µs (mean and standard deviation)",
        markup=False,
    )


def print_uncertainty(found: Uncertainty, name: str, replay: str) -> None:
    """Print the ranges of a candidate, and of its difference from the launch order."""
    from swizzle_sim.cli.output import console, table

    rows = [_range_row(*OF_CANDIDATE[key], span) for key, span in found.candidate.items() if span.value is not None]
    rows += [_range_row(*OF_DIFFERENCE[key], span) for key, span in found.difference.items() if span.value is not None]
    note = (
        f"simulated, {replay} replay; {len(found.effects)} constants, each alone at its ends and all together in "
        f"{found.draws} draws, {found.replays} replays; the last rows take the same constants for both orders"
    )
    table(f"{name}, over the plausible constants", ("", *RANGE_COLUMNS), rows, left=1, note=note)
    ahead, draws = found.ahead
    console(wide=True).print(f"L2 hit rate above the launch order's in {ahead} of {draws} draws", markup=False)


def _range_row(words: str, figure: Callable[[float], str], span: Span) -> list[str]:
    cells = ["-" if value is None else figure(value) for value in (span.value, span.low, span.high)]
    if span.moved_low is None or span.moved_high is None or span.value is None:
        return [words, *cells, "nothing", ""]
    far = max(span.moved_low, span.moved_high, key=lambda value: abs(value - (span.value or 0.0)))
    return [words, *cells, span.moved_by, figure(far)]
