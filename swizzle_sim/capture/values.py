"""Values of a block in many workgroups at once, and where these workgroups part.

A block of integers is ``u[w] + P[lane]``, a number that varies with the workgroup and a pattern from a small table,
whose first lane is 0. So the addresses of thousands of workgroups are one vector and a few patterns. Truth values and
floats have no ``u``. A block is known, known later, or not known. A branch or a trip count on which workgroups differ
ends the run and starts one for each part.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from xcd_model.errors import CaptureError

HERE = str(Path(__file__).parent)
# of all patterns of one capture: a quarter of the memory
MAX_BYTES = max(2 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
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
    return values[0] if inverse is None else compress(np.asarray(values, np.int64)[inverse])


class Value:
    """Stands where Triton's interpreter has a ``TensorHandle``."""

    __slots__ = ("attr", "dtype")

    def __init__(self, dtype: Any = None):
        self.dtype = dtype
        self.attr: dict[str, Any] = {}

    def get_element_ty(self):
        """Scalar type under pointers and blocks."""
        return element_type(self.dtype)

    def set_attr(self, key, value):
        """Take a hint of the kernel's; it changes nothing here."""
        self.attr[key] = value


class Known(Value):
    """A block that every workgroup's copy is known of: ``u[w] + patterns[p[w]]``.

    ``u`` and ``p`` are an int where all workgroups agree, else (n_workgroups,) int64; ``kind`` is the numpy type of
    the items, uint64 for pointers.
    """

    __slots__ = ("kind", "p", "u")

    def __init__(self, u, p, kind, dtype):
        super().__init__(dtype)
        self.u, self.p, self.kind = u, p, np.dtype(kind)


class Unknown(Value):
    """A block whose items the replay does not follow; ``reason`` is where they come from, in words."""

    __slots__ = ("reason",)

    def __init__(self, reason: str, dtype: Any = None):
        super().__init__(dtype)
        self.reason = reason


class Later(Value):
    """A block worked out only if an address, a mask or a branch needs it."""

    __slots__ = ("_make", "_value")

    def __init__(self, make: Callable[[], Value]):
        super().__init__()
        self._make: Callable[[], Value] | None = make
        self._value: Value | None = None

    def force(self) -> Value:
        """The block, known or unknown."""
        if self._value is None:
            assert self._make is not None
            self._value, self._make = force(self._make()), None
        return self._value


def force(value: Value) -> Value:
    """A value that is known or unknown."""
    return value.force() if isinstance(value, Later) else value


def element_type(dtype: Any) -> Any:
    """Scalar type under pointers and blocks."""
    while hasattr(dtype, "element_ty"):
        dtype = dtype.element_ty
    return dtype


def item_bytes(dtype: Any) -> int:
    """Bytes of one item in memory."""
    return max(1, element_type(dtype).primitive_bitwidth // 8)


class Fork(BaseException):
    """Workgroups do not agree; passes through the kernel and through Triton, which both catch ``Exception``."""

    def __init__(self, parts: list[np.ndarray]):
        super().__init__("workgroups part here")
        self.parts = parts  # positions, (n_part,) int64, of those that agree with each other in the run that ends


def agree(column) -> int:
    """The integer on which all workgroups agree; raises Fork where they do not."""
    if not isinstance(column, np.ndarray):
        return int(column)
    values, inverse = np.unique(column, return_inverse=True)
    if values.size == 1:
        return int(values[0])
    raise Fork([np.flatnonzero(inverse == i) for i in range(values.size)])


def source_line() -> str:
    """``file:line`` of the innermost frame that is neither Triton's nor ours."""
    triton = str(Path(getattr(sys.modules.get("triton"), "__file__", None) or HERE).parent)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((HERE, triton, "<")):
            return f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "the kernel"


def known(value: Value, what: str) -> Known:
    """A value that an address, a mask or a branch needs."""
    found = force(value)
    if isinstance(found, Known):
        return found
    reason = found.reason if isinstance(found, Unknown) else "a value the replay does not follow"
    refuse(f"{what} depends on {reason}")


def refuse(problem: str) -> NoReturn:
    """Refuse the kernel at the current line."""
    raise CaptureError(f"{source_line()}: {problem}", code="not-followed")
