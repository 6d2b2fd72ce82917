"""`score_suite`: launch order, best family and bound of many kernels, stored one by one so that a run can go on.

Their table is a page of the evidence; `swizzle_sim.search.fleet` is what a user runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from swizzle_sim.base.release import version
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import distinct_shortlist, family_specs
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Budget, InMemory, one_after_another, run
from swizzle_sim.search.ranking import Ranking, default_objectives, times_note
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, workgroups_per_cu
from xcd_model.errors import ReplayError

# In the order of the paper, arXiv 2508.20258, section 4; its GEMM is the Stream-K form.
PAPER = (
    *("gemm_streamk", "fused_elementwise", "layer_norm", "softmax", "spmv", "transpose"),
    *("black_scholes", "fdtd_2d", "smith_waterman", "stencil_2d"),
)
LOOKUPS = 6e8  # spent on the candidates of one kernel, as `Scorer.lookups`: four seconds on two cores
FEWEST = 6  # candidates, however much they cost

OnKernel = Callable[[str, int, int, float], None]
COLUMNS = (
    *("kernel", "best family", "launch order [%]", "best [%]", "bound [%]", "gain [pt]", "launch order [µs]"),
    *("best [µs]", "speedup", "valid where", "launch", "tried"),
)


def score_suite(
    kernels: Sequence[Kernel],
    gpu: Gpu,
    folder: str | Path,
    *,
    replay: str = "timed",
    effort: float = 1.0,
    threads: int | None = None,
    resume: bool = False,
    on_kernel: OnKernel | None = None,
) -> list[dict[str, Any]]:
    """Rows of kernels, scored one after the other: launch order, and families as far as the effort goes.

    ``effort`` multiplies `LOOKUPS`, so what is tried does not depend on the machine; with ``resume`` kernels that an
    earlier call scored alike into the folder are not repeated. ``on_kernel(name, done, total, best_l2_hit_rate)`` is
    called as candidates are scored.
    """
    for kernel in kernels:
        try:
            workgroups_per_cu(kernel.resources, gpu)
        except ReplayError as error:
            raise ReplayError(f"{kernel.name}: {error}; leave it out") from None
    rows = []
    with PointStore(Path(folder), resume=resume) as store:
        for kernel in kernels:
            point: dict[str, Any] = {
                "kernel": kernel.name,
                "problem": dict(kernel.problem),
                "resources": asdict(kernel.resources),
            }
            point |= {"gpu": gpu.as_dict(), "replay": replay, "effort": effort, "version": version()}
            row = store.find(point)
            if row is None:
                row = score_kernel(kernel, gpu, replay=replay, effort=effort, threads=threads, on_kernel=on_kernel)
                store.add(point, row)
            rows.append(row)
    return rows


def score_kernel(
    kernel: Kernel,
    gpu: Gpu,
    *,
    replay: str = "timed",
    effort: float = 1.0,
    threads: int | None = None,
    on_kernel: OnKernel | None = None,
) -> dict[str, Any]:
    """Row of one kernel, scored until a candidate reaches the bound where that decides; see `score_suite`.

    The best is the launch order where no family beats it. ``tried`` are distinct permutations, the launch order among
    them, of those that are ``known``.
    """
    began = time.perf_counter()
    judge = Judge(Scorer(kernel, gpu, replay=replay))
    scorer, ranking, attempts = judge.scorer, judge.ranking, InMemory()
    if on_kernel:
        on_kernel(kernel.name, 0, 0, 0.0)
    most = most_candidates(scorer, effort)

    def told(attempt: Attempt) -> None:
        best = ranking.order(attempts)[0].score
        if on_kernel and attempt.number and best:
            on_kernel(kernel.name, attempt.number, most, best.l2_hit_rate)

    strategy = one_after_another(one for one, _ in islice(distinct_shortlist(scorer), most))
    run(
        strategy, judge, attempts,
        Budget(threads=threads or os.cpu_count() or 1, enough=lambda: _cannot_be_beaten(ranking, attempts[-1])),
        on_attempt=told,
    )  # fmt: skip
    best = ranking.order(attempts)[0]
    return {
        "kernel": kernel.name,
        "problem": dict(kernel.problem),
        "grid": str(kernel.grid),
        "launches": kernel.launches,
        "baseline": scorer.baseline.as_dict(),
        "best_name": best.name,
        "best_source": best.source,
        "best_domain": best.verdict["domain"],
        "best": (best.score or scorer.baseline).as_dict(),
        "tried": len(attempts),
        "known": sum(1 for _ in family_specs(kernel, gpu)),
        "seconds": round(time.perf_counter() - began, 1),
    }


def most_candidates(scorer: Scorer, effort: float) -> int:
    """How many candidates of a kernel the effort pays for, at least `FEWEST`."""
    return max(FEWEST, int(effort * LOOKUPS / scorer.lookups))


def _cannot_be_beaten(ranking: Ranking, attempt: Attempt) -> bool:
    """Whether the bound on the hit rate is reached, where that decides; a time has no bound."""
    score = attempt.score
    return ranking.main.name == "l2_hit_rate" and score is not None and score.l2_hit_rate >= score.bound_l2_hit_rate


def cells(row: Mapping[str, Any]) -> list[str]:
    """Cells of a row, below `COLUMNS`."""
    base, best = row["baseline"], row["best"]
    rate, bound = best["l2_hit_rate"], best["bound_l2_hit_rate"]
    launch = f"{best['launch']} of {row['launches']}, {'steady' if best['steady'] else 'not steady'}"
    return [
        row["kernel"],
        "none: launch order" if row["best_name"] == "identity" else row["best_name"],
        f"{100 * base['l2_hit_rate']:.2f}",
        f"{100 * rate:.2f}",
        f"{100 * bound:.2f}",
        f"{100 * (rate - base['l2_hit_rate']):+.2f}",
        f"{base['time_us']:.1f}",
        f"{best['time_us']:.1f}",
        f"{best['speedup']:.3f}",
        row["best_domain"],
        launch if row["launches"] > 1 else "1",
        f"{row['tried']} of {row['known'] + 1}" if rate < bound else f"{row['tried']}: at the bound",
    ]


def notes(rows: Sequence[Mapping[str, Any]], gpu: str, replay: str) -> list[str]:
    """What the columns mean."""
    main = default_objectives(gpu, replay)[0]
    lines = [
        f"Simulated, {replay} replay on {gpu}; hit rates in requests, as TCC_HIT and TCC_MISS count.",
        f"Best by {main.spoken}. {times_note(gpu, replay)}",
        "tried: distinct permutations replayed, of all combinations of families and parameters (many give the same "
        "permutation); a kernel is finished once a candidate reaches the bound, which no balanced bijection exceeds.",
    ]
    if any(row["launches"] > 1 for row in rows):
        lines.append(
            "launch: a kernel that is launched repeatedly is replayed with warm caches until a launch counts as "
            "the one before it (steady); that launch is in the table."
        )
    return lines
