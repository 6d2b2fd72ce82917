"""As much of a torch tensor, over numpy memory, as Triton's interpreter asks for: no torch, no copies."""

from __future__ import annotations

import numpy as np

GUARD_ITEMS = 64  # before and after a tensor, where no program may store
STORED_AS = {"bf16": "uint16", "fp8e4": "uint8", "fp8e5": "uint8", "fp16": "float16", "fp32": "float32"}
STORED_AS |= {"fp64": "float64"}
TORCH_NAMES = {"bf16": "bfloat16", "fp8e4": "float8_e4m3fn", "fp8e5": "float8_e5m2"}


class Tensor:
    """A tensor between guards, its own storage.

    Parameters
    ----------
    dtype : str
        A key of `swizzle_sim.launch.ITEM_BYTES`.
    shape, strides : tuple of int
        Strides in items.
    n_items : int
        From the first item to the last.
    """

    def __init__(self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], n_items: int):
        stored = np.dtype(STORED_AS.get(dtype, dtype))
        self.memory = np.zeros(n_items + 2 * GUARD_ITEMS, stored)  # pages nobody touches cost nothing
        self.dtype = f"torch.{TORCH_NAMES.get(dtype, stored.name)}"
        self.shape, self.strides = shape, strides
        item = stored.itemsize
        self.values = np.lib.stride_tricks.as_strided(self.memory[GUARD_ITEMS:], shape, [s * item for s in strides])

    def poison(self, byte: int) -> None:
        """Fill every byte, guards included."""
        self.memory.view(np.uint8)[:] = byte

    def put(self, values: np.ndarray) -> None:
        """Fill it with values of its shape; bf16 and fp8 come as numbers or as their bits."""
        if values.dtype.itemsize == self.values.dtype.itemsize and self.values.dtype.kind == "u":
            values = values.view(self.values.dtype)
        elif self.dtype == "torch.bfloat16":
            bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
            values = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        self.values[...] = values.reshape(self.shape)

    def data_ptr(self) -> int:
        """Address of the first item."""
        return self.memory.ctypes.data + GUARD_ITEMS * self.memory.itemsize

    def untyped_storage(self) -> Tensor:
        """Return the tensor itself: it owns its memory."""
        return self

    def cpu(self) -> Tensor:
        """Return the tensor itself: it is where the interpreter wants it."""
        return self

    def new_empty(self, *_args, **_kwargs) -> Tensor:
        """Return the tensor itself, which the interpreter then points at its storage."""
        return self

    def set_(self, *_args) -> Tensor:
        """Point it at where it is."""
        return self

    def copy_(self, _other) -> Tensor:
        """Nothing to copy."""
        return self

    def storage_offset(self) -> int:
        """Items from the storage's start."""
        return 0

    def size(self) -> tuple[int, ...]:
        """Shape."""
        return self.shape

    def stride(self) -> tuple[int, ...]:
        """Strides in items."""
        return self.strides

    def element_size(self) -> int:
        """Bytes of an item."""
        return self.memory.itemsize
