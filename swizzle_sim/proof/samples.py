"""Launches and workgroups drawn at random, on which a goal is tried before a certificate is looked for.

A goal that is below 0 at one of them does not follow, whatever the certificate: most questions of a proof end here, in
microseconds. Nothing is ever concluded from a goal that holds at all of them.
"""

from __future__ import annotations

import numpy as np

from swizzle_sim.proof.polynomial import Monomial, Poly

COUNT = 1500
_MOST_XCDS = 13
_EXACT = 2.0**-44  # relative error of a sum of products that is allowed for


class Samples:
    """Values of every variable at the workgroups of one path."""

    def __init__(self, count: int = 0):
        self.count = count
        self._values: dict[Monomial, np.ndarray] = {(): np.ones(count)}

    def give(self, name: str, values: np.ndarray) -> None:
        """Note the values of a new variable."""
        self._values[(name,)] = np.asarray(values, np.float64)

    def at(self, value: Poly) -> np.ndarray:
        """Values of a polynomial."""
        total = np.zeros(self.count)
        for key, coefficient in value.terms.items():
            total += self._monomial(key) * coefficient
        return total

    def below_zero(self, goal: Poly) -> bool:
        """Whether a polynomial is below 0 somewhere, with no doubt from rounding."""
        if not self.count:
            return False
        size = np.zeros(self.count)
        for key, coefficient in goal.terms.items():
            size += self._monomial(key) * abs(coefficient)
        return bool((self.at(goal) < -0.5 - size * _EXACT).any())

    def keep(self, fact: Poly) -> None:
        """Leave out the workgroups at which a fact does not hold."""
        if self.count:
            held = self.at(fact) > -0.5
            self._values = {key: values[held] for key, values in self._values.items() if len(key) < 2}
            self.count = int(held.sum())

    def _monomial(self, key: Monomial) -> np.ndarray:
        if key not in self._values:
            self._values[key] = self._monomial(key[:-1]) * self._values[key[-1:]]
        return self._values[key]


def launches(n_sides: int, literal: int, num_xcds: int | None) -> tuple[list[np.ndarray], np.ndarray]:
    """Sides and XCD counts of `COUNT` launches, small ones first of all, large beside the literals of the text."""
    draw = np.random.default_rng(n_sides)
    top = np.log(max(64, 4 * literal * (8 if n_sides == 1 else 1)))
    sides = [np.floor(np.exp(draw.random(COUNT) * top)) for _ in range(n_sides)]
    xcds = draw.integers(1, _MOST_XCDS + 1, COUNT).astype(np.float64)
    return sides, np.full(COUNT, float(num_xcds)) if num_xcds else xcds


def workgroups(total: np.ndarray, seed: int) -> np.ndarray:
    """One id below each total: any, or among the first or last few."""
    draw = np.random.default_rng(seed)
    some = np.floor(draw.random(total.size) * total)
    few = np.minimum(draw.integers(0, 20, total.size), total - 1)
    kind = draw.integers(0, 4, total.size)
    return np.where(kind == 0, few, np.where(kind == 1, total - 1 - few, some))
