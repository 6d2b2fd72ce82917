"""Finds certificates: a linear program over products of facts, its solution made exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from swizzle_sim.proof.polynomial import Monomial, Poly, poly

MOST_PRODUCTS = 2500  # columns of one program; with more it is not tried
_ZERO = 1e-13
Fact = tuple[Fraction, tuple[Poly, ...], Monomial]  # coefficient of a fact, or of a product of two, times a monomial
Equality = tuple[Fraction, Poly, Monomial]


@dataclass(frozen=True)
class Certificate:
    """Combination of facts and equalities that is below 0; the first of the facts is the one to refute."""

    facts: tuple[Fact, ...]
    equalities: tuple[Equality, ...]


Column = tuple[int, int, Monomial]  # a product of facts (i, j, ()), or (-1 - equality, 0, monomial)


def find(facts: Sequence[Poly], equalities: Sequence[Poly], effort: int = 3) -> Certificate | None:
    """Certificate that facts (each at least 0) and equalities (each 0) contradict each other."""
    for level in range(min(effort, 2), effort + 1):
        columns = dict(_columns(facts, equalities, level))
        if len(columns) > MOST_PRODUCTS:
            return None
        found = _solve(columns)
        if found is not None:
            used = {one: value for one, value in found.items() if value}
            return Certificate(
                tuple((c, tuple(facts[k] for k in (i, j) if k >= 0), one) for (i, j, one), c in used.items() if i >= 0),
                tuple((c, equalities[-1 - i], one) for (i, _, one), c in used.items() if i < 0),
            )
    return None


def _columns(facts: Sequence[Poly], equalities: Sequence[Poly], level: int) -> Iterator[tuple[Column, Poly]]:
    """Parts that a certificate may use; more of them at a higher level."""
    scales = _scales(facts[0]) if level > 1 else []
    for i, fact in enumerate(facts):
        yield (i, -1, ()), fact
        last = 0 if level == 1 or (level == 2 and i > 0) else len(facts)
        for j in range(i, last):
            yield (i, j, ()), fact * facts[j]
        for scale in scales if len(fact.terms) > 1 else ():
            yield (i, -1, scale), fact * Poly({scale: 1})
    monomials: dict[Monomial, None] = {(): None}
    if level > 1 and equalities:
        monomials |= {(name,): None for one in (*facts, *equalities) for name in sorted(one.names)}
        monomials |= dict.fromkeys(scales)
    for k, one in enumerate(equalities):
        for monomial in monomials:
            yield (-1 - k, 0, monomial), one * Poly({monomial: 1})


def _scales(goal: Poly) -> list[Monomial]:
    """Monomials of two variables or more to multiply facts with: those of the goal, and those without one variable."""
    found: dict[Monomial, None] = {}
    for key in goal.terms:
        for part in [key, *(key[:k] + key[k + 1 :] for k in range(len(key)))]:
            if len(part) > 1:
                found[part] = None
    return list(found)


def _solve(columns: dict[Column, Poly]) -> dict[Column, Fraction] | None:
    """Coefficients with which the columns add up to something below 0; those of equalities may be negative."""
    rows: dict[Monomial, int] = {(): 0}
    starts, at, value = [0], list[int](), list[float]()
    for column in columns.values():
        at += [rows.setdefault(key, len(rows)) for key in column.terms]
        value += column.terms.values()
        starts.append(len(at))
    sign = np.array([one[0] >= 0 for one in columns])
    upper = np.zeros(len(rows))
    upper[0] = -1.0
    found = _minimised(np.where(sign, 1.0, 0.0), np.where(sign, 0.0, -np.inf), upper, (starts, at, value))
    if found is None:
        return None
    used = [one for one, weight in zip(columns, found[0], strict=True) if abs(weight) > _ZERO]
    tight = [key for key, at_bound in zip(rows, found[1], strict=True) if at_bound]
    return _exact(used, [columns[one] for one in used], tight)


def _minimised(
    cost: np.ndarray, lower: np.ndarray, upper: np.ndarray, matrix: tuple[list[int], list[int], list[float]]
) -> tuple[np.ndarray, list[bool]] | None:
    """Cheapest solution of a linear program, and which rows are at their bound; None where there is none."""
    import highspy  # noqa: PLC0415 - what is never proved needs no solver

    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = cost.size, upper.size
    program.col_cost_, program.col_lower_, program.col_upper_ = cost, lower, np.full(cost.size, np.inf)
    program.row_lower_, program.row_upper_ = np.full(upper.size, -np.inf), upper
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = (
        np.array(one, kind) for one, kind in zip(matrix, (np.int32, np.int32, np.float64), strict=True)
    )
    solver = _solver()
    solver.clearModel()
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    basic = highspy.HighsBasisStatus.kBasic
    at_bound = [status != basic for status in solver.getBasis().row_status]
    return np.array(solver.getSolution().col_value), at_bound


@cache
def _solver():
    """A solver of this process. The class without callbacks: `highspy.Highs` prints a banner when it is made."""
    from highspy import _Highs  # type: ignore[attr-defined]  # noqa: PLC0415

    solver = _Highs()
    for option, choice in (("output_flag", False), ("solver", "simplex"), ("threads", 1)):
        solver.setOptionValue(option, choice)
    return solver


def _exact(used: list[Column], columns: list[Poly], keys: list[Monomial]) -> dict[Column, Fraction] | None:
    """Solve for the coefficients of a few columns in fractions; None if they do not determine a valid solution."""
    rows = [{k: Fraction(one.terms[key]) for k, one in enumerate(columns) if key in one.terms} for key in keys]
    for row, key in zip(rows, keys, strict=True):
        if key == ():
            row[-1] = Fraction(-1)  # the right-hand side; all others are 0
    for column in range(len(columns)):
        pivot = next((i for i in range(column, len(rows)) if column in rows[i]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column][column]
        chosen = rows[column] = {at: value / head for at, value in rows[column].items()}
        for i, row in enumerate(rows):
            if i != column and column in row:
                factor = row[column]
                for at, value in chosen.items():
                    row[at] = row.get(at, 0) - factor * value
                    if not row[at]:
                        del row[at]
    return {one: rows[k].get(-1, Fraction(0)) for k, one in enumerate(used)}


def holds(goal: Poly, facts: Sequence[Poly], equalities: Sequence[Poly], effort: int = 3) -> Certificate | None:
    """Certificate that a goal is at least 0: its negation, ``goal <= -1``, contradicts the facts."""
    return find([poly(-1) - goal, *facts], equalities, effort)
