"""Tensors of a launch in memory: where each lies, on a 2 MiB boundary in the order of the arguments, and its items.

A capture needs the items of index tensors, a full interpretation those of all tensors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.capture.device_library import bfloat16_bits
from swizzle_sim.workload.launch import Array
from xcd_model import Tensor
from xcd_model.errors import CaptureError
from xcd_model.trace.builder import TENSOR_ALIGN_BYTES

KINDS = {"fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "uint16", "fp8e4": "uint8",
         "fp8e5": "uint8", "fp8e4b8": "uint8", "fp8e5b16": "uint8"}  # fmt: skip
MEMORY_SHARE = 0.25  # of the machine's memory that inputs may take: they are drawn, handed over and laid out


@dataclass(frozen=True, eq=False)
class AddressSpace:
    """Tensors and where they are."""

    names: tuple[str, ...]
    arrays: tuple[Array, ...]
    base: np.ndarray = field(repr=False)  # (n_tensors,) int64 [bytes]
    size: np.ndarray = field(repr=False)

    @classmethod
    def place(cls, arrays: Mapping[str, Array]) -> AddressSpace:
        """Place tensors as `xcd_model.trace.builder.TraceBuilder` does."""
        size = np.array([a.n_items * a.item_bytes for a in arrays.values()], np.int64)
        room = -(-size // TENSOR_ALIGN_BYTES) * TENSOR_ALIGN_BYTES
        return cls(
            tuple(arrays), tuple(arrays.values()), np.concatenate([[0], np.cumsum(room)[:-1]]).astype(np.int64), size
        )

    def address(self, name: str, array: Array) -> int:
        """First byte of an argument, which may be a part of another's tensor."""
        return int(self.base[self.names.index(array.same_as or name)]) + array.offset * array.item_bytes

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


def real_items(
    space: AddressSpace, given: Mapping[str, np.ndarray], *, everything: bool, seed: int
) -> dict[int, np.ndarray]:
    """Items by tensor, of index tensors or of all: as given, else drawn at random, but for indices and locks."""
    wanted = [i for i, array in enumerate(space.arrays) if everything or array.is_index or array.points_to]
    check_memory([(space.names[i], int(space.size[i])) for i in wanted])
    draw = np.random.default_rng(seed)
    found = {}
    for i in wanted:
        name, array = space.names[i], space.arrays[i]
        if array.points_to:
            places = [int(space.base[space.names.index(one)]) for one in array.points_to]
            found[i] = flat_items(name, array, np.array(places, array.dtype))
        elif name in given:
            found[i] = flat_items(name, array, given[name])
        elif array.is_index:
            raise CaptureError(
                f"{name} has is_index=True, so its values decide addresses: make_inputs has to give it",
                code="arguments",
            )
        else:
            found[i] = _draw(array, draw)
    return found


def flat_items(name: str, array: Array, values: np.ndarray) -> np.ndarray:
    """Items in memory order, gaps of the strides as zeros."""
    values = np.asarray(values)
    kind = np.dtype(KINDS.get(array.dtype, array.dtype))
    if values.shape != array.shape:
        raise CaptureError(
            f"{name}: make_inputs gives shape {values.shape}, declared is {array.shape}", code="arguments"
        )
    if values.dtype != kind:
        if (kind.kind in "iub" and array.dtype != "bf16") or values.dtype.kind not in "fiub":
            raise CaptureError(f"{name}: make_inputs gives {values.dtype}, declared is {array.dtype}", code="arguments")
        values = _as_bits(values, array.dtype, kind)
    flat = np.zeros(array.n_items, kind)
    laid_out(array, flat)[...] = values
    return flat


def laid_out(array: Array, flat: np.ndarray) -> np.ndarray:
    """Items in memory order as the tensor's shape and strides have them: a view."""
    return np.lib.stride_tricks.as_strided(flat, array.shape, [s * flat.itemsize for s in array.item_strides])


def _as_bits(values: np.ndarray, dtype: str, kind: np.dtype) -> np.ndarray:
    return bfloat16_bits(values) if dtype == "bf16" else values.astype(kind)


def _draw(array: Array, draw: np.random.Generator) -> np.ndarray:
    kind = np.dtype(KINDS.get(array.dtype, array.dtype))
    if array.role == "out":
        return np.zeros(array.n_items, kind)
    if array.dtype.startswith("fp8"):
        return draw.integers(0, 0x70, array.n_items, np.uint8)  # bits of finite numbers
    if array.dtype.startswith(("fp", "bf")):
        return _as_bits(draw.standard_normal(array.n_items, np.float32), array.dtype, kind)
    if array.drawn_between:
        return draw.integers(*array.drawn_between, array.n_items, np.int16).astype(kind)
    return np.zeros(array.n_items, kind)


def check_memory(wanted: Sequence[tuple[str, int]]) -> None:
    """Refuse inputs, (name, bytes) each, that this machine has no memory for."""
    need = sum(size for _, size in wanted)
    room = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE
    if need > room:
        name, size = max(wanted, key=lambda one: one[1])
        raise CaptureError(
            f"inputs of {need / 2**30:.1f} GiB are too large for this machine's memory; the largest is {name} "
            f"({size / 2**30:.1f} GiB): use a smaller problem",
            code="memory",
        )
