"""`Objective`: the figure of a score that a run optimizes, chosen by name or by what ranks orders on the GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swizzle_sim.pricing.scores import Score
from swizzle_sim.search.ranking.evidence import ALIKE, evidence_of, times_rank
from xcd_model.errors import SearchError, UnknownName


@dataclass(frozen=True)
class Objective:
    """One figure of a score."""

    name: str  # ``spoken`` is the name in a sentence
    spoken: str
    unit: str
    of: Callable[[Score], float]  # ``of(score) -> float``
    largest: bool = False  # whether more is better: of a rate, 0 to 1

    def cost(self, score: Score) -> float:
        """Minus a rate, or the logarithm of anything else: less is better; infinite where there is no such figure."""
        value = self.of(score)
        if self.largest:
            return math.inf if math.isnan(value) else -value
        return math.log(value) if value > 0 else math.inf

    def gain(self, score: Score, baseline: Score) -> float:
        """Gain over the launch order, comparable between sizes.

        Of a rate the difference, of anything else the logarithm of the ratio.
        """
        mine, launch_order = self.cost(score), self.cost(baseline)
        return launch_order - mine if math.isfinite(mine) and math.isfinite(launch_order) else -math.inf

    def tolerance(self, gpu: str) -> float:
        """Gap of two costs up to which the model does not tell them apart on a GPU."""
        return max(evidence_of(gpu, self.name).tells_apart, ALIKE / 10 if self.largest else ALIKE)


class BestSoFar:
    """Best figure of the scores seen so far, for a line of progress."""

    def __init__(self, objective: Objective):
        self._objective = objective
        self._best: Score | None = None

    def __call__(self, score: Score | None) -> str:
        """Take one more score, None of an attempt without; the best in words."""
        cost = self._objective.cost
        if score is not None and (self._best is None or cost(score) < cost(self._best)):
            self._best = score
        if self._best is None:
            return ""
        value, unit = self._objective.of(self._best), self._objective.unit
        figure = f"{100 * value:.2f} %" if self._objective.largest else f"{value:.4g} {unit}"
        return f"best {self._objective.spoken} {figure}"


OBJECTIVES = {
    one.name: one
    for one in (
        Objective("time", "predicted time", "us", lambda score: score.time_us),
        Objective("l2_hit_rate", "L2 hit rate", "", lambda score: score.l2_hit_rate, largest=True),
        Objective("hbm_bytes", "HBM bytes", "B", lambda score: score.hbm_bytes),
        Objective("energy", "energy", "J", lambda score: score.energy_j),
    )
}
TIME, HIT_RATE = OBJECTIVES["time"], OBJECTIVES["l2_hit_rate"]


def read_objectives(text: str) -> tuple[Objective, ...]:
    """Objectives by name, one or two separated by a comma."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in OBJECTIVES:
            raise UnknownName("objective", name, OBJECTIVES)
    if len(names) > 2 or len(set(names)) < len(names):
        raise SearchError(f"objective {text!r}: one, or two different ones for a Pareto front", code="objective")
    return tuple(OBJECTIVES[name] for name in names)


def default_objectives(gpu: str, replay: str) -> tuple[Objective, ...]:
    """Time where the timed replay's times rank orders of this GPU, else the L2 hit rate."""
    return (TIME,) if times_rank(gpu, replay) else (HIT_RATE,)


def chosen_objectives(text: str | None, gpu: str, replay: str) -> tuple[Objective, ...]:
    """Objectives that were named, or else the default; raises as `read_objectives`."""
    return read_objectives(text) if text else default_objectives(gpu, replay)


def pareto_front(costs: Sequence[Sequence[float]]) -> list[int]:
    """Indices of the points that no other dominates."""
    front: list[int] = []
    lowest: tuple[float, ...] | None = None
    for i in sorted(range(len(costs)), key=lambda i: (*costs[i], i)):
        # sorted by the first cost, so no earlier point is worse there
        if all(map(math.isfinite, costs[i])) and (lowest is None or costs[i][-1] < lowest[-1]):
            front.append(i)
            lowest = tuple(costs[i])
    return front
