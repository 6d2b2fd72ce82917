"""Exact values: operations of Triton's own builder, once for each kind of workgroup, and loads from index tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from swizzle_sim.capture.memory import AddressSpace
from swizzle_sim.capture.values import Known, Patterns, Unknown, Value, compress, element_type, force, rows_of, spread
from xcd_model.errors import CaptureError

MAX_ROWS = 1 << 18  # kinds of workgroups that are worked out one at a time
LOAD = "load"
LANEWISE = (LOAD, "add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "and", "or", "xor", "shl", "lshr", "ashr",
            "umulhi", "minsi", "minui", "maxsi", "maxui", "icmp", "int_cast", "iabs", "si_to_fp", "ui_to_fp",
            "fp_to_si", "fadd", "fsub", "fmul", "fdiv", "fcmp", "floor", "ceil", "sqrt", "bitcast")  # fmt: skip


def evaluate(
    table: Patterns, function: Callable, args: Sequence[Any], handle_of: Callable, name: str, line: str
) -> Any:
    """Value of ``function``, which takes and gives Triton's handles, for known arguments."""
    values = [a for a in args if isinstance(a, Known)]
    columns = [column for value in values for column in (value.u, value.p)]
    rows, inverse = rows_of(columns)
    try:
        with np.errstate(all="ignore"):
            if inverse is not None and _is_lanewise(table, values, name):
                return _at_once(table, function, args, handle_of, rows, inverse)
            if len(rows) > MAX_ROWS and name != LOAD:
                raise CaptureError(f"{line}: {name} differs in {len(rows)} workgroups: use --full", code="not-followed")
            outcomes = [function(*_handles(args, handle_of, _of_row(table, row))) for row in rows]
    except CaptureError:
        raise
    except NotImplementedError as error:
        return Unknown(f"what {line} computes ({error})")
    except Exception as error:
        raise CaptureError(f"{line}: {type(error).__name__}: {error}", code="kernel-raised") from error
    if isinstance(outcomes[0], tuple):
        return tuple(_joined(table, [o[i] for o in outcomes], inverse) for i in range(len(outcomes[0])))
    return _joined(table, outcomes, inverse)


def _handles(args: Sequence[Any], handle_of: Callable, data: Callable[[Known, int], np.ndarray]) -> list[Any]:
    """Arguments with a handle of ``data(value, place of its u in a row)`` for each value."""
    places = count(0, 2)
    return [handle_of(data(arg, next(places)), arg.dtype) if isinstance(arg, Known) else arg for arg in args]


def _of_row(table: Patterns, row: tuple) -> Callable[[Known, int], np.ndarray]:
    def items(value: Known, at: int) -> np.ndarray:
        own = table[row[at + 1]]
        return (row[at] + own).astype(value.kind) if value.kind.kind in "iu" else own

    return items


def _joined(table: Patterns, handles: Sequence[Any], inverse: np.ndarray | None) -> Known:
    split = [table.split(np.asarray(handle.data)) for handle in handles]
    return Known(
        spread([u for u, _ in split], inverse),
        spread([p for _, p in split], inverse),
        np.asarray(handles[0].data).dtype,
        handles[0].dtype,
    )


def _is_lanewise(table: Patterns, values: Sequence[Known], name: str) -> bool:
    """Whether a scalar operation may be done for all kinds of workgroups in one array."""
    one_item = all(not isinstance(v.p, np.ndarray) and table[v.p].shape in ((), (1,)) for v in values)
    return (
        one_item
        and all(v.kind.kind in "iu" for v in values)
        and any(name.removeprefix("create_").startswith(word) for word in LANEWISE)
    )


def _at_once(table, function, args, handle_of, rows, inverse) -> Known:
    of_all = _handles(args, handle_of, lambda v, at: np.array([row[at] for row in rows], np.int64).astype(v.kind))
    result = function(*of_all)
    data = np.asarray(result.data)
    if data.dtype.kind in "iu":
        zero = table.intern(np.zeros(1, np.int64))
        return Known(compress(data.astype(np.int64)[inverse]), zero, data.dtype, result.dtype)
    values, which = np.unique(data, return_inverse=True)
    ids = [table.intern(np.array([v], data.dtype)) for v in values]
    return Known(0, spread(ids, which[inverse]), data.dtype, result.dtype)


def gather(
    table: Patterns,
    space: AddressSpace,
    index_data: Mapping[int, np.ndarray],
    pointer: Known,
    mask: Known | None,
    other: Value | None,
    handle_of: Callable,
    line: str,
) -> Value:
    """Items that a load from index tensors gives; masked-out lanes hold ``other``, or 0."""
    fill = None if other is None else force(other)
    if isinstance(fill, Unknown):
        return fill
    dtype = element_type(pointer.dtype)
    kind = np.dtype(bool) if dtype.primitive_bitwidth == 1 else np.dtype(dtype.name)

    def load(pointer: Any, mask: Any, fill: Any) -> Any:
        address = pointer.data.astype(np.int64)
        keep = np.broadcast_to(True if mask is None else mask.data.astype(bool, copy=False), address.shape)
        found = np.broadcast_to(0 if fill is None else fill.data, address.shape).astype(kind)
        found[keep] = _items(space, index_data, address[keep]).astype(kind)
        return handle_of(found, dtype)

    return evaluate(table, load, (pointer, mask, fill), handle_of, LOAD, line)


def _items(space: AddressSpace, index_data: Mapping[int, np.ndarray], address: np.ndarray) -> np.ndarray:
    if address.size == 0:
        return np.zeros(0, np.int64)
    owner = int(space.owner(int(address[0])))
    at, odd = np.divmod(address - int(space.base[owner]), space.arrays[owner].item_bytes)
    if odd.any():
        raise ValueError(f"{space.names[owner]} is read at an odd byte")
    return index_data[owner][at]
