"""Patterns: contents of the lanes of a block, relative to a number that varies with the workgroup.

A block of integers is ``u[w] + P[lane]`` with ``P`` from a small table, ``P`` of the first lane being 0. So the
addresses of thousands of workgroups are one vector and a few patterns. Truth values and floats have no ``u``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xcd_model.errors import CaptureError

MAX_BYTES = 2 << 30  # of all patterns of one capture
SMALL = 256  # bytes that serve as their own digest
Column = Any  # an int where all workgroups agree, else (n_workgroups,) int64


class Patterns:
    """Table of distinct arrays, and of what was worked out from them."""

    def __init__(self):
        self.arrays: list[np.ndarray] = []
        self.bytes = 0
        self._ids: dict[tuple, int] = {}
        self._known: dict[tuple, Any] = {}
        self._low, self._high = np.zeros(64, np.int64), np.zeros(64, np.int64)

    def __getitem__(self, number: int) -> np.ndarray:
        return self.arrays[number]

    def intern(self, array: np.ndarray) -> int:
        """Number of an array; equal arrays of one shape and type have one number."""
        raw = array.tobytes()
        key = (array.dtype.str, array.shape, raw if len(raw) <= SMALL else hashlib.blake2b(raw).digest())
        if key not in self._ids:
            self.bytes += len(raw)
            if self.bytes > MAX_BYTES:
                raise CaptureError(
                    "the workgroups' addresses have too little in common: more than "
                    f"{MAX_BYTES >> 30} GiB of patterns; use a smaller problem or --full"
                )
            self._ids[key] = len(self.arrays)
            self.arrays.append(np.frombuffer(raw, array.dtype).reshape(array.shape))
            self._note_range(array)
        return self._ids[key]

    def _note_range(self, array: np.ndarray) -> None:
        at = len(self.arrays) - 1
        if at == self._low.size:
            self._low, self._high = (np.concatenate([side, np.zeros_like(side)]) for side in (self._low, self._high))
        if array.dtype.kind in "bi" and array.size:
            self._low[at], self._high[at] = array.min(), array.max()

    def low(self, numbers: Column) -> Column:
        """Smallest item of each pattern."""
        return self._low[numbers]

    def high(self, numbers: Column) -> Column:
        """Largest item of each pattern."""
        return self._high[numbers]

    def split(self, array: np.ndarray) -> tuple[int, int]:
        """``(u, pattern)`` of a block that one workgroup holds."""
        if array.dtype.kind not in "iu":
            return 0, self.intern(array)
        values = array.astype(np.int64)
        first = int(values.flat[0]) if values.size else 0
        return first, self.intern(values - first)

    def remember(self, key: tuple, make: Callable[[], Any]) -> Any:
        """What ``make`` gave for this key the first time."""
        try:
            return self._known[key]
        except KeyError:
            value = self._known[key] = make()
            return value


def compress(column: Column) -> Column:
    """An int where all workgroups agree."""
    if isinstance(column, np.ndarray):
        first = column[0]
        return int(first) if (column == first).all() else column
    return int(column)


def rows_of(columns: Sequence[Column]) -> tuple[list[tuple], np.ndarray | None]:
    """Distinct rows of columns, and the row of each workgroup; None where there is one row."""
    code, is_first = None, True
    for column in columns:
        if isinstance(column, np.ndarray):
            values, inverse = np.unique(column, return_inverse=True)
            if code is not None:
                is_first = False
            code = inverse if code is None else code * values.size + inverse
            if not is_first:
                code = np.unique(code, return_inverse=True)[1]
    if code is None:
        return [tuple(columns)], None
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    picked = [c[first].tolist() if isinstance(c, np.ndarray) else [c] * first.size for c in columns]
    return list(zip(*picked, strict=True)), inverse


def spread(values: Sequence[int], inverse: np.ndarray | None) -> Column:
    """Column of the rows' values."""
    if inverse is None:
        return values[0]
    return compress(np.asarray(values, np.int64)[inverse])
