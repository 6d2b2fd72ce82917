"""Block pointers, which kernels of many packages use and Triton no longer has: as pointers with a mask.

``tl.make_block_ptr``, ``tl.advance``, and ``tl.load`` and ``tl.store`` of what they give, for the interpreter and for
the compiler: base, extents, strides and offsets are carried, and a load spreads them to a block of pointers in 64 bits,
as the pass did with which older versions lowered them.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any


def give_block_pointers() -> None:
    """Put them into the language of this process, unless they are there."""
    tl: Any = importlib.import_module("triton.language")
    core = tl.core
    if hasattr(core, "block_pointer"):
        return
    core.block_pointer = block_pointer = _kind(core)
    plain_load, plain_store = core.load, core.store

    @core.builtin
    def make_block_ptr(base, shape, strides, offsets, block_shape, order=(), _semantic=None):
        sides = [_whole(core, side) for side in _items(core, block_shape)]
        wide = [_wide(core, _semantic, one) for part in (shape, strides, offsets) for one in _items(core, part)]
        if len(wide) != 3 * len(sides):
            raise ValueError("shape, strides, offsets and block_shape of a block pointer are of one length")
        return block_pointer(core.tuple([base, *wide]), sides)

    @core.builtin
    def advance(base, offsets, _semantic=None):
        moved = [_wide(core, _semantic, one) for one in _items(core, offsets)]
        kept, old = base.values[: 1 + 2 * base.rank], base.values[1 + 2 * base.rank :]
        new = [_semantic.add(one, by, sanitize_overflow=False) for one, by in zip(old, moved, strict=True)]
        return block_pointer(core.tuple([*kept, *new]), base.sides)

    @core.builtin
    def load(pointer, mask=None, other=None, boundary_check=(), padding_option="", _semantic=None, **how):
        if isinstance(pointer, block_pointer):
            pointer, mask = _spread(core, _semantic, pointer, boundary_check)
            filled = {"zero": 0.0, "nan": float("nan")}.get(_whole(core, padding_option) or "")
            other = None if mask is None else filled
        return plain_load(pointer, mask, other, _semantic=_semantic, **how)

    @core.builtin
    def store(pointer, value, mask=None, boundary_check=(), _semantic=None, **how):
        if isinstance(pointer, block_pointer):
            pointer, mask = _spread(core, _semantic, pointer, boundary_check)
        return plain_store(pointer, value, mask, _semantic=_semantic, **how)

    for function in (make_block_ptr, advance, load, store):
        function.__module__ = core.__name__  # the compiler looks for what a kernel depends on outside the language
        setattr(core, function.__name__, function)
        setattr(tl, function.__name__, function)


def _kind(core: Any) -> type:
    """Class of a block pointer, with that of its type, as the compiler carries values through branches and calls."""

    class block_pointer(core.base_value):
        def __init__(self, carried: Any, sides: Sequence[int]):
            self.carried, self.sides, self.rank = carried, list(sides), len(sides)
            self.type = block_pointer_type(carried.type, self.sides)

        @property
        def values(self) -> list[Any]:
            """Base, and of each axis its extent, then its strides, then its offsets."""
            return list(self.carried.values)

        @property
        def dtype(self) -> Any:
            """As of a pointer to one item."""
            return self.values[0].type

        def _flatten_ir(self, handles: list[Any]) -> None:
            self.carried._flatten_ir(handles)

        def _set_name(self, builder: Any, name: str) -> None:
            self.carried._set_name(builder, name)

    class block_pointer_type(core.base_type):
        def __init__(self, carried: Any, sides: Sequence[int]):
            self.carried, self.sides = carried, list(sides)

        @property
        def element_ty(self) -> Any:
            """Type of an item."""
            return self.carried.types[0].element_ty

        def __eq__(self, other: object) -> bool:
            return isinstance(other, block_pointer_type) and (self.carried, self.sides) == (other.carried, other.sides)

        __hash__ = None  # type: ignore[assignment]

        def __str__(self) -> str:
            return f"block_pointer<{self.carried}, {self.sides}>"

        def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
            carried, cursor = self.carried._unflatten_ir(handles, cursor)
            return block_pointer(carried, self.sides), cursor

        def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
            self.carried._flatten_ir_types(builder, out)

        def mangle(self) -> str:
            return f"BP{self.carried.mangle()}_{'_'.join(map(str, self.sides))}"

    return block_pointer


def _items(core: Any, given: Any) -> list[Any]:
    """Items of a tuple of the language, of Python, or a single one."""
    given = core._unwrap_if_constexpr(given)
    return list(given) if isinstance(given, core.tuple | tuple | list) else [given]


def _whole(core: Any, given: Any) -> Any:
    return core._unwrap_if_constexpr(given)


def _wide(core: Any, semantic: Any, given: Any) -> Any:
    """A scalar of 64 bits."""
    return semantic.cast(semantic.to_tensor(given), core.int64)


def _spread(core: Any, semantic: Any, pointer: Any, boundary_check: Any) -> tuple[Any, Any]:
    """Pointers of a block and the mask of the axes that are checked, None where none is."""
    rank, (base, *numbers) = pointer.rank, pointer.values
    extents, strides, offsets = (numbers[part * rank : (part + 1) * rank] for part in range(3))
    checked = {int(_whole(core, axis)) for axis in _items(core, boundary_check)}
    inside = None
    for axis, side in enumerate(pointer.sides):
        at = semantic.cast(semantic.arange(0, side), core.int64)
        for other in range(rank):
            if other != axis:
                at = semantic.expand_dims(at, other)
        at = semantic.add(offsets[axis], at, sanitize_overflow=False)
        base = semantic.add(base, semantic.mul(at, strides[axis], sanitize_overflow=False), sanitize_overflow=False)
        if axis in checked:
            within = semantic.and_(
                semantic.greater_equal(at, _wide(core, semantic, 0)), semantic.less_than(at, extents[axis])
            )
            inside = within if inside is None else semantic.and_(inside, within)
    if inside is not None:
        base, inside = semantic.broadcast_impl_value(base, inside)
    return base, inside
