"""From the items of one tensor instruction to the lines it touches: sectors, and requests after coalescing.

A wave takes consecutive items of the flattened (row-major) tensor: `LANE_BYTES` a lane where items lie next to each
other in memory, one item a lane where they do not. The items of one wave in one line are one L1 request.

Assumed: this is how Triton's blocked layouts deal out a tile whose fastest axis is the contiguous one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .trace import SECTOR_BYTES

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
        Waves' accesses of the line.
    """

    line: np.ndarray
    sectors: np.ndarray
    wave_requests: np.ndarray


def coalesce(address: np.ndarray, item_bytes: int, line_bytes: int, *, wave_size: int = WAVE_SIZE) -> Touched:
    """Lines that the items of one tensor instruction touch.

    Parameters
    ----------
    address : (n_items,) int64 [bytes]
        First byte of each item, flattened row-major; -1 for an item that is masked out.
    item_bytes, line_bytes : int [bytes]
    wave_size : int
        Lanes of a wave.

    Returns
    -------
    Touched
        Without lines where every item is masked out.
    """
    kept = np.flatnonzero(address >= 0)
    if kept.size == 0:
        return Touched(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.uint16))
    wave = kept // (wave_size * _items_a_lane(address, item_bytes))
    first = address[kept]
    sector = np.concatenate([first // SECTOR_BYTES, (first + item_bytes - 1) // SECTOR_BYTES])
    per_line = line_bytes // SECTOR_BYTES
    line, at, back = np.unique(sector // per_line, return_index=True, return_inverse=True)
    bits = np.zeros(line.size, np.uint8)
    np.bitwise_or.at(bits, back, (1 << (sector % per_line)).astype(np.uint8))
    pairs = np.unique(np.stack([back, np.concatenate([wave, wave])], axis=1), axis=0)
    requests = np.bincount(pairs[:, 0], minlength=line.size).astype(np.uint16)
    order = np.argsort(at % kept.size, kind="stable")
    return Touched(line[order], bits[order], requests[order])


def _items_a_lane(address: np.ndarray, item_bytes: int) -> int:
    """Items that one lane loads at once: as many as lie next to each other throughout, at most `LANE_BYTES`."""
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
