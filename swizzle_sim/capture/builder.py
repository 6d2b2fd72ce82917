"""`FollowingBuilder`: takes the place of the interpreter's builder and follows integers instead of computing data.

Addresses, masks and trip counts are followed exactly for all workgroups at once. What has no short way here is worked
out by Triton's own builder, and only if an address, a mask or a branch needs it. Loaded data and floats made of it
are unknown: a kernel that needs them is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from swizzle_sim.capture import arithmetic
from swizzle_sim.capture.exact import evaluate, gather
from swizzle_sim.capture.language import Language
from swizzle_sim.capture.record import InstructionRecorder
from swizzle_sim.capture.values import (
    Known,
    Later,
    Patterns,
    Unknown,
    Value,
    compress,
    element_type,
    force,
    item_bytes,
    known,
    refuse,
    rows_of,
    source_line,
)

NO_DATA = ("create_dot", "create_dot_scaled")  # their results are never addresses
NO_EFFECT = ("create_assume", "create_assert", "create_print", "create_barrier", "create_debug_barrier")
LOGIC = {"create_and": np.logical_and, "create_or": np.logical_or, "create_xor": np.logical_xor}
VIEWS: dict[str, Callable] = {
    "create_expand_dims": np.expand_dims,
    "create_broadcast": lambda data, shape: np.broadcast_to(data, tuple(shape)),
    "create_reshape": lambda data, shape, allow_reorder=False: data.reshape(tuple(shape)),
    "create_trans": lambda data, order: np.transpose(data, tuple(order)),
    "create_unsplat": lambda data: np.full((1,), data.flat[0], data.dtype),
}


class FollowingBuilder:
    """Stands in for ``InterpreterBuilder``, for the workgroups of (3, n) program ids ``pids``."""

    def __init__(self, language: Language, recorder: InstructionRecorder, pids: np.ndarray, grid, index_data, claims):
        self._language, self._table, self._recorder = language, recorder.table, recorder
        self._pids, self._grid, self._index_data = pids, grid, index_data
        self._claims, self._turn, self._works = claims, 0, False
        self._real = language.interpreter.InterpreterBuilder()
        self.options = language.interpreter.InterpreterOptions(sanitize_overflow=False)
        self.codegen_fns, self.arch = self._real.codegen_fns, None
        self._short = _short_ways(self._table)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._real, name):
            raise AttributeError(name)
        if name.startswith("create_"):
            return lambda *args: self._create(name, args)
        return lambda *args: self.hold(getattr(self._real, name)(*args))

    def hold(self, handle: Any) -> Any:
        """Take a handle of Triton's, the same for all workgroups, for one of ours."""
        if not isinstance(handle, self._language.interpreter.TensorHandle):
            return handle
        data = np.asarray(handle.data)
        u, p = self._table.split(data)
        return Known(u, p, data.dtype, handle.dtype)

    def _create(self, name: str, args: Sequence[Any]) -> Any:
        if name in NO_EFFECT:
            return None
        handles = [a for a in args if isinstance(a, Value)]
        unknown = next((a for a in handles if isinstance(a, Unknown)), None)
        if name in NO_DATA:
            return unknown or Unknown(f"a product of {source_line()}")
        if unknown is not None:
            return (unknown, unknown) if name == "create_split" else unknown
        if all(isinstance(a, Known) for a in handles):
            found = self._short_way(name, args)
            if found is not None:
                return found
        exact = partial(self._exact, getattr(self._real, name), args, name, source_line())
        if name == "create_split":
            return Later(lambda: exact()[0]), Later(lambda: exact()[1])
        return Later(exact)

    def _short_way(self, name: str, args: Sequence[Any]) -> Known | None:
        if name in VIEWS and args[0].kind.kind in "biu":
            rest = tuple(tuple(a) if isinstance(a, list) else a for a in args[1:])
            return arithmetic.reshape(self._table, args[0], (name, *rest), lambda data: VIEWS[name](data, *rest))
        way = self._short.get(name)
        return way(*args) if way else None

    def _exact(self, function: Callable, args: Sequence[Any], name: str, line: str) -> Any:
        settled = [force(a) if isinstance(a, Value) else a for a in args]
        unknown = next((a for a in settled if isinstance(a, Unknown)), None)
        if unknown is not None:
            return (unknown, unknown) if name == "create_split" else unknown
        found = self._short_way(name, settled)
        if found is not None:
            return found
        return evaluate(self._table, function, settled, self._language.interpreter.TensorHandle, name, line)

    def later_exact(self, function: Callable, args: Sequence[Value], name: str) -> Later:
        """Work out ``function`` of handles only when needed; unknown if one of them is."""
        return Later(partial(self._exact, function, args, name, source_line()))

    # programs

    def create_get_program_id(self, axis: int) -> Known:
        """Program ids of all workgroups."""
        return self.integer(compress(self._pids[axis]))

    def create_get_num_programs(self, axis: int) -> Known:
        """Side of the grid."""
        return self.integer(self._grid[axis])

    def integer(self, values: Any, kind: str = "int32") -> Known:
        """A scalar: an int, or one for each workgroup."""
        return Known(values, self._table.intern(np.zeros(1, np.int64)), kind, getattr(self._language.tl, kind))

    def create_make_range(self, ret_ty: Any, start: int, stop: int) -> Known:
        """``tl.arange``."""
        p = self._table.intern(np.arange(stop - start, dtype=np.int64))
        return Known(int(start), p, np.int32, self._language.tl.int32)

    def create_addptr(self, pointer: Value, offset: Value) -> Value:
        """Pointer plus items."""
        pointer, offset = known(pointer, "a pointer"), known(offset, "an address")
        step = self.integer(item_bytes(pointer.dtype), "int64")
        wide = Known(offset.u, offset.p, np.int64, offset.dtype)
        moved = arithmetic.multiply(self._table, wide, step)
        found = moved and arithmetic.add(self._table, Known(pointer.u, pointer.p, np.int64, pointer.dtype), moved)
        if found is None:
            refuse("an address leaves 64 bits")
        return Known(found.u, found.p, np.uint64, pointer.dtype)

    # memory

    def create_load(self, pointer, *how):
        """Load without mask; ``how`` is what each version of Triton says of caches."""
        return self.create_masked_load(pointer, None, None)

    def create_store(self, pointer, value, *how):
        """Store without mask."""
        return self.create_masked_store(pointer, value, None)

    def create_masked_load(self, pointer, mask, other, *how):
        """Record a load; the items are known only of index tensors."""
        where, under, owners = self._touch(pointer, mask, "load", is_write=False)
        name = " or ".join(self._recorder.space.names[i] for i in owners)
        line = source_line()
        if element_type(where.dtype).is_floating():
            return Unknown(f"floats that {line} loads from {name}")
        if any(i not in self._index_data for i in owners):
            return Unknown(f"what {line} loads from {name}, which is not declared with is_index=True")
        return Later(partial(self._index_items, where, under, other, line))

    def _index_items(self, where: Known, under: Known | None, other: Value | None, line: str) -> Value:
        handle_of = self._language.interpreter.TensorHandle
        return gather(self._table, self._recorder.space, self._index_data, where, under, other, handle_of, line)

    def create_masked_store(self, pointer, value, mask, *how):
        """Record a store."""
        self._touch(pointer, mask, "store", is_write=True, value=value)

    def create_atomic_rmw(self, op, pointer, value, mask, sem, scope):
        """Record an atomic as a read and a write, or claim a tile, which is not recorded; its value is unknown."""
        where = known(pointer, "the address of this atomic")
        owners = self._recorder.space.owner(np.unique(where.u)).tolist()
        if any(self._recorder.space.arrays[i].is_counter for i in owners):
            return self._claim(op, where, value)
        return self._atomic(pointer, mask)

    def _atomic(self, pointer: Value, mask: Value | None) -> Unknown:
        """Record what the L2 reads where its lines are not there, and what it writes."""
        for is_write in (False, True):
            self._touch(pointer, mask, "atomic", is_write=is_write)
        return Unknown(f"what the atomic at {source_line()} returns")

    def _claim(self, op: Any, where: Known, value: Value) -> Known:
        """Value of a tile counter before 1 is added, see `TileClaims`."""
        scalar, added = self._table.intern(np.zeros(1, np.int64)), force(value)
        one = isinstance(added, Known) and not isinstance(added.u, np.ndarray) and (added.u, added.p) == (1, scalar)
        if not str(op).endswith(".ADD") or not one or isinstance(where.p, np.ndarray) or where.p != scalar:
            refuse("a tile counter is claimed from by adding 1 to one item")
        if self._works and not self._turn:
            refuse("touches memory before it claims its tile")
        workgroups = self._recorder.workgroups
        self._turn += 1
        kind = element_type(where.dtype).name
        if self._works:
            return self.integer(self._claims.spent(self._turn), kind)
        address = np.broadcast_to(where.u, workgroups.shape).astype(np.int64)
        return self.integer(self._claims.values(self._turn - 1, address, workgroups), kind)

    def create_atomic_cas(self, pointer, expected, value, sem, scope):
        """Record a compare-and-swap as other atomics; what it returns is unknown."""
        return self._atomic(pointer, None)

    def create_atomic_load(self, pointer, mask, sem, scope):
        """Record an atomic load; it may see what other workgroups wrote, so its items are unknown."""
        self._touch(pointer, mask, "load", is_write=False)
        return Unknown(f"what the atomic load at {source_line()} returns")

    def create_atomic_store(self, pointer, value, mask, sem, scope):
        """Record an atomic store."""
        self._touch(pointer, mask, "store", is_write=True)

    def create_atomic_poll(self, *args):
        """Refuse to wait for another workgroup."""
        refuse("waits for another workgroup")

    def _touch(self, pointer: Value, mask: Value | None, what: str, *, is_write: bool, value: Value | None = None):
        """Record; pointers, mask, and the tensors that are touched."""
        where = known(pointer, f"the address of this {what}")
        under = None if mask is None else known(mask, f"the mask of this {what}")
        owners = self._recorder.touch(where, under, item_bytes(where.dtype), is_write)
        self._works |= any(owner not in self._index_data for owner in owners)
        for owner in owners:
            if is_write and owner in self._index_data and not self._is_there(where, under, value):
                refuse(f"writes {self._recorder.space.names[owner]}, whose values decide addresses")
        return where, under, owners

    def _is_there(self, where: Known, under: Known | None, value: Value | None) -> bool:
        """Whether index memory holds what a store puts there already, as a flag that is set a second time."""
        stored = None if value is None else force(value)
        if not isinstance(stored, Known):
            return False
        found = self._index_items(where, under, stored, source_line())
        same = arithmetic.compare(self._table, found, stored, "EQ") if isinstance(found, Known) else None
        return same is not None and all(self._table[p].all() for (p,) in rows_of([same.p])[0])

    # tensor descriptors

    def create_make_tensor_descriptor(self, base, shape, strides, tensor_shape, is_signed, padding="zero"):
        """Keep what a descriptor is made of."""
        sides = [int(n) for n in tensor_shape]
        return (known(base, "a descriptor"), shape, strides, sides)

    def create_descriptor_load(self, descriptor, indices, *how):
        """Record a block load."""
        pointer, mask = self._block(descriptor, indices)
        return self.create_masked_load(pointer, mask, None)

    def create_descriptor_store(self, descriptor, value, indices):
        """Record a block store."""
        pointer, mask = self._block(descriptor, indices)
        self.create_masked_store(pointer, value, mask)

    def create_descriptor_gather(self, *args):
        """Refuse: no AMD GPU that is modelled here has it."""
        refuse("gathers, scatters and atomics of a tensor descriptor are not followed")

    create_descriptor_scatter = create_descriptor_reduce = create_descriptor_gather

    def create_inline_asm(self, *args):
        """Refuse: the interpreter cannot run it, so nothing could be compared."""
        refuse("inline assembly is not followed")

    def _block(self, descriptor, indices) -> tuple[Value, Value | None]:
        """Pointers and mask of a descriptor's block."""
        pointer, shape, strides, sides = descriptor
        mask = None
        for axis, (index, side) in enumerate(zip(indices, sides, strict=True)):
            spread = [1] * len(sides)
            spread[axis] = side
            lane = self.create_reshape(self.create_make_range(None, 0, side), spread, False)
            offset = self.create_add(index, lane)
            inside = self.create_and(
                self.create_icmpSGE(offset, self.integer(0)), self.create_icmpSLT(offset, shape[axis])
            )
            wide = self.create_int_cast(offset, self._language.tl.int64, True)
            pointer = self.create_addptr(pointer, self.create_mul(wide, strides[axis]))
            mask = inside if mask is None else self.create_and(mask, inside)
        return pointer, mask


def _short_ways(table: Patterns) -> dict[str, Callable[..., Known | None]]:
    """Functions of `arithmetic` by the builder's names."""

    def splat(ret_ty, arg):
        shape = tuple(int(n) for n in ret_ty.shape)
        if arg.kind.kind not in "biu":
            return None
        return arithmetic.reshape(table, arg, ("splat", shape), lambda data: np.full(shape, data.flat[0], data.dtype))

    def compare(how):
        return lambda a, b: arithmetic.compare(table, a, b, how)

    def pick(how):
        def way(a, b):
            below = arithmetic.compare(table, a, b, how)
            return below and arithmetic.select(table, below, a, b)

        return way

    def cast(a, dst_type, *_):
        scalar = dst_type.scalar
        if scalar.is_ptr():
            return arithmetic.convert(table, a, np.dtype(np.uint64), scalar)
        if not scalar.is_int():
            return None
        kind = np.dtype(bool) if scalar.primitive_bitwidth == 1 else np.dtype(scalar.name)
        return arithmetic.convert(table, a, kind, scalar)

    ways: dict[str, Callable[..., Known | None]] = {
        "create_splat": splat,
        "create_add": lambda a, b: arithmetic.add(table, a, b),
        "create_sub": lambda a, b: arithmetic.add(table, a, b, -1),
        "create_mul": lambda a, b: arithmetic.multiply(table, a, b),
        "create_select": lambda c, a, b: arithmetic.select(table, c, a, b),
    }
    for name, how in (("min", "LE"), ("max", "GE")):
        ways[f"create_{name}si"] = ways[f"create_{name}ui"] = pick(how)
    for sign in "su":
        ways[f"create_{sign}div"] = lambda a, b: arithmetic.divide(table, a, b, remainder=False)
        ways[f"create_{sign}rem"] = lambda a, b: arithmetic.divide(table, a, b, remainder=True)
    for how in ("LT", "LE", "GT", "GE"):
        ways[f"create_icmpS{how}"] = ways[f"create_icmpU{how}"] = compare(how)
    for how in ("EQ", "NE"):
        ways[f"create_icmp{how}"] = compare(how)
    for name, function in LOGIC.items():
        ways[name] = lambda a, b, name=name, function=function: arithmetic.logic(table, a, b, name, function)
    for name in ("create_int_cast", "create_bitcast", "create_int_to_ptr", "create_ptr_to_int"):
        ways[name] = cast
    return ways
