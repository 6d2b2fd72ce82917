"""Families, random parameters, two-stage search and edits of formulas, with the same number of evaluations.

python -m benchmarks.search.compare --quick                      # three small kernels, some minutes
python -m benchmarks.search.compare --kernels gemm softmax --evaluations 200 --seeds 5
python -m benchmarks.search.compare --quick --write              # rewrite docs/search.md
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.docs.regenerate import ROOT
from benchmarks.search.edits import edited
from swizzle_sim.candidates import family_candidates
from swizzle_sim.kernels import Kernel, kernel
from swizzle_sim.swizzle import family
from swizzle_sim.tuning.bench import Bench
from swizzle_sim.tuning.objectives import OBJECTIVES
from swizzle_sim.tuning.search import Plan, search
from xcd_model.gpu import Gpu, gpu

PAPER = (
    *("gemm", "softmax", "layer_norm", "transpose", "stencil_2d", "fdtd_2d", "smith_waterman", "spmv"),
    *("black_scholes", "fused_elementwise"),
)
QUICK = {
    "gemm": {"M": 8192, "N": 6144, "K": 4096},
    "transpose": {"M": 2048, "N": 2048},
    "stencil_2d": {"M": 1024, "N": 1024},
}
REACHED = 0.95  # part of the way from the order as launched to the best of all


@dataclass(frozen=True)
class Trial:
    """One method on one kernel with one seed: hit rates in the order of the evaluations, and the time they took."""

    rates: list[float]
    wall_s: float


Method = Callable[[Kernel, Gpu, int, int], Trial]


def _scored(work: Kernel, device: Gpu, sources: Iterator[str], evaluations: int) -> Trial:
    """Score new permutations of a stream of texts until the evaluations are spent."""
    began, bench = time.perf_counter(), Bench([work], device, replay="lockstep")
    seen, rates = {bench.judge(family("identity")).digest}, [bench.main.baseline.l2_hit_rate]
    for source in sources:
        if len(rates) > evaluations:
            break
        judged = bench.judge(source)
        if judged.orders is not None and judged.digest not in seen:
            seen.add(judged.digest)
            rates.append(bench.score(judged.orders)[0].l2_hit_rate)
    return Trial(rates, time.perf_counter() - began)


def families(work: Kernel, device: Gpu, evaluations: int, seed: int) -> Trial:
    """Published families over published parameters, in random order."""
    listed = family_candidates(work, device)
    random.Random(seed).shuffle(listed)
    return _scored(work, device, (one.source for one in listed), evaluations)


def searched(sampler: str) -> Method:
    """Templates of the families, by one sampler."""

    def method(work: Kernel, device: Gpu, evaluations: int, seed: int) -> Trial:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            plan = Plan(evaluations=evaluations, sampler=sampler, objectives=(OBJECTIVES["l2_hit_rate"],))
            found = search([work], device, Path(folder) / "run", plan, replay="lockstep", seed=seed, threads=1)
        rates = [a.score.l2_hit_rate for a in found.run.attempts if a.score is not None]
        return Trial(rates, time.perf_counter() - began)

    return method


def edits(work: Kernel, device: Gpu, evaluations: int, seed: int) -> Trial:
    """Random edits of the best formula so far, beginning with a few families."""
    began, bench, draw = time.perf_counter(), Bench([work], device, replay="lockstep"), random.Random(seed)
    starts = [one.source for one in draw.sample(family_candidates(work, device), 4)]
    pool = [(bench.main.baseline.l2_hit_rate, family("identity"))]
    seen, rates = {bench.judge(family("identity")).digest}, [pool[0][0]]
    for _ in range(40 * evaluations):  # most edits are no bijections, and cost no replay
        if len(rates) > evaluations:
            break
        source = starts.pop() if starts else edited(draw.choice(pool)[1], draw)
        judged = bench.judge(source)
        if judged.orders is None or judged.digest in seen:
            continue
        seen.add(judged.digest)
        rates.append(bench.score(judged.orders)[0].l2_hit_rate)
        pool = sorted([*pool, (rates[-1], source)], reverse=True)[:4]
    return Trial(rates, time.perf_counter() - began)


METHODS: dict[str, Method] = {
    "families only": families,
    "random parameters": searched("random"),
    "two-stage search": searched("auto"),
    "formula edits": edits,
}


def _evaluations_to(trial: Trial, goal: float) -> int | None:
    return next((i for i, rate in enumerate(trial.rates) if rate >= goal), None)


def rows(work: Kernel, device: Gpu, evaluations: int, seeds: int) -> list[str]:
    """Table rows of one kernel."""
    trials = {name: [method(work, device, evaluations, s) for s in range(seeds)] for name, method in METHODS.items()}
    launched = next(iter(trials.values()))[0].rates[0]
    best = max(max(trial.rates) for found in trials.values() for trial in found)
    goal, lines = launched + REACHED * (best - launched), []
    for name, found in trials.items():
        tops = [100 * max(trial.rates) for trial in found]
        reached = [n for trial in found if (n := _evaluations_to(trial, goal)) is not None]
        to_goal = f"{statistics.median(reached):.0f} ({len(reached)} of {seeds})" if reached else f"- (0 of {seeds})"
        used = statistics.mean(len(trial.rates) - 1 for trial in found)
        wall = statistics.mean(trial.wall_s for trial in found)
        spread = statistics.stdev(tops) if seeds > 1 else 0.0
        lines.append(
            f"| {work.name} | {name} | {100 * launched:.2f} | {statistics.mean(tops):.2f} ± {spread:.2f} | {to_goal} | "
            f"{used:.0f} | {wall:.1f} |"
        )
    return lines


HEAD = """\
| kernel | method | as launched [%] | best L2 hit rate [%] | evaluations to 95 % | evaluations used | wall time [s] |
| --- | --- | --- | --- | --- | --- | --- |"""


def table(chosen: dict[str, dict[str, int]], evaluations: int, seeds: int) -> str:
    """Markdown table over kernels; each is reported on stderr when it is done."""
    device = gpu("mi300x")
    return "\n".join(
        [HEAD, *(line for name, at in chosen.items() for line in rows(kernel(name, **at), device, evaluations, seeds))]
    )


def main() -> None:
    """Print the table, or write it into docs/search.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kernels", nargs="+", default=list(PAPER))
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write docs/search.md")
    asked = parser.parse_args()
    chosen = QUICK if asked.quick else {name: {} for name in asked.kernels}
    evaluations = 40 if asked.quick else asked.evaluations
    text = table(chosen, evaluations, asked.seeds)
    if asked.write:
        sizes = ", ".join(
            f"{name} {' '.join(f'{k}={v}' for k, v in at.items()) or 'at its default sizes'}"
            for name, at in chosen.items()
        )
        page = PAGE.format(evaluations=evaluations, seeds=asked.seeds, sizes=sizes, table=text)
        (ROOT / "docs/search.md").write_text(page, encoding="utf-8")
        print("written: docs/search.md")
    else:
        print(text)


PAGE = """\
# How the searches compare

Generated by `python -m benchmarks.search.compare --write`. Simulated: lockstep replay on `mi300x`, {evaluations}
evaluations (replays of new permutations) each, {seeds} seeds, one thread. Kernels: {sizes}.

*Families only* draws published families at published parameters. *Random parameters* and *two-stage search* search the
families' templates, the second with TPE, neighbours of the best and pruning by the bound, which costs no replay.
*Formula edits* changes numbers, operators and names of the best formulas so far. *Evaluations to 95 %* is the median
over the seeds that came 95 % of the way from the order as launched to the best that any method found, and how many did.
A search ends before its evaluations are used where the proven bound is reached or nothing new is left.

{table}
"""

if __name__ == "__main__":
    main()
