"""The address space of a capture: each tensor argument on a 2 MiB boundary, in the order of the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.launch import Array
from xcd_model import Tensor
from xcd_model.trace.builder import TENSOR_ALIGN_BYTES


@dataclass(frozen=True, eq=False)
class Space:
    """Tensors and where they are.

    Parameters
    ----------
    names : tuple of str
    arrays : tuple of Array
    base, size : (n_tensors,) int64 [bytes]
    """

    names: tuple[str, ...]
    arrays: tuple[Array, ...]
    base: np.ndarray = field(repr=False)
    size: np.ndarray = field(repr=False)

    @classmethod
    def place(cls, arrays: Mapping[str, Array]) -> Space:
        """Place tensors as `xcd_model.trace.builder.TraceBuilder` does."""
        size = np.array([a.n_items * a.item_bytes for a in arrays.values()], np.int64)
        room = -(-size // TENSOR_ALIGN_BYTES) * TENSOR_ALIGN_BYTES
        return cls(
            tuple(arrays), tuple(arrays.values()), np.concatenate([[0], np.cumsum(room)[:-1]]).astype(np.int64), size
        )

    def owner(self, address):
        """Tensor whose room holds each address; the nearest before it, so bounds are still to be checked."""
        return np.maximum(np.searchsorted(self.base, address, side="right") - 1, 0)

    def tensors(self, line_bytes: int) -> tuple[Tensor, ...]:
        """As a trace lists them."""
        return tuple(
            Tensor(name, int(base) // line_bytes, -(-int(size) // line_bytes), int(size))
            for name, base, size in zip(self.names, self.base, self.size, strict=True)
        )

    def outside(self, first, end) -> np.ndarray:
        """Whether bytes ``first .. end - 1`` leave the tensor that ``first`` is in."""
        owner = self.owner(first)
        return (np.less(first, self.base[owner])) | (np.greater(end, self.base[owner] + self.size[owner]))
