"""Samplers of a parameter space, all of it or Optuna's TPE, by suggest and tell."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from swizzle_sim.search.templates.space import Space, Values
from swizzle_sim.search.templates.template import ParameterRange

REFUSED_IN_A_ROW = 200  # draws that are not allowed or known, until a space counts as exhausted
SAMPLED_IN_A_ROW = 4  # the same of Optuna, whose trials are slow; then random draws take over
NEIGHBOUR_EVERY = 2  # one suggestion in so many is a neighbour of the best
LOG_FROM = 16  # a range whose high end is this many times its low end is sampled in log scale


class Listed:
    """All points of a space in their order; each is suggested as a handle and values."""

    whole = True

    def __init__(self, space: Space):
        self._points, self._taken = space.points(), list[Values]()

    def suggest(self) -> tuple[Any, Values] | None:
        """Next point."""
        values = next((one for one in self._points if one not in self._taken), None)
        return None if values is None else (None, values)

    def take(self, values: Values) -> None:
        """Pass over the point when its turn comes."""
        self._taken.append(values)

    def tell(self, handle: Any, costs: Sequence[float] | None) -> None:
        """Nothing is learnt."""


def random_points(space: Space, seed: int) -> Iterator[Values]:
    """Independent draws, each combination once."""
    draw, seen, refused = random.Random(seed), set[tuple[int, ...]](), 0
    while refused < REFUSED_IN_A_ROW:
        values = {one.name: draw.choice(one.values) for one in space.ranges}
        refused += 1
        if (key := tuple(values.values())) not in seen and space.allows(values):
            seen.add(key)
            refused = 0
            yield values


class Optuna:
    """Optuna's TPE; the start of the space first, and every other time a neighbour of the best."""

    whole = False  # not all of the space is tried

    def __init__(self, space: Space, seed: int, n_objectives: int = 1):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space, self._pruned, self._failed = space, optuna.trial.TrialState.PRUNED, optuna.trial.TrialState.FAIL
        self._n_objectives = n_objectives
        startup = max(4, 2 * len(space.ranges))
        tpe = optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup, multivariate=True)
        self._study = optuna.create_study(directions=["minimize"] * n_objectives, sampler=tpe)
        self._suggested: set[tuple[int, ...]] = set()
        self._values: dict[int, Values] = {}
        self._drawn = random_points(space, seed)
        self._best: tuple[float, Values] | None = None
        self._patience = SAMPLED_IN_A_ROW

    def suggest(self) -> tuple[Any, Values] | None:
        """Draw trials until one is new and allowed."""
        if not self._suggested:
            return self._trial(self._space.start)
        if len(self._suggested) % NEIGHBOUR_EVERY == 0 and (near := self._neighbour()) is not None:
            return self._trial(near)
        for _ in range(self._patience):
            if (found := self._trial()) is not None:
                self._patience = min(SAMPLED_IN_A_ROW, self._patience + 1)
                return found
        self._patience = max(1, self._patience // 2)
        # the sampler repeats itself: look elsewhere
        drawn = next((one for one in self._drawn if tuple(one.values()) not in self._suggested), None)
        return None if drawn is None else self._trial(drawn)

    def take(self, values: Values) -> Any:
        """Trial of given values."""
        found = self._trial(values)
        assert found is not None, values
        return found[0]

    def _trial(self, values: Values | None = None) -> tuple[Any, Values] | None:
        """One trial, of the sampler or of given values; None if it is known or not allowed."""
        if values is not None:
            given = ((one, values[one.name]) for one in self._space.ranges)
            self._study.enqueue_trial({one.name: at if one.is_span else one.values.index(at) for one, at in given})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # samplers that fall back to random draws warn each time
            trial = self._study.ask()
            values = {one.name: _value(trial, one) for one in self._space.ranges}
        key = tuple(values.values())
        if key not in self._suggested and self._space.allows(values):
            self._suggested.add(key)
            self._values[trial.number] = values
            return trial, values
        self._study.tell(trial, state=self._failed)
        return None

    def tell(self, handle: Any, costs: Sequence[float] | None) -> None:
        """Report costs to Optuna; a trial without any counts as worse than all others."""
        if costs is None:
            state = self._pruned if self._n_objectives == 1 else self._failed  # pruning has one objective
            self._study.tell(handle, state=state)
        else:
            self._study.tell(handle, list(costs))
            if self._best is None or sum(costs) < self._best[0]:
                self._best = sum(costs), self._values[handle.number]

    def _neighbour(self) -> Values | None:
        """A new combination that differs from the best in one parameter: hit rates are jagged."""
        if self._best is None:
            return None
        for one in self._space.ranges:
            for value in _steps(one, self._best[1][one.name]):
                near = {**self._best[1], one.name: value}
                if tuple(near.values()) not in self._suggested and self._space.allows(near):
                    return near
        return None


def _value(trial: Any, one: ParameterRange) -> int:
    if not one.is_span:
        return one.values[trial.suggest_int(one.name, 0, len(one.values) - 1)]
    low, high = one.values[0], one.values[-1]
    return trial.suggest_int(one.name, low, high, log=low >= 1 and high >= LOG_FROM * low)


def _steps(one: ParameterRange, value: int) -> list[int]:
    """Values near one: the next on both sides, then double and half."""
    at = one.values.index(value)
    near = [one.values[i] for i in (at + 1, at - 1, at + 2, at - 2) if 0 <= i < len(one.values)]
    return near + [v for v in (2 * value, value // 2, 4 * value, value // 4) if v in one.values and v not in near]


Sampler = Listed | Optuna


def make_sampler(space: Space, seed: int, *, n_objectives: int = 1, budget: int = 0) -> Sampler:
    """Sampler of all of a space where ``budget`` covers it, else TPE."""
    return Listed(space) if not space.ranges or space.size <= budget else Optuna(space, seed, n_objectives)
