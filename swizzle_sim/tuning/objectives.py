"""`Objective`: the figure of a score that a search optimizes; Pareto fronts; `SearchPlan`: the settings of a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from swizzle_sim.scoring import Score
from swizzle_sim.templates import Template
from xcd_model.errors import SearchError, UnknownName

EVALUATIONS = 400  # full replays of a search by default


@dataclass(frozen=True)
class Objective:
    """One figure of a score.

    Parameters
    ----------
    name, unit : str
    of : callable
        ``of(score) -> float``.
    largest : bool
        Whether more is better.
    """

    name: str
    unit: str
    of: Callable[[Score], float]
    largest: bool = False

    def cost(self, score: Score) -> float:
        """Figure with the sign that makes less better; infinite where there is none."""
        value = self.of(score)
        if math.isnan(value):
            return math.inf
        return -value if self.largest else value

    def gain(self, score: Score, baseline: Score) -> float:
        """Gain over the launch order, comparable between sizes.

        Of a rate the difference, of anything else the logarithm of the ratio.
        """
        mine, launch_order = self.of(score), self.of(baseline)
        if self.largest:
            return mine - launch_order
        return math.log(launch_order / mine) if mine > 0 and launch_order > 0 else -math.inf


OBJECTIVES = {
    one.name: one
    for one in (
        Objective("l2_hit_rate", "", lambda score: score.l2_hit_rate, largest=True),
        Objective("time", "us", lambda score: score.time_us),
        Objective("hbm_bytes", "B", lambda score: score.hbm_bytes),
        Objective("energy", "J", lambda score: score.energy_j),
    )
}


def read_objectives(text: str) -> tuple[Objective, ...]:
    """Objectives by name, one or two separated by a comma.

    Raises
    ------
    UnknownName
        If there is none of that name.
    SearchError
        If there are more than two, or the same twice.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in OBJECTIVES:
            raise UnknownName("objective", name, OBJECTIVES)
    if len(names) > 2 or len(set(names)) < len(names):
        raise SearchError(f"objective {text!r}: one, or two different ones for a Pareto front", code="objective")
    return tuple(OBJECTIVES[name] for name in names)


def pareto_front(costs: Sequence[Sequence[float]]) -> list[int]:
    """Indices of the points that no other dominates.

    Parameters
    ----------
    costs : sequence of n sequences of float
        Less is better.

    Returns
    -------
    front : list of int
        By rising first cost; of equal points the first.
    """
    front: list[int] = []
    lowest: tuple[float, ...] | None = None
    for i in sorted(range(len(costs)), key=lambda i: (*costs[i], i)):
        # sorted by the first cost, so no earlier point is worse there
        if all(map(math.isfinite, costs[i])) and (lowest is None or costs[i][-1] < lowest[-1]):
            front.append(i)
            lowest = tuple(costs[i])
    return front


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """Settings of a search.

    Parameters
    ----------
    templates : tuple of Template
        Empty for those of the families.
    objectives : tuple of Objective
        One, or two for a Pareto front.
    sampler : str
        One of `swizzle_sim.tuning.samplers.SAMPLERS`.
    evaluations : int
        Full replays, at least 1; at several sizes a candidate counts once.
    """

    templates: tuple[Template, ...] = ()
    objectives: tuple[Objective, ...] = (OBJECTIVES["l2_hit_rate"],)
    sampler: str = "auto"
    evaluations: int = EVALUATIONS

    def __post_init__(self):
        if self.evaluations < 1:
            raise SearchError(f"evaluations = {self.evaluations}: at least 1", code="space")

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "templates": [one.text for one in self.templates],
            "objectives": [one.name for one in self.objectives],
            "sampler": self.sampler,
            "evaluations": self.evaluations,
        }
