"""Figure 14: the best so far over evaluations, of the searches run here and of recorded models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.paper.jobs import Job
from benchmarks.paper.published import PROGRESSION
from benchmarks.paper.recorded import recorded_runs
from benchmarks.paper.searches import arms_job, arms_name
from benchmarks.paper.settings import GPU, Settings


def jobs(settings: Settings) -> list[Job]:
    """The same families and searches as figure 2's."""
    return [arms_job(settings, name) for name in PROGRESSION]


def gather(settings: Settings, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """L2 hit rate of each evaluation, by kernel and arm."""
    runs = recorded_runs(settings.studies)
    kernels = []
    for name in PROGRESSION:
        arms, problem = found[arms_name(name)], dict(settings.kernel(name).problem)
        kernels.append(
            {
                "kernel": name,
                "problem": problem,
                "replay": arms["replay"],
                "launched": arms["launched"]["l2_hit_rate"],
                "bound": arms["launched"]["bound_l2_hit_rate"],
                "families": arms["families"]["rates"],
                "search": arms["search"]["rates"],
                "models": [
                    {"label": f"{', '.join(run.models)}, {run.context}", "replay": run.replay, "rates": run.rates}
                    for run in runs
                    if (run.kernel, run.problem, run.gpu) == (name, problem, GPU)
                ],
            }
        )
    return {"gpu": GPU, "quick": settings.quick, "kernels": kernels}


def best_so_far(launched: float, rates: list[float | None]) -> list[float]:
    """Best hit rate after each evaluation, that of the order as launched first."""
    best = [launched]
    for rate in rates:
        best.append(max(best[-1], rate if rate is not None else 0.0))
    return best


def needed(launched: float, rates: list[float | None], *, part: float = 1.0) -> int | None:
    """Evaluations until a part of the gain was there; None where nothing was gained."""
    best = best_so_far(launched, rates)
    goal = launched + part * (best[-1] - launched)
    return next(i for i, rate in enumerate(best) if rate >= goal) if best[-1] > launched else None
