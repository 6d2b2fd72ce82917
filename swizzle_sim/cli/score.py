"""``score``: what one swizzle is worth, beside the order as launched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli.arguments import GpuName, Jitter, Json, KernelName, Replay, Seed, Sizes, SwizzleText

if TYPE_CHECKING:
    import numpy as np

    from swizzle_sim.scoring import Score, Scorer
    from swizzle_sim.spread import Spread
    from swizzle_sim.swizzle import Swizzle, Verdict
    from swizzle_sim.uncertainty import Uncertainty
    from xcd_model import Traffic

Seeds = Annotated[int, typer.Option("--seeds", min=1, max=10_000, help="Seeds to try; prints mean and spread.")]
Plots = Annotated[
    Path | None, typer.Option("--plots", metavar="FOLDER", help="Draw hit rate over time and per XCD there (PNG).")
]
Uncertain = Annotated[
    bool, typer.Option("--uncertainty", help="Beside each number its range over the plausible constants.")
]
Draws = Annotated[
    int | None, typer.Option("--draws", min=2, max=10_000, help="Of all constants at once, with --uncertainty.")
]


def score(
    kernel: KernelName,
    swizzle: SwizzleText,
    sizes: Sizes = None,
    gpu: GpuName = "mi300x",
    replay: Replay = "lockstep",
    seed: Seed = 0,
    jitter: Jitter = 0.0,
    seeds: Seeds = 1,
    uncertainty: Uncertain = False,
    draws: Draws = None,
    plots: Plots = None,
    json: Json = False,
) -> None:
    """Score one swizzle beside the order as launched; exit 1, and no score, if it is not a bijection."""
    from swizzle_sim.cli.arguments import load_fitting, load_swizzle
    from swizzle_sim.cli.output import print_json
    from swizzle_sim.cli.verdicts import print_verdict
    from swizzle_sim.scoring import Scorer
    from xcd_model import gpu as load_gpu
    from xcd_model.errors import ReplayError

    if draws is not None and not uncertainty:
        raise ReplayError("--draws says how thorough --uncertainty is: give both")
    candidate = load_swizzle(swizzle)
    device = load_gpu(gpu)
    scorer = Scorer(load_fitting(kernel, sizes, device), device, replay=replay, seed=seed, jitter_ns=jitter)
    verdict = scorer.verify(candidate)
    if not verdict.bijective:
        if json:
            print_json(_document(scorer, candidate, verdict))
        else:
            print_verdict(candidate, str(scorer.kernel.grid), scorer.gpu.xcds, verdict)
        raise typer.Exit(1)
    order = scorer.permutation(candidate)
    traffic, found = _scored(scorer, order)
    over_seeds = _over_seeds(scorer, candidate, seeds)
    files = _plotted(scorer, candidate, order, plots, (traffic, found))
    ranges = _ranges(scorer, order, draws) if uncertainty else None
    if json:
        document = _document(scorer, candidate, verdict) | {"spread": over_seeds and over_seeds.as_dict()}
        _print_json(document, scorer, order, traffic, found, ranges)
    else:
        _print_scores(scorer, candidate, traffic, found)
        _print_more(scorer, candidate, verdict, over_seeds, ranges, files)


def _document(scorer: Scorer, candidate: Swizzle, verdict: Verdict) -> dict[str, Any]:
    """What the JSON says of a candidate without a score."""
    from swizzle_sim.cli.detail import scored_on

    return {
        **scored_on(scorer),
        "swizzle": candidate.name,
        "source": candidate.source,
        "verdict": verdict.as_dict(),
        "baseline": None,
        "score": None,
        "spread": None,
        "uncertainty": None,
        "assigned_bound_l2_hit_rate": None,
        "traffic": None,
        "fitted_constants": len(_fitted(scorer)),
    }


def _fitted(scorer: Scorer) -> list[str]:
    """Names of the fitted constants that the scores depend on."""
    from swizzle_sim.fitted import fitted_constants

    return list(fitted_constants(scorer.gpu, scorer.kernel, scorer.replay, scorer.occupancy))


def _scored(scorer: Scorer, order: np.ndarray) -> tuple[Traffic, Score]:
    from swizzle_sim.cli.detail import threads

    traffic = scorer.traffic(order, threads=threads())
    return traffic, scorer.score_traffic(traffic, baseline_us=scorer.baseline.time_us)


def _over_seeds(scorer: Scorer, candidate: Swizzle, seeds: int) -> Spread | None:
    from swizzle_sim.spread import spread

    return spread(scorer, candidate, seeds) if seeds > 1 else None


def _plotted(
    scorer: Scorer, candidate: Swizzle, order: np.ndarray, folder: Path | None, after: tuple[Traffic, Score]
) -> list[Path]:
    """Draw the candidate beside the order as launched, if a folder is given."""
    import numpy as np

    from swizzle_sim.cli.detail import threads, write_plots

    if folder is None:
        return []
    before = scorer.traffic(np.arange(order.size), threads=threads())
    return write_plots(folder, candidate.name or "candidate", (before, after[0]), (scorer.baseline, after[1]))


def _ranges(scorer: Scorer, order: np.ndarray, draws: int | None) -> Uncertainty:
    """Replay under other constants, with a bar on stderr."""
    from swizzle_sim.cli.uncertain import Draws
    from swizzle_sim.uncertainty import uncertainty
    from swizzle_sim.uncertainty.study import DRAWS

    with Draws() as bar:
        return uncertainty(scorer, order, draws=draws or DRAWS, on_replay=bar.advance)


def _print_json(
    document: dict[str, Any],
    scorer: Scorer,
    order: np.ndarray,
    traffic: Traffic,
    found: Score,
    ranges: Uncertainty | None,
) -> None:
    from swizzle_sim.cli.detail import assigned
    from swizzle_sim.cli.output import print_json

    assigned(document, scorer.assigned_bound(order), traffic)
    scores = {"baseline": scorer.baseline.as_dict(), "score": found.as_dict()}
    print_json({**document, **scores, "uncertainty": ranges and ranges.as_dict()})


def _print_scores(scorer: Scorer, candidate: Swizzle, traffic: Traffic, found: Score) -> None:
    from swizzle_sim.cli.detail import print_levels
    from swizzle_sim.cli.output import SCORE_COLUMNS, SIMULATED, score_cells, sizes_text, table

    name = candidate.name or "candidate"
    rows = [("as launched", *score_cells(scorer.baseline)), (name, *score_cells(found))]
    title = f"{scorer.kernel.name} {sizes_text(scorer.kernel.problem)} on {scorer.gpu.title}"
    table(title, ("swizzle", *SCORE_COLUMNS), rows, note=SIMULATED[scorer.replay])
    note = f"launch {traffic.launch}, {'steady' if traffic.steady else 'not steady'}" if traffic.launch > 1 else ""
    print_levels(traffic, f"{name}, by tensor", note)


def _print_more(
    scorer: Scorer,
    candidate: Swizzle,
    verdict: Verdict,
    over_seeds: Spread | None,
    ranges: Uncertainty | None,
    files: list[Path],
) -> None:
    """What stands below the tables of scores: the spreads asked for, the files written, the verdict."""
    from swizzle_sim.cli.uncertain import print_uncertainty
    from swizzle_sim.cli.verdicts import print_verdict

    _print_fitted(_fitted(scorer))
    if over_seeds:
        _print_spread(over_seeds)
    if ranges:
        print_uncertainty(ranges, candidate.name or "candidate", scorer.replay)
    for file in files:
        print(file)
    print_verdict(candidate, str(scorer.kernel.grid), scorer.gpu.xcds, verdict)


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
