"""Real interpretation: Triton's own interpreter, one workgroup at a time, its addresses listed and coalesced.

Pointers are virtual, as in the trace; every access is checked against its tensor before memory is touched, so a bad
kernel gives an error and no crash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from swizzle_sim.capture.claims import TileClaims
from swizzle_sim.capture.follow import ControlFlowPath, assemble, program_ids
from swizzle_sim.capture.loaded_kernel import LoadedKernel
from swizzle_sim.capture.record import Templates, outside
from swizzle_sim.capture.values import item_bytes, source_line
from xcd_model import Trace
from xcd_model.errors import CaptureError
from xcd_model.trace.coalesce import Touched, coalesce, lane_axes
from xcd_model.trace.trace import SECTOR_BYTES

# Operations on memory: places of the pointer and of the mask among the operands, and whether it writes.
MEMORY = {
    "create_masked_load": (0, 1, False),
    "create_masked_store": (0, 2, True),
    "create_atomic_rmw": (1, 3, True),
    "create_atomic_cas": (0, None, True),
}
MAX_SHAPES = 1 << 14  # coalesced shapes stored for reuse


class Touch(NamedTuple):
    """One instruction of one workgroup: lines relative to ``base``; and its 32-byte sectors in order."""

    base: int
    touched: Touched
    tensor: int
    is_write: bool
    sectors: np.ndarray


class Interpreter:
    """A real builder that lists what is touched.

    A tensor without items in ``memory`` reads as zeros and drops what is written, and ``tl.dot`` adds nothing then.
    """

    def __init__(self, kernel: LoadedKernel, line_bytes: int, memory: Mapping[int, np.ndarray], claims: TileClaims):
        interpreter = kernel.language.interpreter
        self.kernel, self.space, self.line_bytes = kernel, kernel.space, line_bytes
        self.memory, self.claims = memory, claims
        self.workgroup, self._turn = 0, 0
        self.touches: list[Touch] = []
        self._shapes: dict[tuple, Touched] = {}
        self.builder = interpreter.InterpreterBuilder()
        self.builder.set_grid_dim(*kernel.grid)
        self._handle = interpreter.TensorHandle
        self._has_data = len(memory) == len(self.space.names)
        if not self._has_data:  # there is nothing to multiply
            self.builder.create_dot = lambda a, b, d, *options: d
            self.builder.is_without_data = True
        self.builder.create_assume = lambda condition: None  # the compiler takes it at its word
        self._np_type = interpreter._get_np_dtype
        for name, where in MEMORY.items():
            setattr(self.builder, name, partial(self._access, getattr(self.builder, name), *where))

    def run(self, workgroup: int) -> Counter[str]:
        """Interpret one workgroup, forgetting what was touched before; the operations of its products."""
        self.workgroup, self._turn = workgroup, 0
        self.touches.clear()
        self.builder.set_grid_idx(*program_ids(np.array([workgroup]), self.kernel.grid)[:, 0].tolist())
        return self.kernel.run(self.builder)

    def lanes(self, pointer: Any, mask: Any) -> tuple[np.ndarray, int, np.ndarray | None]:
        """Addresses of the lanes in order, bytes of an item, and which lanes are active, None for all."""
        size = item_bytes(pointer.dtype)
        address = pointer.data.astype(np.int64)
        axes = lane_axes(address, size)
        flat = np.transpose(address, axes).reshape(-1)
        if mask is None:
            return flat, size, None
        return flat, size, np.transpose(np.broadcast_to(mask.data, address.shape), axes).reshape(-1)

    def tensor_of(self, active: np.ndarray, size: int, is_write: bool) -> int:
        """Tensor that active lanes touch; none may leave it."""
        first, end = int(active.min()), int(active.max()) + size
        if self.space.outside(first, end):
            raise CaptureError(f"{source_line()}: {outside(self.space, first, end, is_write)}")
        return int(self.space.owner(first))

    def _touch(self, pointer: Any, mask: Any, is_write: bool) -> int | None:
        """List one instruction; the tensor it touches, None for none."""
        address, size, keep = self.lanes(pointer, mask)
        active = address if keep is None else address[keep]
        if active.size == 0:
            return None
        tensor = self.tensor_of(active, size, is_write)
        base = int(active.min()) // self.line_bytes
        moved = address - base * self.line_bytes
        if keep is not None:
            moved = np.where(keep, moved, -1)
        key = (size, moved.tobytes())
        if key not in self._shapes:
            if len(self._shapes) > MAX_SHAPES:
                self._shapes.clear()
            self._shapes[key] = coalesce(moved, size, self.line_bytes)
        sectors = np.unique([active // SECTOR_BYTES, (active + size - 1) // SECTOR_BYTES])
        self.touches.append(Touch(base, self._shapes[key], tensor, is_write, sectors))
        return tensor

    def _access(
        self, real: Callable, pointer_at: int, mask_at: int | None, is_write: bool, *given: Any, **named: Any
    ) -> Any:
        """Do what ``real`` does, in memory that is there; a tensor without reads as zeros."""
        pointer = given[pointer_at]
        is_rmw = pointer_at == 1
        if is_rmw and self.space.arrays[int(self.space.owner(int(pointer.data.flat[0])))].is_counter:
            return self._claim(pointer, given[2])
        under = None if mask_at is None else given[mask_at]
        if under is not None:
            under.data = under.data.astype(bool, copy=False)  # Triton's interpreter makes integers of Python's True
        if "atomic" in real.__name__:
            self._touch(pointer, under, False)
        tensor = self._touch(pointer, under, is_write)
        if tensor is None and self._has_data:
            return real(*given, **named)
        if tensor is None or tensor not in self.memory:
            kind = pointer.get_element_ty()
            return self._handle(np.zeros(pointer.data.shape, self._np_type(kind)), kind)
        moved = self.memory[tensor].ctypes.data - int(self.space.base[tensor])
        there = self._handle((pointer.data.astype(np.int64) + moved).astype(np.uint64), pointer.dtype)
        return real(*given[:pointer_at], there, *given[pointer_at + 1 :], **named)

    def _claim(self, pointer: Any, value: Any) -> Any:
        """As that of `swizzle_sim.capture.builder.FollowingBuilder`."""
        if all(self.space.arrays[touch.tensor].is_index for touch in self.touches):
            address, own = pointer.data.reshape(-1).astype(np.int64), np.array([self.workgroup])
            found = int(self.claims.values(self._turn, address, own)[0])
        else:
            found = self.claims.spent(self._turn + 1)
        self._turn += 1
        return self._handle(np.full_like(value.data, found), value.dtype)


def interpret_all(
    kernel: LoadedKernel, line_bytes: int, memory: Mapping[int, np.ndarray], on_progress: Callable[[int, int], None]
) -> tuple[Trace, Counter[str]]:
    """Trace of a launch, workgroups in order, and operations of all products; ``memory`` is changed in place."""
    total = int(np.prod(kernel.grid, dtype=np.int64))
    real = Interpreter(kernel, line_bytes, memory, TileClaims(total))
    templates, paths = Templates(), []
    flops: Counter[str] = Counter()
    for workgroup in range(total):
        flops += real.run(workgroup)
        base, number = np.empty((len(real.touches), 1), np.int64), np.empty((len(real.touches), 1), np.int32)
        for i, touch in enumerate(real.touches):
            lowest = int(touch.touched.line.min())
            moved = touch.touched._replace(line=touch.touched.line - lowest)
            base[i], number[i] = touch.base + lowest, templates.number(moved, touch.tensor, touch.is_write)
        paths.append(ControlFlowPath(np.array([workgroup], np.int64), base, number))
        on_progress(workgroup + 1, total)
    return assemble(paths, templates, kernel, line_bytes), flops
