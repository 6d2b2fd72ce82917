"""Finds certificates: a linear program over products of facts, its solution made exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from swizzle_sim.proof.certificate import Certificate, refutes
from swizzle_sim.proof.polynomial import Monomial, Poly, poly

MOST_PRODUCTS = 2500  # columns of one program; with more it is not tried
_ZERO = 1e-9
Column = tuple[int, int, Monomial]  # a product of facts (i, j, ()), or (-1 - equality, 0, monomial)


def find(facts: Sequence[Poly], equalities: Sequence[Poly], effort: int = 3) -> Certificate | None:
    """Certificate that facts (each at least 0) and equalities (each 0) contradict each other.

    Parameters
    ----------
    facts, equalities : sequence of Poly
        The first fact is the negation of what is to be shown: its products are tried first.
    effort : int
        1: facts alone; 2: products with the first fact; 3: products of any two.

    Returns
    -------
    certificate : Certificate or None
        Checked. None says nothing: there may be one of a higher degree.
    """
    for level in range(min(effort, 2), effort + 1):
        columns = dict(_columns(facts, equalities, level))
        if len(columns) > MOST_PRODUCTS:
            return None
        found = _solve(columns)
        if found is not None:
            certificate = Certificate(
                tuple((value, *one) for one, value in found.items() if one[0] >= 0),
                tuple((value, -1 - one[0], one[2]) for one, value in found.items() if one[0] < 0),
            )
            if refutes(certificate, facts, equalities):
                return certificate
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
    from scipy.optimize import linprog
    from scipy.sparse import csc_matrix

    rows: dict[Monomial, int] = {(): 0}
    at, of, value = [], [], []
    for k, column in enumerate(columns.values()):
        for key, coefficient in column.terms.items():
            at.append(rows.setdefault(key, len(rows)))
            of.append(k)
            value.append(float(coefficient))
    matrix = csc_matrix((value, (at, of)), shape=(len(rows), len(columns)))
    scale = np.asarray(abs(matrix).max(axis=0).todense()).ravel()
    scale[scale == 0] = 1.0
    matrix = matrix.multiply(1 / scale).tocsc()
    target = np.zeros(len(rows))
    target[0] = -1.0
    bounds = [(0, None) if one[0] >= 0 else (None, None) for one in columns]
    cost = np.array([1.0 if one[0] >= 0 else 0.0 for one in columns])
    found = linprog(cost, A_ub=matrix, b_ub=target, bounds=bounds, method="highs-ds")
    if found.status != 0:
        return None
    used = [one for one, weight in zip(columns, found.x, strict=True) if abs(weight) > _ZERO]
    tight = [key for key, slack in zip(rows, found.slack, strict=True) if abs(slack) < _ZERO]
    return _exact(used, [columns[one] for one in used], tight)


def _exact(used: list[Column], columns: list[Poly], keys: list[Monomial]) -> dict[Column, Fraction] | None:
    """Solve for the coefficients of a few columns in fractions; None if they do not determine a valid solution."""
    rows = [[Fraction(column.terms.get(key, 0)) for column in columns] for key in keys]
    for row, key in zip(rows, keys, strict=True):
        row.append(Fraction(-1 if key == () else 0))
    pivots: list[int] = []
    for column in range(len(columns)):
        pivot = next((i for i in range(len(pivots), len(rows)) if rows[i][column]), None)
        if pivot is None:
            return None
        k = len(pivots)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        head = rows[k][column]
        rows[k] = [entry / head for entry in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[column]:
                factor = row[column]
                rows[i] = [a - factor * b if b else a for a, b in zip(row, rows[k], strict=True)]
        pivots.append(column)
    return {one: rows[k][-1] for k, one in enumerate(used)}


def holds(goal: Poly, facts: Sequence[Poly], equalities: Sequence[Poly], effort: int = 3) -> Certificate | None:
    """Certificate that a goal is at least 0: its negation, ``goal <= -1``, contradicts the facts."""
    return find([poly(-1) - goal, *facts], equalities, effort)
