"""``score``: hit rate, traffic and time of one swizzle, next to those of the launch order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli.arguments import Compile, Jitter, Json, Launch, Replay, Seed, SwizzleText, grouped

if TYPE_CHECKING:
    import numpy as np

    from swizzle_sim.access_patterns import Uncoalesced
    from swizzle_sim.advice import Advice
    from swizzle_sim.capture.own_remap import OwnRemap
    from swizzle_sim.price import RemapPrice
    from swizzle_sim.scoring import Score, Scorer, Spread
    from swizzle_sim.swizzle import Swizzle, Verdict
    from swizzle_sim.uncertainty import Span, Uncertainty
    from xcd_model import Traffic

Seeds = Annotated[int, typer.Option("--seeds", min=1, max=10_000, help="Seeds to try; prints mean and spread.")]
Plots = Annotated[
    Path | None, typer.Option("--plots", metavar="FOLDER", help="Draw hit rate over time and per XCD there (PNG).")
]
Uncertain = Annotated[
    bool, typer.Option("--uncertainty", help="Range of each number over the plausible constants of the model.")
]
Draws = Annotated[
    int | None, typer.Option("--draws", min=2, max=10_000, help="Draws of all constants at once, with --uncertainty.")
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
class ReplayOptions:
    """How a launch is replayed."""

    replay: Replay = "timed"
    seed: Seed = 0
    jitter: Jitter = 0.0
    compile: Compile = True


@grouped
def score(
    swizzle: SwizzleText,
    launch: Launch,
    how: ReplayOptions = ReplayOptions(),
    seeds: Seeds = 1,
    uncertainty: Uncertain = False,
    draws: Draws = None,
    plots: Plots = None,
    json: Json = False,
) -> None:
    """Score one swizzle next to the launch order; exit 1, and no score, if it is not a bijection."""
    import numpy as np

    from swizzle_sim.cli.arguments import load_swizzle
    from swizzle_sim.cli.output import cores, print_advice, print_json, print_verdict
    from swizzle_sim.scoring import Scorer, spread
    from xcd_model.errors import ReplayError
    from xcd_model.replay.traffic import traffic_as_dict

    if draws is not None and not uncertainty:
        raise ReplayError("--draws belongs to --uncertainty: add it")
    candidate = load_swizzle(swizzle)
    scorer = Scorer(*launch.load(how.compile), replay=how.replay, seed=how.seed, jitter_ns=how.jitter)
    verdict = scorer.verify(candidate)
    if not verdict.bijective:
        if json:
            print_json(_document(scorer, candidate, verdict))
        else:
            print_verdict(candidate, str(scorer.kernel.grid), scorer.gpu.xcds, verdict)
        raise typer.Exit(1)
    order = scorer.permutation(candidate)
    own, price, not_priced = _priced(scorer, candidate, order) if how.compile else (scorer, None, "--no-compile")
    traffic = own.traffic(order, threads=cores())
    found = replace(own.score_traffic(traffic, baseline_us=scorer.baseline.time_us), price=price)
    over_seeds = spread(scorer, candidate, seeds) if seeds > 1 else None
    name, files = candidate.name or "candidate", []
    advice = _advice(scorer, candidate, verdict, found) if how.replay == "timed" else None
    if plots is not None:
        before = scorer.traffic(np.arange(order.size), threads=cores())
        files = _write_plots(plots, name, (before, traffic), (scorer.baseline, found))
    ranges = _ranges(scorer, order, draws) if uncertainty else None
    if json:
        document = _document(scorer, candidate, verdict) | {"spread": over_seeds and over_seeds.as_dict()}
        document |= {"assigned_bound_l2_hit_rate": scorer.assigned_bound(order), "traffic": traffic_as_dict(traffic)}
        document |= {"baseline": scorer.baseline.as_dict(), "score": found.as_dict(), **_inside_document(scorer)}
        print_json({**document, "advice": advice and advice.as_dict(), "uncertainty": ranges and ranges.as_dict()})
        return
    if advice:
        print_advice(advice)
    _print_scores(scorer, candidate, traffic, found)
    _print_price(scorer, price, not_priced)
    _print_inside(scorer)
    _print_fitted(_fitted(scorer))
    if over_seeds:
        _print_spread(over_seeds)
    if ranges:
        _print_uncertainty(ranges, name, how.replay)
    for file in files:
        print(file)
    print_verdict(candidate, str(scorer.kernel.grid), scorer.gpu.xcds, verdict)


def _advice(scorer: Scorer, candidate: Swizzle, verdict: Verdict, found: Score) -> Advice:
    """Advice on the candidate, by what ranks orders of the GPU."""
    from swizzle_sim.advice import advise
    from swizzle_sim.history import Attempt
    from swizzle_sim.ranking import Ranking, default_objectives

    name = candidate.name or "the candidate"
    one = Attempt(
        number=1, name=name, source=candidate.source, proposer="given", verdict=verdict.as_dict(), score=found
    )
    ranking = Ranking(default_objectives(scorer.gpu.name, scorer.replay), gpu=scorer.gpu.name)
    return advise(scorer, ranking, scorer.baseline, one)


def _priced(scorer: Scorer, candidate: Swizzle, order: np.ndarray) -> tuple[Scorer, RemapPrice | None, str]:
    """Scorer of the kernel as rewritten, the price of the swizzle, and why there is none."""
    if order.tolist() == list(range(order.size)):
        return scorer, None, "the launch order, which needs no rewriting"
    from swizzle_sim.progress import Progress
    from swizzle_sim.rewrite.price import as_compiled
    from xcd_model.errors import SwizzleSimError

    try:
        with Progress("compiling the rewritten kernel"):
            own, price = as_compiled(scorer, candidate)
    except SwizzleSimError as error:
        return scorer, None, str(error).splitlines()[0]
    return own, price, ""


def _inside(scorer: Scorer) -> tuple[OwnRemap, Score] | None:
    """Remap that a user's kernel holds already, and the score without it."""
    if not scorer.kernel.file:
        return None
    from swizzle_sim.capture.own_remap import own_remap

    found = own_remap(scorer.kernel, scorer.gpu.xcds)
    return (found, scorer.score_order(found.without, baseline_us=scorer.baseline.time_us)) if found else None


def _inside_document(scorer: Scorer) -> dict[str, Any]:
    inside = _inside(scorer)
    return {"own_remap": inside[0].as_dict(inside[1])} if inside else {}


def _print_inside(scorer: Scorer) -> None:
    """Print what a remap is worth that the kernel holds already."""
    from swizzle_sim.cli.output import console

    inside, before = _inside(scorer), scorer.baseline
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


def _print_price(scorer: Scorer, price: RemapPrice | None, not_priced: str) -> None:
    """Print what the remapping costs, or by which resources it was scored instead."""
    from swizzle_sim.cli.output import console

    say = console(wide=True)
    if price is None:
        own = scorer.kernel.resources
        say.print(f"price of the remap: not compiled ({not_priced}); resources: {own.source}", markup=False)
        return
    lost = " (workgroups lost)" if price.loses_occupancy else ""
    compiled = f"{price.after.arch}, Triton {price.after.triton}"
    say.print(f"price of the remap: {price}{lost}, written as: {price.emission} ({compiled})", markup=False)
    if price.advice:
        say.print(price.advice, markup=False)


def _document(scorer: Scorer, candidate: Swizzle, verdict: Verdict) -> dict[str, Any]:
    """JSON of a candidate without a score."""
    from swizzle_sim.cli.output import scored_on

    return {
        **scored_on(scorer),
        "swizzle": candidate.name,
        "source": candidate.source,
        "verdict": verdict.as_dict(),
        "fitted_constants": len(_fitted(scorer)),
        "work": scorer.work.as_dict(),
        "uncoalesced": [one.as_dict() for one in _uncoalesced(scorer)],
        "advice": None,
        "baseline": None,
        "score": None,
        "spread": None,
        "uncertainty": None,
        "assigned_bound_l2_hit_rate": None,
        "traffic": None,
    }


def _uncoalesced(scorer: Scorer) -> list[Uncoalesced]:
    """What no order of the workgroups mends; empty for most kernels."""
    if not scorer.trace.uncoalesced.any():
        return []
    from swizzle_sim.access_patterns import uncoalesced

    return uncoalesced(scorer.trace)


def _write_plots(folder: Path, name: str, traffics: tuple[Traffic, Traffic], scores: tuple[Score, Score]) -> list[Path]:
    """Write hit rate over time and per XCD of launch order and candidate; return the files.

    Raises
    ------
    RunError
        If the folder cannot be written.
    """
    from swizzle_sim.display.picture import png
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


def _ranges(scorer: Scorer, order: np.ndarray, draws: int | None) -> Uncertainty:
    """Replay under other constants, with progress on stderr."""
    from swizzle_sim.progress import Progress
    from swizzle_sim.uncertainty import uncertainty
    from swizzle_sim.uncertainty.study import DRAWS

    with Progress("replaying under other constants", "sets of constants") as progress:
        return uncertainty(scorer, order, draws=draws or DRAWS, on_replay=progress)


def _print_scores(scorer: Scorer, candidate: Swizzle, traffic: Traffic, found: Score) -> None:
    from swizzle_sim.cli.output import (
        console,
        print_balance,
        print_levels,
        score_cells,
        score_columns,
        simulated,
        sizes_text,
        table,
    )

    name = candidate.name or "candidate"
    rows = [("launch order", *score_cells(scorer.baseline)), (name, *score_cells(found))]
    title = f"{scorer.kernel.name} {sizes_text(scorer.kernel.problem)} on {scorer.gpu.title}"
    gpu = scorer.gpu.name
    table(title, ("swizzle", *score_columns(gpu, scorer.replay)), rows, note=simulated(gpu, scorer.replay))
    for far in _uncoalesced(scorer):
        console(wide=True).print(str(far), markup=False)
    print_balance(scorer.work, {"launch order": scorer.baseline, name: found})
    note = f"launch {traffic.launch}, {'steady' if traffic.steady else 'not steady'}" if traffic.launch > 1 else ""
    print_levels(traffic, f"{name}, by tensor", note)


def _fitted(scorer: Scorer) -> list[str]:
    """Names of the fitted constants that the scores depend on."""
    from swizzle_sim.scoring import fitted_constants

    return list(fitted_constants(scorer.gpu, scorer.kernel, scorer.replay, scorer.occupancy))


def _print_fitted(names: list[str]) -> None:
    from swizzle_sim.cli.output import console

    listed = f": {', '.join(names)} (rows: docs/gpus.md)" if names else ""
    console(wide=True).print(f"{len(names)} constants fitted to measured rows{listed}", markup=False)


def _print_spread(found: Spread) -> None:
    from swizzle_sim.cli.output import console

    console(wide=True).print(
        f"over {found.seeds} seeds: L2 hit rate "
        f"{100 * found.l2_hit_rate_mean:.2f} ± {100 * found.l2_hit_rate_std:.2f} %, "
        f"time {found.time_us_mean:.1f} ± {found.time_us_std:.1f} µs (mean and standard deviation)",
        markup=False,
    )


def _print_uncertainty(found: Uncertainty, name: str, replay: str) -> None:
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
