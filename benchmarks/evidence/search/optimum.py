"""The default search against every combination of every template: its distance to the optimum of its space.

python -m swizzle_benchmarks.evidence.search.optimum
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.strategies.halving import SearchPlan, search
from swizzle_sim.search.templates import TemplateSpace, family_templates
from swizzle_sim.search.what_if import what_if
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, gpu
from xcd_model.errors import SearchError

from .page import wrapped

EVALUATIONS, SEEDS = (25, 50, 100), 4


def small_case() -> tuple[Kernel, Gpu]:
    """A kernel of 64 tiles, and a GPU with L2s so small that no order reaches the bound."""
    tight = what_if(gpu("mi300x"), {"l2.size_bytes": 64 * 2**10, "cus_per_xcd": 2})
    return gemm(M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64), tight


def exhausted(work: Kernel, device: Gpu) -> tuple[float, int, int]:
    """Best hit rate of all templates with all their parameters, how many combinations and how many permutations."""
    judge, combinations = Judge(Scorer(work, device, replay="lockstep")), 0
    rates: list[float] = []
    for template in family_templates(work, device):
        try:
            space = TemplateSpace(template, [work], device)
        except SearchError:
            continue
        for values in space.points():
            combinations += 1
            one = judge.judge(Candidate(template.title(values), template.source(values), "all"), combinations)
            rates += [one.score.l2_hit_rate] if one.score is not None else []
    return max(rates), combinations, len(rates)


def found(work: Kernel, device: Gpu, evaluations: int, seed: int) -> tuple[float, int]:
    """Best hit rate of the default search, and the evaluations it used."""
    with tempfile.TemporaryDirectory() as folder:
        run = search(
            [work],
            device,
            Path(folder) / "run",
            SearchPlan(evaluations=evaluations),
            replay="lockstep",
            seed=seed,
            threads=1,
        )
    best = run.front[0].score
    assert best is not None  # what is on the front was scored
    return best.l2_hit_rate, run.counts["replay"]


def optimum_table(say: Callable[[str], None]) -> str:
    """Text and table of the page."""
    work, device = small_case()
    best, combinations, permutations = exhausted(work, device)
    launched = Scorer(work, device, replay="lockstep").baseline.l2_hit_rate
    text = (
        f"GEMM of 8 x 8 tiles on `{device.name}`: all {combinations} combinations of all family templates come to "
        f"{permutations} permutations, the best with {100 * best:.2f} %; the launch order has {100 * launched:.2f} %. "
        f"The default search over the same templates, {SEEDS} seeds:"
    )
    lines = [
        *(wrapped(text), ""),
        "| evaluations | used | furthest below the optimum [points] | mean [points] |",
        "| --- | --- | --- | --- |",
    ]
    for evaluations in EVALUATIONS:
        of = [found(work, device, evaluations, seed) for seed in range(SEEDS)]
        behind, used = [100 * (best - rate) for rate, _ in of], sum(n for _, n in of) / SEEDS
        lines.append(f"| {evaluations} | {used:.0f} | {max(behind):.2f} | {sum(behind) / SEEDS:.2f} |")
        say(lines[-1])
    return "\n".join(lines)


if __name__ == "__main__":
    print(optimum_table(say=lambda line: None))
