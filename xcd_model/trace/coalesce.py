"""From the items of tensor instructions to the lines they touch: sectors, requests after coalescing, passes of an L1.

    order of lanes: axes by contiguity, the most contiguous one fastest     A[m, k] of a row-major A: k, then m
                                                                            B[k, n] of a column-major B: k, then n
    item address // line -> line,   (item address mod line) // 32 -> sector bit
    requests of a line = distinct (wave, instruction of a lane) among its items

A wave takes consecutive items of the tile in that order: `LANE_BYTES` a lane where items lie next to each other in
memory, one item a lane where they do not. A lane loads its items at once where they begin on a multiple of their size
and are masked together, else in two, four, ... instructions. The items of one wave's instruction in one line are one L1
request.

Loads take passes through an L1 whose data lies in banks, as NVIDIA's does:

    lanes served together   as many as load 128 bytes, at most 32: 32 lanes of 4 B or less, 16 of 8 B, 8 of 16 B
    passes of those         max(words that lie on one bank, ceil(lines / `LINES_A_PASS`))   32 banks of a word of 4 B

Lanes that read the same word share it. Eight rows of 64 B that lie a multiple of 128 B apart are on one half of the
banks, and take eight passes; an odd multiple of 64 B apart they take four.

Sources: what Triton compiles for gfx942 and sm_90: a blocked layout of 16 bytes a lane, one ``dwordx4`` where alignment
and mask allow it, and four ``dword`` where a tile is shifted by an item. Its pass Coalesce sorts the axes of a load by
the contiguity of its pointers (AxisInfo), equal ones in the order of the tile. Of the passes: one H200, 3806 patterns
of lanes (`benchmarks/validation/data/machine/h200_l1_passes.csv`). It finds four lines at once at best, and three in
the mean, since which of its four tag stages a line is looked up in is a hash that is not known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.spec.caches import PASS_BYTES
from xcd_model.trace.trace import SECTOR_BYTES, WAVE_COLUMNS, waves_of

LANE_BYTES = 16  # widest load of a lane: global_load_dwordx4
WAVE_SIZE = 64
BANK_BYTES, WARP, LINES_A_PASS = 4, 32, 3
ITEM_BYTES = (1, 2, 4, 8, 16)  # that a lane loads in one instruction


class Touched(NamedTuple):
    """Lines of one tensor instruction, each once, in the order first touched."""

    line: np.ndarray  # (n_lines,) int64
    sectors: np.ndarray  # (n_lines,) uint8: bit ``i``: bytes ``32 i .. 32 i + 31`` of the line are touched.
    wave_requests: np.ndarray  # (n_lines,) uint16: accesses of the line, one for each of a wave's instructions
    # (4,) int64: instructions of waves, the accesses they would make with their lanes side by side in memory, the bytes
    # of a lane at once, and passes through an L1 of banks (`passes_of`); zeros where that is not known
    waves: np.ndarray = np.zeros(WAVE_COLUMNS, np.int64)


def lane_axes(address: np.ndarray, item_bytes: int) -> tuple[int, ...]:
    """Axes of a tile, by its pointers before any mask [bytes], from the slowest to the fastest of its lanes."""
    contiguity = [_contiguity(np.moveaxis(address, axis, -1), item_bytes) for axis in range(address.ndim)]
    return tuple(sorted(range(address.ndim), key=contiguity.__getitem__))


def _contiguity(address: np.ndarray, item_bytes: int) -> int:
    """Contiguity along the last axis [items], at most the largest power of two that divides its side."""
    run = address.shape[-1] & -address.shape[-1]
    steps = np.diff(address, axis=-1) == item_bytes
    while run > 1:  # steps from the last item of a run to the next run may be any
        inside = np.arange(steps.shape[-1]) % run != run - 1
        if steps[..., inside].all():
            break
        run //= 2
    return run


def coalesce(address: np.ndarray, item_bytes: int, line_bytes: int, *, at_once: int | None = None) -> Touched:
    """Lines that the items of one tensor instruction touch.

    ``address`` [bytes]: first byte of each, the last axis fastest in the order of lanes (`lane_axes`); -1: masked out.
    """
    address = address.reshape(-1)
    kept = np.flatnonzero(address >= 0)
    if kept.size == 0:
        return Touched(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.uint16))
    lanes = _items_a_lane(address[None], item_bytes)
    items, together = int(lanes[0]), int(_items_at_once(address[None], item_bytes, lanes)[0])
    together = min(together, at_once or items)
    instruction = kept // (WAVE_SIZE * items) * items + kept % items // together
    first = address[kept]
    sector = np.concatenate([first // SECTOR_BYTES, (first + item_bytes - 1) // SECTOR_BYTES])
    per_line = line_bytes // SECTOR_BYTES
    line, at, back = np.unique(sector // per_line, return_index=True, return_inverse=True)
    bits = np.zeros(line.size, np.uint8)
    np.bitwise_or.at(bits, back, (1 << (sector % per_line)).astype(np.uint8))
    n_instructions = int(instruction.max()) + 1
    pairs = np.unique(back * n_instructions + np.concatenate([instruction, instruction]))
    requests = np.bincount(pairs // n_instructions, minlength=line.size).astype(np.uint16)
    order = np.argsort(at % kept.size, kind="stable")
    active = np.bincount(kept // (WAVE_SIZE * items))
    of_lane, at_a_time = np.full_like(kept, items), np.full_like(kept, together)
    _, passes = passes_of(np.zeros_like(kept), kept, first, of_lane, at_a_time, item_bytes)
    waves = waves_of(active, items, together, item_bytes, line_bytes, int(passes[0]))
    return Touched(line[order], bits[order], requests[order], waves)


class Gathered(NamedTuple):
    """Lines of many instructions; instruction ``i`` owns entries ``start[i] .. start[i + 1] - 1``.

    ``line``, ``sectors`` and ``wave_requests`` are as in `Touched`; ``passes`` is (n_instructions,) int64, the last of
    its ``waves``.
    """

    start: np.ndarray
    line: np.ndarray
    sectors: np.ndarray
    wave_requests: np.ndarray
    passes: np.ndarray


def gather_lines(address: np.ndarray, item_bytes: int, line_bytes: int) -> Gathered:
    """`coalesce` of every row of ``address``, in a few sorts.

    ``address`` (n_instructions, n_items) int64 [bytes]: multiples of ``item_bytes``, a divisor of a sector; -1: masked.
    """
    n, n_items = address.shape
    of, item = np.nonzero(address >= 0)
    lane = _items_a_lane(address, item_bytes)
    line = address[of, item] // line_bytes
    span = int(line.max()) + 1 if line.size else 1
    group_key = of * span + line
    order = np.argsort(group_key, kind="stable")  # items of a line stay in the order of the tile
    if not order.size:
        empty = np.zeros(0, np.int64)
        return Gathered(
            np.zeros(n + 1, np.int64), empty, empty.astype(np.uint8), empty.astype(np.uint16), np.zeros(n, np.int64)
        )
    first = np.flatnonzero(np.diff(group_key[order], prepend=-1))
    bit = 1 << (address[of, item][order] % line_bytes // SECTOR_BYTES)
    together = _items_at_once(address, item_bytes, lane)
    instruction = (item // (WAVE_SIZE * lane[of]) * lane[of] + item % lane[of] // together[of])[order]
    passes = np.zeros(n, np.int64)
    rows, of_rows = passes_of(of, item, address[of, item], lane[of], together[of], item_bytes)
    passes[rows] = of_rows
    lead = order[first]
    shown = np.argsort(of[lead] * n_items + item[lead], kind="stable")
    return Gathered(
        np.searchsorted(of[lead], np.arange(n + 1)),
        line[lead][shown],
        np.bitwise_or.reduceat(bit, first).astype(np.uint8)[shown],
        _distinct(instruction, first)[shown],
        passes,
    )


def _distinct(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(n_runs,) uint16: how many different values there are in each of the runs that begin at ``first``."""
    run = np.zeros(values.size, np.int64)
    run[first[1:]] = 1
    run = np.cumsum(run)
    if (np.diff(values)[np.diff(run) == 0] < 0).any():
        values = values[np.lexsort((values, run))]
    new = np.diff(values, prepend=-1) != 0
    new[first] = True
    return np.add.reduceat(new.astype(np.int64), first).astype(np.uint16)


def _items_a_lane(address: np.ndarray, item_bytes: int) -> np.ndarray:
    """(n_instructions,): items of a lane: as many as lie next to each other throughout, at most `LANE_BYTES`."""
    n, n_items = address.shape
    found = np.ones(n, np.int64)
    items = max(1, LANE_BYTES // item_bytes)
    while items > 1:
        if n_items % items == 0:
            lanes = address.reshape(n, n_items // items, items)
            masked = (lanes[:, :, 1:] < 0) | (lanes[:, :, :-1] < 0)
            fits = np.all((np.diff(lanes, axis=2) == item_bytes) | masked, axis=(1, 2))
            found = np.where(fits & (found == 1), items, found)
        items //= 2
    return found


def _items_at_once(address: np.ndarray, item_bytes: int, lane: np.ndarray) -> np.ndarray:
    """(n_instructions,): of the items of a lane those loaded at once: aligned to their size, and masked together."""
    found = np.ones(lane.size, np.int64)
    items = int(lane.max(initial=1))
    while items > 1:
        groups = address.reshape(lane.size, -1, items) if address.shape[1] % items == 0 else None
        if groups is not None:
            masked = groups < 0
            whole = masked.all(axis=2)
            aligned = whole | (~masked.any(axis=2) & (groups[:, :, 0] % (items * item_bytes) == 0))
            found = np.where((found == 1) & (items <= lane) & aligned.all(axis=1), items, found)
        items //= 2
    return found


def passes_of(
    row: np.ndarray, item: np.ndarray, address: np.ndarray, items: np.ndarray, together: np.ndarray, item_bytes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Passes of loads, of (n,) items by ``row``, their load, in rising order, and ``item``, their place by lanes.

    ``address`` is in bytes; ``items, together`` are those of a lane of its load, and those that the lane loads at once.
    Returns (n_rows,) int64 loads that have items, and passes of each: 0, unknown, where no instruction loads its items.
    """
    if item_bytes not in ITEM_BYTES:
        rows = np.unique(row)
        return rows, np.zeros(rows.size, np.int64)
    unit = np.clip(together * item_bytes, BANK_BYTES, PASS_BYTES)  # aligned: no two lanes share a part of it
    lanes = np.minimum(PASS_BYTES // unit, WARP)
    each = items // together
    group = item // items // lanes * each + item % items // together
    group += row * (int(group.max()) + 1)
    order = np.lexsort((address // unit, group))
    of = np.cumsum(np.diff(group[order], prepend=group[order[:1]]) != 0)  # number of each group
    unit, place = unit[order], (address // unit)[order]
    new = np.ones(of.size, np.bool_)
    new[1:] = (of[1:] != of[:-1]) | (place[1:] != place[:-1])
    of, unit, place, row = of[new], unit[new], place[new], row[order][new]
    bank = of * WARP + place % (PASS_BYTES // unit)
    most = np.bincount(bank, minlength=(int(of[-1]) + 1) * WARP).reshape(-1, WARP).max(axis=1)
    line = place * unit // PASS_BYTES
    other = np.ones(of.size, np.bool_)
    other[1:] = (of[1:] != of[:-1]) | (line[1:] != line[:-1])
    lines = np.bincount(of[other])
    passes = np.maximum(most, -(-lines // LINES_A_PASS))
    rows, at = np.unique(row[np.flatnonzero(np.diff(of, prepend=-1))], return_inverse=True)
    return rows, np.bincount(at, weights=passes).astype(np.int64)
