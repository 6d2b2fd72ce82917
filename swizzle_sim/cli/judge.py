"""``check`` and ``score``: is it a bijection, and what is it worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli.arguments import GpuName, Jitter, Json, KernelName, Replay, Seed, Sizes, SwizzleText

if TYPE_CHECKING:
    from swizzle_sim.spread import Spread
    from swizzle_sim.swizzle import Swizzle, Verdict

GridText = Annotated[str | None, typer.Option("--grid", help="Launch grid, such as 4096, 64x64 or 8x16x4.")]
Seeds = Annotated[int, typer.Option("--seeds", min=1, max=10_000, help="Seeds to try; prints mean and spread.")]
Plots = Annotated[
    Path | None, typer.Option("--plots", metavar="FOLDER", help="Draw hit rate over time and per XCD there (PNG).")
]
OfKernel = Annotated[str | None, typer.Option("--kernel", help="Take grid and size names from this kernel instead.")]


def check(
    swizzle: Annotated[str, typer.Argument(metavar="FILE|FAMILY", help="A file, - for stdin, or a family.")],
    sizes: Sizes = None,
    grid: GridText = None,
    kernel: OfKernel = None,
    gpu: GpuName = "mi300x",
    xcds: Annotated[int | None, typer.Option("--xcds", min=1, max=4096, help="XCDs, in place of the GPU's.")] = None,
    json: Json = False,
) -> None:
    """Check that a swizzle is a bijection, here and on a lattice of other grids; exit 1 if it is not."""
    from swizzle_sim.cli.arguments import load_kernel, load_swizzle, parse_sizes
    from swizzle_sim.cli.output import print_json
    from swizzle_sim.swizzle import Grid, verify
    from xcd_model.errors import SizeError
    from xcd_model.gpu import gpu as load_gpu

    if (grid is None) == (kernel is None):
        raise SizeError("say where to check: either --grid 4096 (or 64x64, 8x16x4) or --kernel gemm M=4096")
    candidate = load_swizzle(swizzle)
    device = load_gpu(gpu)
    num_xcds = xcds or device.xcds
    if kernel is not None:
        workload = load_kernel(kernel, sizes, device.arch)
        where, names = workload.grid, dict(workload.problem)
        verdict = verify(candidate, where, num_xcds, sizes=names, lattice=list(workload.at_grids()))
    else:
        where, names = Grid.parse(grid or ""), parse_sizes(sizes)
        verdict = verify(candidate, where, num_xcds, sizes=names or None)
    if json:
        document = {
            "swizzle": candidate.name,
            "source": candidate.source,
            "grid": list(where.launch),
            "num_xcds": num_xcds,
        }
        print_json({**document, "problem": names, "verdict": verdict.as_dict()})
    else:
        _print_verdict(candidate, str(where), num_xcds, verdict)
    if not verdict.bijective:
        raise typer.Exit(1)


def _print_verdict(candidate: Swizzle, grid: str, num_xcds: int, verdict: Verdict) -> None:
    from swizzle_sim.cli.output import console

    out = console(wide=True)
    answer = "a bijection" if verdict.bijective else "NOT a bijection"
    out.print(f"{candidate.name}: {answer} at grid {grid}, {num_xcds} XCDs", markup=False)
    if verdict.counterexample:
        out.print(f"  {verdict.counterexample.message}", markup=False)
    out.print(
        f"  valid: {verdict.domain} ({verdict.passed} of {verdict.tested} grids and XCD counts pass)",
        markup=False,
    )
    if not verdict.complete:
        out.print("  other grids took too long and were cut: nothing is said of the rest", markup=False)
    if verdict.bijective and verdict.lattice_counterexample:
        out.print(f"  elsewhere: {verdict.lattice_counterexample.message}", markup=False)


def score(
    kernel: KernelName,
    swizzle: SwizzleText,
    sizes: Sizes = None,
    gpu: GpuName = "mi300x",
    replay: Replay = "lockstep",
    seed: Seed = 0,
    jitter: Jitter = 0.0,
    seeds: Seeds = 1,
    plots: Plots = None,
    json: Json = False,
) -> None:
    """Score one swizzle beside the order as launched; exit 1, and no score, if it is not a bijection."""
    import numpy as np

    from swizzle_sim.cli import detail
    from swizzle_sim.cli.arguments import load_kernel, load_swizzle
    from swizzle_sim.cli.output import SCORE_COLUMNS, SIMULATED, print_json, score_cells, sizes_text, table
    from swizzle_sim.scoring import Scorer
    from swizzle_sim.spread import spread
    from xcd_model.gpu import gpu as load_gpu

    candidate = load_swizzle(swizzle)
    device = load_gpu(gpu)
    scorer = Scorer(load_kernel(kernel, sizes, device.arch), device, replay=replay, seed=seed, jitter_ns=jitter)
    verdict = scorer.verify(candidate)
    document: dict[str, Any] = {
        "kernel": scorer.kernel.name,
        "gpu": scorer.gpu.name,
        "problem": dict(scorer.kernel.problem),
        "replay": replay,
        "kind": "simulated",
        "seed": seed,
        "jitter_ns": jitter,
        "swizzle": candidate.name,
        "source": candidate.source,
        "verdict": verdict.as_dict(),
        "baseline": None,
        "score": None,
        "spread": None,
        "assigned_bound_l2_hit_rate": None,
        "traffic": None,
    }
    if not verdict.bijective:
        if json:
            print_json(document)
        else:
            _print_verdict(candidate, str(scorer.kernel.grid), scorer.gpu.xcds, verdict)
        raise typer.Exit(1)
    order = scorer.permutation(candidate)
    traffic = scorer.traffic(order, threads=detail.threads())
    found = scorer.score_traffic(traffic, baseline_us=scorer.baseline.time_us)
    over_seeds = spread(scorer, candidate, seeds) if seeds > 1 else None
    files = []
    if plots:
        before = scorer.traffic(np.arange(order.size), threads=detail.threads())
        files = detail.write_plots(plots, candidate.name or "candidate", (before, traffic), (scorer.baseline, found))
    if json:
        document["spread"] = over_seeds and over_seeds.as_dict()
        detail.assigned(document, scorer.assigned_bound(order), traffic)
        print_json({**document, "baseline": scorer.baseline.as_dict(), "score": found.as_dict()})
        return
    rows = [("as launched", *score_cells(scorer.baseline)), (candidate.name or "candidate", *score_cells(found))]
    title = f"{scorer.kernel.name} {sizes_text(scorer.kernel.problem)} on {scorer.gpu.title}"
    table(title, ("swizzle", *SCORE_COLUMNS), rows, note=SIMULATED[replay])
    note = f"launch {traffic.launch}, {'steady' if traffic.steady else 'not steady'}" if traffic.launch > 1 else ""
    detail.print_levels(traffic, f"{candidate.name or 'candidate'}, by tensor", note)
    if over_seeds:
        _print_spread(over_seeds)
    for file in files:
        print(file)
    _print_verdict(candidate, str(scorer.kernel.grid), scorer.gpu.xcds, verdict)


def _print_spread(found: Spread) -> None:
    from swizzle_sim.cli.output import console

    console(wide=True).print(
        f"over {found.seeds} seeds: L2 hit rate "
        f"{100 * found.l2_hit_rate_mean:.2f} ± {100 * found.l2_hit_rate_std:.2f} %, "
        f"time {found.time_us_mean:.1f} ± {found.time_us_std:.1f} µs (mean and standard deviation)",
        markup=False,
    )
