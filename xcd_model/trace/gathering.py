"""The lines of gathers: instructions whose items lie anywhere, many at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.trace.coalesce import LANE_BYTES, WAVE_SIZE
from xcd_model.trace.trace import SECTOR_BYTES


class Gathered(NamedTuple):
    """Lines of many instructions; instruction ``i`` owns entries ``start[i] .. start[i + 1] - 1``.

    ``line``, ``sectors`` and ``wave_requests`` are as in `xcd_model.trace.coalesce.Touched`.
    """

    start: np.ndarray
    line: np.ndarray
    sectors: np.ndarray
    wave_requests: np.ndarray


def gather_lines(address: np.ndarray, item_bytes: int, line_bytes: int, *, wave_size: int = WAVE_SIZE) -> Gathered:
    """`xcd_model.trace.coalesce.coalesce` of every row of ``address``, in a few sorts.

    Parameters
    ----------
    address : (n_instructions, n_items) int64 [bytes]
        First byte of each item, -1 where masked out; a multiple of ``item_bytes``.
    item_bytes, line_bytes : int [bytes]
        ``item_bytes`` divides a sector, so that no item lies in two.
    wave_size : int

    Returns
    -------
    Gathered
        No entries for an instruction whose items are all masked out.
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
        return Gathered(np.zeros(n + 1, np.int64), empty, empty.astype(np.uint8), empty.astype(np.uint16))
    first = np.flatnonzero(np.diff(group_key[order], prepend=-1))
    bit = 1 << (address[of, item][order] % line_bytes // SECTOR_BYTES)
    together = _items_at_once(address, item_bytes, lane)
    instruction = (item // (wave_size * lane[of]) * lane[of] + item % lane[of] // together[of])[order]
    lead = order[first]
    shown = np.argsort(of[lead] * n_items + item[lead], kind="stable")
    return Gathered(
        np.searchsorted(of[lead], np.arange(n + 1)),
        line[lead][shown],
        np.bitwise_or.reduceat(bit, first).astype(np.uint8)[shown],
        _distinct(instruction, first)[shown],
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
    """(n_instructions,): items of one lane of each; see `xcd_model.trace.coalesce`."""
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
    """(n_instructions,): items that one instruction of a lane loads; see `xcd_model.trace.coalesce`."""
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
