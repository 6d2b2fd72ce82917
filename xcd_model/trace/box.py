"""The lines of a box: what one tensor instruction touches of a strided array, seen from its first item."""

from __future__ import annotations

from functools import reduce

import numpy as np

from xcd_model.trace.coalesce import Touched, coalesce


def box_lines(
    *,
    phase: int,
    skip,
    kept,
    size,
    strides,
    item_bytes: int,
    line_bytes: int,
    at_once: int | None = None,
) -> Touched:
    """Lines of the box ``skip .. skip + kept - 1`` that masks leave of a tile of ``size`` items.

    Parameters
    ----------
    phase : int [bytes]
        Where the first kept item lies in its line, which is line 0 of the result.
    skip, kept, size : (n_axes,) int
        Along each axis of the tile: items masked out before the kept ones, kept items, all items.
    strides : (n_axes,) int [bytes]
        From one item to the next along each axis, none negative.
    item_bytes, line_bytes : int [bytes]
    """
    runs = [side & -side if stride == item_bytes else 1 for side, stride in zip(size, strides, strict=True)]
    axes = sorted(range(len(runs)), key=runs.__getitem__)  # as `xcd_model.trace.coalesce.lane_axes` has them
    skip, kept, size, strides = ([each[axis] for axis in axes] for each in (skip, kept, size, strides))
    address = np.full(tuple(size), -1, np.int64)
    inside = tuple(slice(s, s + k) for s, k in zip(skip, kept, strict=True))
    steps = [np.arange(count, dtype=np.int64) * stride for count, stride in zip(kept, strides, strict=True)]
    address[inside] = phase + reduce(np.add.outer, steps)
    return coalesce(address, item_bytes, line_bytes, at_once=at_once)
