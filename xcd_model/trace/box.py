"""The lines of a box: what one tensor instruction touches of a strided array, seen from its first item."""

from __future__ import annotations

import numpy as np

from xcd_model.trace.coalesce import LANE_BYTES, WAVE_SIZE, Touched, coalesce
from xcd_model.trace.l1_passes import passes_of
from xcd_model.trace.trace import SECTOR_BYTES, waves_of


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
    items = max(1, LANE_BYTES // item_bytes)
    is_run = strides[-1] == item_bytes and size[-1] % items == 0 and (at_once or items) >= items
    if is_run and _aligned(phase, skip, kept, size, strides, item_bytes, items):
        return _contiguous(phase, skip, kept, size, strides, item_bytes, line_bytes, items)
    address = np.full(tuple(size), -1, np.int64)
    inside = tuple(slice(s, s + k) for s, k in zip(skip, kept, strict=True))
    address[inside] = phase + _offsets(kept, strides)
    return coalesce(address, item_bytes, line_bytes, at_once=at_once)


def _aligned(phase, skip, kept, size, strides, item_bytes, items) -> bool:
    """Whether the rows of a box are whole runs of ``items`` items that begin on a multiple of their size."""
    steps = [stride for stride, side in zip(strides[:-1], kept[:-1], strict=True) if side > 1]
    return not any(bytes_ % (items * item_bytes) for bytes_ in (phase, *steps)) and not (
        skip[-1] % items or kept[-1] % items
    )


def _offsets(extents, steps) -> np.ndarray:
    """Sum of index times step over a box, in the box's shape; (1,) for no axis."""
    total = np.zeros((1,) * len(extents) or (1,), np.int64)
    for axis, (extent, step) in enumerate(zip(extents, steps, strict=True)):
        shape = [1] * len(extents)
        shape[axis] = -1
        total = total + (np.arange(extent, dtype=np.int64) * step).reshape(shape)
    return total


def _contiguous(phase, skip, kept, size, strides, item_bytes, line_bytes, items) -> Touched:
    """Rows are runs of bytes: cut them where a wave ends, and list the lines of the pieces."""
    items_a_wave = WAVE_SIZE * items
    first_byte = phase + _offsets(kept[:-1], strides[:-1]).reshape(-1)
    steps = [int(np.prod(size[axis + 1 :], dtype=np.int64)) for axis in range(len(size))]
    flat_start = int(np.dot(skip, steps))
    first_item = flat_start + _offsets(kept[:-1], steps[:-1]).reshape(-1)
    wave, row = _ranges(first_item // items_a_wave, (first_item + kept[-1] - 1) // items_a_wave + 1)
    begin = np.maximum(wave * items_a_wave, first_item[row])
    end = np.minimum((wave + 1) * items_a_wave, first_item[row] + kept[-1])
    byte = first_byte[row] + (begin - first_item[row]) * item_bytes
    sector, piece = _ranges(byte // SECTOR_BYTES, (byte + (end - begin) * item_bytes - 1) // SECTOR_BYTES + 1)
    active = np.bincount(wave, weights=end - begin).astype(np.int64)
    lane, of = _ranges(begin // items, -(-end // items))
    address = byte[of] + (lane - begin[of] // items) * items * item_bytes
    one = np.ones_like(lane)
    _, passes = passes_of(0 * lane, lane, address, one, one, items * item_bytes)
    waves = waves_of(active, items, items, item_bytes, line_bytes, int(passes[0]))
    return merge(sector, wave[piece], line_bytes)._replace(waves=waves)


def _ranges(first: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All integers of the ranges ``first .. end - 1``, one range after the other, and the range each is of."""
    length = end - first
    owner = np.repeat(np.arange(first.size), length)
    return np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length) + first[owner], owner


def merge(sector: np.ndarray, wave: np.ndarray, line_bytes: int) -> Touched:
    """Lines of the sectors that waves touch, in that order: each line once."""
    per_line = line_bytes // SECTOR_BYTES
    line, at, back = np.unique(sector // per_line, return_index=True, return_inverse=True)
    bits = np.zeros(line.size, np.uint8)
    np.bitwise_or.at(bits, back, (1 << (sector % per_line)).astype(np.uint8))
    pairs = np.unique(back * (int(wave.max()) + 1) + wave)
    requests = np.bincount(pairs // (int(wave.max()) + 1), minlength=line.size).astype(np.uint16)
    order = np.argsort(at, kind="stable")
    return Touched(line[order], bits[order], requests[order])
