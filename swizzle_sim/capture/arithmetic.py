"""Integer arithmetic on known blocks, all workgroups at once.

Each function gives None where its short way does not hold; the caller then works the operation out with Triton's own
interpreter, one workgroup of each kind at a time. Source: the semantics are those of ``InterpreterBuilder`` in Triton.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np

from swizzle_sim.capture.values import Column, Known, Patterns, compress, rows_of, spread

SAFE = 2**62


def bounds(table: Patterns, u: Column, p: Column) -> tuple[int, int]:
    """Smallest and largest item of any workgroup."""
    return int(np.min(u + table.low(p))), int(np.max(u + table.high(p)))


def fits(table: Patterns, u: Column, p: Column, kind: np.dtype) -> bool:
    """Whether every item is in the range of a type; pointers and uint64 count as int64."""
    low, high = bounds(table, u, p)
    if kind.kind == "b":
        return False
    info = np.iinfo(np.int64 if kind == np.uint64 else kind)
    return int(info.min) <= low and high <= int(info.max)


def is_flat(table: Patterns, p: Column) -> bool:
    """Whether every lane of a workgroup holds the same integer."""
    return not np.any(table.high(p)) and not np.any(table.low(p))


def combine(table: Patterns, name: Hashable, function: Callable, *columns: Column) -> tuple[Column, Column]:
    """``(u, p)`` of a function of the columns' rows, worked out once for each row."""
    rows, inverse = rows_of(columns)
    found = [table.remember((name, *row), partial(lambda row: table.split(function(*row)), row)) for row in rows]
    return spread([u for u, _ in found], inverse), spread([p for _, p in found], inverse)


def _checked(table: Patterns, u: Column, p: Column, kind: np.dtype, dtype) -> Known | None:
    return Known(compress(u), p, kind, dtype) if fits(table, u, p, kind) else None


def add(table: Patterns, a: Known, b: Known, sign: int = 1) -> Known | None:
    """``a + sign * b``."""
    kind = np.result_type(a.kind, b.kind)
    if kind.kind not in "iu":
        return None
    first, p = combine(table, f"add{sign}", lambda pa, pb: table[pa] + sign * table[pb], a.p, b.p)
    return _checked(table, a.u + sign * b.u + first, p, kind, a.dtype)


def multiply(table: Patterns, a: Known, b: Known) -> Known | None:
    """``a * b`` where one of them has the same integer in every lane."""
    kind = np.result_type(a.kind, b.kind)
    if kind.kind not in "iu":
        return None
    if not is_flat(table, b.p):
        if not is_flat(table, a.p):
            return None
        a, b = b, a
    if max(map(abs, bounds(table, a.u, a.p))) * max(map(abs, bounds(table, b.u, b.p))) >= SAFE:
        return None
    factor = 0 if is_flat(table, a.p) else b.u  # where it changes the pattern
    first, p = combine(table, "mul", lambda pa, pb, ub: table[pa] * (ub + table[pb]), a.p, b.p, factor)
    return _checked(table, a.u * b.u + first, p, kind, a.dtype)


def divide(table: Patterns, a: Known, b: Known, *, remainder: bool) -> Known | None:
    """``a // b`` or ``a % b`` with C semantics, ``b`` the same integer in every lane and not 0."""
    if a.kind.kind not in "iu" or b.kind.kind not in "iu" or not is_flat(table, b.p) or not np.all(b.u):
        return None
    kind = np.result_type(a.kind, b.kind)
    low, _ = bounds(table, a.u, a.p)
    if is_flat(table, a.p):
        u, first = np.fmod(a.u, b.u), 0
        if not remainder:
            u = (a.u - u) // b.u
        _, p = combine(table, "shape", lambda pa, pb: table[pa] + table[pb], a.p, b.p)
    elif low < 0 or np.any(np.less(b.u, 0)):
        return None
    else:
        way, u = (np.mod, 0) if remainder else (np.floor_divide, a.u // b.u)
        columns = a.p, b.p, b.u, a.u % b.u
        first, p = combine(table, way, lambda pa, pb, d, m: way(m + table[pa], d + table[pb]), *columns)
    return _checked(table, u + first, p, kind, a.dtype)


_SIDES: dict[str, tuple[Any, bool]] = {
    "LT": ("left", False),
    "GE": ("left", True),
    "LE": ("right", False),
    "GT": ("right", True),
}


def compare(table: Patterns, a: Known, b: Known, how: str) -> Known | None:
    """Truth of ``a how b`` for how in LT, LE, GT, GE, EQ, NE.

    Where ``a - b = d + D[lane]``, the outcome changes only as ``-d`` passes one of D's distinct values.
    """
    if a.kind.kind not in "iu" or b.kind.kind not in "iu":
        return None
    if max(map(abs, (*bounds(table, a.u, a.p), *bounds(table, b.u, b.p)))) >= SAFE:
        return None
    first, difference = combine(table, "add-1", lambda pa, pb: table[pa] - table[pb], a.p, b.p)
    limit = -(a.u - b.u + first)
    rows, inverse = rows_of([difference])
    rank = np.zeros(np.shape(limit), np.int64) if inverse is None else np.zeros(inverse.size, np.int64)
    side = _SIDES.get(how, ("", False))[0]
    for number, (pattern,) in enumerate(rows):
        values = table.remember(("sorted", pattern), partial(np.unique, table[pattern]))
        here = ... if inverse is None else inverse == number
        wanted = limit if inverse is None or np.ndim(limit) == 0 else limit[here]
        rank[here] = np.searchsorted(values, wanted, side) if side else _place(values, wanted)
    _, p = combine(table, how, lambda d, r: _outcome(table, d, r, how), difference, _column(rank))
    return Known(0, p, bool, a.dtype)


def _place(values: np.ndarray, wanted) -> np.ndarray:
    """Where ``wanted`` is in sorted values; -1 where it is not."""
    at = np.minimum(np.searchsorted(values, wanted), values.size - 1)
    return np.where(values[at] == wanted, at, -1)


def _outcome(table: Patterns, difference: int, rank: int, how: str) -> np.ndarray:
    array = table[difference]
    values = np.unique(array)
    if how in ("EQ", "NE"):
        equal = array == values[rank] if rank >= 0 else np.zeros(array.shape, bool)
        return equal if how == "EQ" else ~equal
    below = array < values[rank] if rank < values.size else np.ones(array.shape, bool)
    return ~below if _SIDES[how][1] else below


def logic(table: Patterns, a: Known, b: Known, name: str, function: Callable) -> Known | None:
    """``and``, ``or``, ``xor`` of truth values."""
    if a.kind.kind != "b" or b.kind.kind != "b":
        return None
    _, p = combine(table, name, lambda pa, pb: function(table[pa], table[pb]), a.p, b.p)
    return Known(0, p, bool, a.dtype)


def select(table: Patterns, where: Known, a: Known, b: Known) -> Known | None:
    """``a`` where true, else ``b``."""
    kind = np.result_type(a.kind, b.kind)
    if where.kind.kind != "b":
        return None
    if kind.kind == "b":
        _, p = combine(table, "select", lambda c, pa, pb: np.where(table[c], table[pa], table[pb]), where.p, a.p, b.p)
        return Known(0, p, bool, a.dtype)
    if kind.kind not in "iu":
        return None
    every, none = table.low(where.p) == 1, table.high(where.p) == 0
    u = np.where(none, b.u, a.u)
    gap = np.where(every | none, 0, np.subtract(b.u, a.u))

    def choose(c, pa, pb, gap):
        return np.where(table[c], table[pa], table[pb] + gap)

    first, p = combine(table, "choose", choose, where.p, a.p, b.p, _column(gap))
    return _checked(table, u + first, p, kind, a.dtype)


def _column(values: np.ndarray) -> Column:
    return compress(values) if values.ndim else int(values)


def convert(table: Patterns, a: Known, kind: np.dtype, dtype) -> Known | None:
    """Integer of another width, where every item is in range; truth values become 0 and 1."""
    if kind.kind not in "iu":
        return Known(a.u, a.p, kind, dtype) if a.kind.kind == kind.kind == "b" else None
    if a.kind.kind == "b":
        u, p = combine(table, "int", lambda pa: table[pa].astype(np.int64), a.p)
        return Known(u, p, kind, dtype)
    return _checked(table, a.u, a.p, kind, dtype) if a.kind.kind in "iu" else None


def reshape(table: Patterns, a: Known, name: tuple, function: Callable[[np.ndarray], np.ndarray]) -> Known:
    """Move lanes about: ``function`` of each pattern; ``name`` identifies the function."""
    first, p = combine(table, ("lanes", *name), lambda pa: function(table[pa]), a.p)
    return Known(compress(a.u + first) if a.kind.kind in "iu" else 0, p, a.kind, a.dtype)
