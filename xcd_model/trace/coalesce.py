"""From the items of one tensor instruction to the lines it touches: sectors, and requests after coalescing.

A wave takes consecutive items of the flattened (row-major) tensor: `LANE_BYTES` a lane where items lie next to each
other in memory, one item a lane where they do not. A lane loads its items at once where they begin on a multiple of
their size and are masked together, else in two, four, ... instructions. The items of one wave's instruction in one
line are one L1 request.

Source: what Triton compiles for gfx942 and sm_90: a blocked layout of 16 bytes a lane, one ``dwordx4`` where alignment
and mask allow it, and four ``dword`` where a tile is shifted by an item.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.trace.trace import SECTOR_BYTES

LANE_BYTES = 16  # widest load of a lane: global_load_dwordx4
WAVE_SIZE = 64


class Touched(NamedTuple):
    """Lines of one tensor instruction, each once, in the order first touched.

    Parameters
    ----------
    line : (n_lines,) int64
    sectors : (n_lines,) uint8
        Bit ``i``: bytes ``32 i .. 32 i + 31`` of the line are touched.
    wave_requests : (n_lines,) uint16
        Accesses of the line, one for each of a wave's instructions.
    """

    line: np.ndarray
    sectors: np.ndarray
    wave_requests: np.ndarray


def coalesce(
    address: np.ndarray, item_bytes: int, line_bytes: int, *, wave_size: int = WAVE_SIZE, at_once: int | None = None
) -> Touched:
    """Lines that the items of one tensor instruction touch.

    Parameters
    ----------
    address : (n_items,) int64 [bytes]
        First byte of each item, flattened row-major; -1 for an item that is masked out.
    item_bytes, line_bytes : int [bytes]
    wave_size : int
        Lanes of a wave.
    at_once : int, optional
        Most items that one instruction of a lane loads, a power of two; no bound where not given.

    Returns
    -------
    Touched
        Without lines where every item is masked out.
    """
    kept = np.flatnonzero(address >= 0)
    if kept.size == 0:
        return Touched(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.uint16))
    items = _items_a_lane(address, item_bytes)
    together = min(_items_at_once(address, item_bytes, items), at_once or items)
    instruction = kept // (wave_size * items) * items + kept % items // together
    first = address[kept]
    sector = np.concatenate([first // SECTOR_BYTES, (first + item_bytes - 1) // SECTOR_BYTES])
    per_line = line_bytes // SECTOR_BYTES
    line, at, back = np.unique(sector // per_line, return_index=True, return_inverse=True)
    bits = np.zeros(line.size, np.uint8)
    np.bitwise_or.at(bits, back, (1 << (sector % per_line)).astype(np.uint8))
    pairs = np.unique(np.stack([back, np.concatenate([instruction, instruction])], axis=1), axis=0)
    requests = np.bincount(pairs[:, 0], minlength=line.size).astype(np.uint16)
    order = np.argsort(at % kept.size, kind="stable")
    return Touched(line[order], bits[order], requests[order])


def _items_a_lane(address: np.ndarray, item_bytes: int) -> int:
    """Items of one lane: as many as lie next to each other throughout, at most `LANE_BYTES`."""
    items = max(1, LANE_BYTES // item_bytes)
    while items > 1:
        if address.size % items == 0:
            lanes = address.reshape(-1, items)
            steps = np.diff(lanes, axis=1)
            masked = (lanes[:, 1:] < 0) | (lanes[:, :-1] < 0)
            if np.all((steps == item_bytes) | masked):
                return items
        items //= 2
    return 1


def _items_at_once(address: np.ndarray, item_bytes: int, items: int) -> int:
    """Of the items of a lane, those that one instruction loads: aligned to their size, and masked together."""
    while items > 1:
        if address.size % items == 0:
            groups = address.reshape(-1, items)
            masked = groups < 0
            aligned = ~masked.any(axis=1) & (groups[:, 0] % (items * item_bytes) == 0)
            if np.all(masked.all(axis=1) | aligned):
                return items
        items //= 2
    return 1
