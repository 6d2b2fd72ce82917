"""What a handle holds while a kernel is replayed for many workgroups at once: known, known later, or not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


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
    """A block whose items the replay does not follow; ``reason`` says in words where they come from."""

    __slots__ = ("reason",)

    def __init__(self, reason: str, dtype: Any = None):
        super().__init__(dtype)
        self.reason = reason


class Later(Value):
    """A block worked out only if an address, a mask or a branch asks for it."""

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
