"""Ranking of a run's attempts, by the objectives of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from swizzle_sim.history import Attempt, rank
from swizzle_sim.tuning.objectives import OBJECTIVES, Objective, pareto_front

HIT_RATE = OBJECTIVES["l2_hit_rate"]
SPOKEN = {"l2_hit_rate": "L2 hit rate", "time": "predicted time", "hbm_bytes": "HBM bytes", "energy": "energy"}


@dataclass(frozen=True)
class Ranking:
    """How a run ranks its attempts.

    Parameters
    ----------
    objectives : tuple of Objective
        One, or two for a Pareto front.
    sizes : int
        Problem sizes whose mean gain counts.
    """

    objectives: tuple[Objective, ...] = (HIT_RATE,)
    sizes: int = 1

    @property
    def main(self) -> Objective:
        """The first objective."""
        return self.objectives[0]

    @property
    def is_plain(self) -> bool:
        """Whether attempts are ranked by the hit rate at one size, the default."""
        return self.objectives == (HIT_RATE,) and self.sizes == 1

    def cost(self, attempt: Attempt) -> tuple[float, ...]:
        """What the run minimises, of an attempt with a score."""
        if attempt.score is None:
            raise ValueError(f"attempt {attempt.number} has no score")
        found = attempt.verdict.get("costs")  # at several sizes only the search has them
        return tuple(found) if found else tuple(one.cost(attempt.score) for one in self.objectives)

    def order(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Attempts with a score, best first; of two objectives the Pareto front comes first."""
        scored = rank(attempts)
        if self.is_plain:
            return scored
        scored.sort(key=self.cost)  # stable: ties stay as `rank` has them
        if len(self.objectives) == 1:
            return scored
        front = pareto_front([self.cost(one) for one in scored])
        return [scored[i] for i in front] + [one for i, one in enumerate(scored) if i not in set(front)]

    def front(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """The Pareto front of two objectives, rising by the cost of the first; the best alone of one."""
        ordered = self.order(attempts)
        return [ordered[i] for i in pareto_front([self.cost(one) for one in ordered])]

    def sentence(self) -> str:
        """How attempts are ranked, for the foot of a table."""
        names = " and ".join(SPOKEN[one.name] for one in self.objectives)
        at = f", the mean gain over {self.sizes} problem sizes" if self.sizes > 1 else ""
        if len(self.objectives) > 1:
            return f"Objectives: {names}{at}. The Pareto front comes first, rising by {SPOKEN[self.main.name]}."
        if self.is_plain:
            return "Ranked by L2 hit rate, then time, then HBM bytes, then the shorter text."
        return f"Ranked by the objective of the run: {names}{at}; equals by L2 hit rate."


def ranking_of(about: Mapping[str, Any]) -> Ranking:
    """Ranking of a run, by its record; the L2 hit rate where the record says nothing.

    Parameters
    ----------
    about : mapping
        `swizzle_sim.history.History.about`.
    """
    settings = about.get("search") or {}
    found = tuple(OBJECTIVES[name] for name in settings.get("objectives", ()) if name in OBJECTIVES)
    return Ranking(found or (HIT_RATE,), 1 + len(settings.get("sizes", ())))
