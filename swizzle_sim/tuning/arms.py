"""`Arm`: one template in a search of several, and the halving that decides which of them go on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from swizzle_sim.templates.space import TemplateSpace, Values
from swizzle_sim.tuning.asking import Asker, Exhaustive
from swizzle_sim.tuning.objectives import pareto_front

BATCH = 8  # candidates asked for before any is told; the same for any number of threads
ASKS = 4  # candidates asked for each replay wanted, before a round gives up on a template


@dataclass
class Arm:
    """One template in a search.

    Parameters
    ----------
    space : TemplateSpace
    asker : Asker
    costs : list of tuple of float
        Of its candidates that were replayed.
    is_empty : bool
        It has nothing left to propose.
    """

    space: TemplateSpace
    asker: Asker
    costs: list[tuple[float, ...]] = field(default_factory=list)
    is_empty: bool = False

    def ask(self) -> tuple[Any, Values] | None:
        """Next handle and values, or None for good."""
        found = None if self.is_empty else self.asker.ask()
        self.is_empty = found is None
        return found

    @property
    def is_exhaustive(self) -> bool:
        """Whether it tries everything there is, so that nothing is left behind unseen."""
        return isinstance(self.asker, Exhaustive)

    @property
    def best(self) -> float:
        """Least sum of costs; infinite without any."""
        return min((sum(costs) for costs in self.costs), default=math.inf)


@dataclass
class Asked:
    """A candidate that an arm asked for."""

    arm: Arm
    handle: Any
    values: Values


def rounds_of(n_arms: int, evaluations: int) -> list[tuple[int, int]]:
    """Successive halving: for each round how many arms take part, and how many replays each gets.

    Parameters
    ----------
    n_arms, evaluations : int

    Returns
    -------
    rounds : list of (int, int)
        Together about as many replays as asked for; the last arm may take what is left over.

    Source: Karnin, Koren and Somekh, ICML 2013 (sequential halving).
    """
    n_rounds = max(1, math.ceil(math.log2(n_arms)) + 1) if n_arms > 1 else 1
    each = evaluations / n_rounds
    rounds, left = [], n_arms
    for _ in range(n_rounds):
        rounds.append((left, max(1, int(each / left))))
        left = max(1, -(-left // 2))
    return rounds


def better_half(arms: Sequence[Arm], n: int) -> list[Arm]:
    """The ``n`` most promising arms, in their old order: those with a point on the Pareto front, then by cost."""
    owners = [(arm, costs) for arm in arms for costs in arm.costs]
    front = {id(owners[i][0]) for i in pareto_front([costs for _, costs in owners])}
    ranked = sorted(range(len(arms)), key=lambda i: (arms[i].is_empty, id(arms[i]) not in front, arms[i].best, i))
    return [arms[i] for i in sorted(ranked[:n])]


def take_batch(arms: Sequence[Arm], left: dict[int, int], asks: dict[int, int], most: int) -> list[Asked]:
    """Up to ``most`` candidates, one an arm in turn; ``left`` and ``asks`` bound them by arm."""
    batch: list[Asked] = []
    pending = dict.fromkeys(left, 0)
    while len(batch) < most:
        before = len(batch)
        for i, arm in enumerate(arms):
            if len(batch) == most or pending[i] >= left[i] or asks[i] <= 0:
                continue
            if (found := arm.ask()) is None:
                continue
            asks[i] -= 1
            pending[i] += 1
            batch.append(Asked(arm, *found))
        if len(batch) == before:
            break
    return batch
