"""What a handle holds while a kernel runs for many workgroups at once, and where these workgroups part.

A block is known, known later, or not known. A branch or a trip count on which workgroups differ ends the run and
starts one for each part.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from xcd_model.errors import CaptureError

HERE = str(Path(__file__).parent)


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
    """Workgroups do not agree; passes through the kernel and through Triton, which both catch ``Exception``.

    Parameters
    ----------
    parts : list of (n_part,) int64
        Positions of the workgroups that agree with each other, in the run that ends.
    """

    def __init__(self, parts: list[np.ndarray]):
        super().__init__("workgroups part here")
        self.parts = parts


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
    """A value that an address, a mask or a branch needs.

    Raises
    ------
    CaptureError
        If the replay does not follow it; names the line that needs it and the line it comes from.
    """
    found = force(value)
    if isinstance(found, Known):
        return found
    reason = found.reason if isinstance(found, Unknown) else "a value the replay does not follow"
    refuse(f"{what} depends on {reason}")


def refuse(problem: str) -> NoReturn:
    """Refuse the kernel at the current line."""
    raise CaptureError(f"{source_line()}: {problem}", code="not-followed")
