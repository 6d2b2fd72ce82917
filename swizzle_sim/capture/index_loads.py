"""Loads from index tensors: the one kind of data that capture needs real."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swizzle_sim.capture.exact import data_of
from swizzle_sim.capture.patterns import Patterns, compress, rows_of, spread
from swizzle_sim.capture.space import Space
from swizzle_sim.capture.values import Known, Unknown, Value, element_type, force


def gather(
    table: Patterns,
    space: Space,
    index_data: Mapping[int, np.ndarray],
    pointer: Known,
    mask: Known | None,
    other: Value | None,
    line: str,
) -> Value:
    """Items that a load from index tensors gives; masked-out lanes hold ``other``, or 0."""
    fill = None if other is None else force(other)
    if isinstance(fill, Unknown):
        return fill
    assert fill is None or isinstance(fill, Known)
    dtype = element_type(pointer.dtype)
    kind = np.dtype(bool) if dtype.primitive_bitwidth == 1 else np.dtype(dtype.name)
    parts = [value for value in (pointer, mask, fill) if isinstance(value, Known)]
    rows, inverse = rows_of([column for value in parts for column in (value.u, value.p)])
    if (
        inverse is not None
        and mask is None
        and not isinstance(pointer.p, np.ndarray)
        and table[pointer.p].shape in ((), (1,))
    ):
        items = _items(space, index_data, np.array([row[0] for row in rows], np.int64)).astype(kind)
        if kind.kind != "b":
            return Known(compress(items.astype(np.int64)[inverse]), table.intern(np.zeros(1, np.int64)), kind, dtype)
    found = []
    for row in rows:
        data = [data_of(table, value, row[2 * i], row[2 * i + 1]) for i, value in enumerate(parts)]
        found.append(table.split(_load(space, index_data, data, mask is not None, kind)))
    return Known(spread([u for u, _ in found], inverse), spread([p for _, p in found], inverse), kind, dtype)


def _load(space: Space, index_data: Mapping[int, np.ndarray], data: list[np.ndarray], masked: bool, kind) -> np.ndarray:
    address = data[0].astype(np.int64)
    if not masked:
        return _items(space, index_data, address.reshape(-1)).astype(kind).reshape(address.shape)
    keep = np.broadcast_to(data[1], address.shape)
    fill = data[2] if len(data) > 2 else np.zeros(1, kind)
    result = np.broadcast_to(fill, address.shape).astype(kind)
    result[keep] = _items(space, index_data, address[keep]).astype(kind)
    return result


def _items(space: Space, index_data: Mapping[int, np.ndarray], address: np.ndarray) -> np.ndarray:
    if address.size == 0:
        return np.zeros(0, np.int64)
    owner = int(space.owner(int(address[0])))
    at, odd = np.divmod(address - int(space.base[owner]), space.arrays[owner].item_bytes)
    if odd.any():
        raise ValueError(f"{space.names[owner]} is read at an odd byte")
    return index_data[owner][at]
