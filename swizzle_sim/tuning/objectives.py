"""`Objective`: what a search looks for in a score, and the Pareto front of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swizzle_sim.scoring import Score
from xcd_model.errors import SearchError, UnknownName


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
        """Figure turned so that less is better; infinite where there is none."""
        value = self.of(score)
        if math.isnan(value):
            return math.inf
        return -value if self.largest else value

    def gain(self, score: Score, baseline: Score) -> float:
        """How much better than the order as launched, so that sizes can be averaged.

        A rate counts in points (a difference), anything else by the logarithm of the ratio.
        """
        mine, launched = self.of(score), self.of(baseline)
        if self.largest:
            return mine - launched
        return math.log(launched / mine) if mine > 0 and launched > 0 else -math.inf


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
    """Objectives by name, one or two with a comma between.

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
    """Which of several are not dominated.

    Parameters
    ----------
    costs : sequence of n sequences of float
        Less is better.

    Returns
    -------
    front : list of int
        Rising by the first cost; of equal ones the first.
    """
    front: list[int] = []
    lowest: tuple[float, ...] | None = None
    for i in sorted(range(len(costs)), key=lambda i: (*costs[i], i)):
        # sorted by the first cost, so all that came before are no worse there
        if all(map(math.isfinite, costs[i])) and (lowest is None or costs[i][-1] < lowest[-1]):
            front.append(i)
            lowest = tuple(costs[i])
    return front
