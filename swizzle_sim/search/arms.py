"""`Arm`: a template in a search; how many take part in each round of successive halving, and what they suggest in turn.

Source: Karnin, Koren and Somekh, ICML 2013 (sequential halving).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from swizzle_sim.search.ranking import pareto_front
from swizzle_sim.search.samplers import Exhaustive, Sampler
from swizzle_sim.search.templates.space import TemplateSpace, Values


@dataclass
class Arm:
    """One template in a search.

    Parameters
    ----------
    space : TemplateSpace
    sampler : Sampler
    first : sequence of Values
        Published ones, tried before the sampler is asked.
    costs : list of tuple of float
        Of its candidates that were replayed.
    is_empty : bool
        Its space is exhausted.
    """

    space: TemplateSpace
    sampler: Sampler
    first: Sequence[Values] = ()
    costs: list[tuple[float, ...]] = field(default_factory=list)
    is_empty: bool = False

    def suggest(self) -> tuple[Any, Values] | None:
        """Next handle and values, or None for good."""
        found = None if self.is_empty else self.sampler.suggest()
        self.is_empty = found is None
        return found

    @property
    def is_exhaustive(self) -> bool:
        """Whether it tries every combination, so that no screen may drop one."""
        return isinstance(self.sampler, Exhaustive)

    @property
    def best(self) -> float:
        """Least sum of costs; infinite without any."""
        return min((sum(costs) for costs in self.costs), default=math.inf)


@dataclass
class Suggestion:
    """Values that the sampler of an arm suggested."""

    arm: Arm
    handle: Any
    values: Values


def rounds_of(n_arms: int, evaluations: int) -> list[tuple[int, int]]:
    """Rounds of successive halving: how many arms take part in each, and how many replays each arm gets.

    Parameters
    ----------
    n_arms, evaluations : int

    Returns
    -------
    rounds : list of (int, int)
        Together about ``evaluations`` replays; the last arm may take the rest. None without arms.
    """
    if n_arms == 0:
        return []
    n_rounds = max(1, math.ceil(math.log2(n_arms)) + 1) if n_arms > 1 else 1
    each = evaluations / n_rounds
    rounds, left = [], n_arms
    for _ in range(n_rounds):
        rounds.append((left, max(1, int(each / left))))
        left = max(1, -(-left // 2))
    return rounds


def most_arms(evaluations: int) -> int:
    """A power of two: arms that `rounds_of` can begin with, so that the first round leaves the others their share."""
    most = 1
    while 2 * most * len(rounds_of(2 * most, evaluations)) <= evaluations:
        most *= 2
    return most


def better_half(arms: Sequence[Arm], n: int) -> list[Arm]:
    """The ``n`` best arms, in their given order: those with a point on the Pareto front, then by cost."""
    owners = [(arm, costs) for arm in arms for costs in arm.costs]
    front = {id(owners[i][0]) for i in pareto_front([costs for _, costs in owners])}
    ranked = sorted(range(len(arms)), key=lambda i: (arms[i].is_empty, id(arms[i]) not in front, arms[i].best, i))
    return [arms[i] for i in sorted(ranked[:n])]


def take_batch(arms: Sequence[Arm], left: dict[int, int], draws: dict[int, int], most: int) -> list[Suggestion]:
    """Up to ``most`` suggestions, one an arm in turn; ``left`` replays and ``draws`` bound them by arm."""
    batch: list[Suggestion] = []
    pending = dict.fromkeys(left, 0)
    while len(batch) < most:
        before = len(batch)
        for i, arm in enumerate(arms):
            if len(batch) == most or pending[i] >= left[i] or draws[i] <= 0:
                continue
            if (found := arm.suggest()) is None:
                continue
            draws[i] -= 1
            pending[i] += 1
            batch.append(Suggestion(arm, *found))
        if len(batch) == before:
            break
    return batch
