"""Schedules that no permutation describes: workgroups that compute several tiles, none, or one that others compute too.

A trace is rearranged so that hardware workgroup w runs the instructions of its tiles. Workgroups with nothing to do end
at once on hardware; here they are left out of their XCD's queue, and XCDs without any work are left out altogether.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from benchmarks.fidelity.mapping import NOTHING
from benchmarks.fidelity.raw_schedule import raw_trace
from xcd_model import Tensor, Trace
from xcd_model.errors import ReplayError

MAX_PADDING = 1e-3  # of all line touches, that idle workgroups may add


class Schedule(NamedTuple):
    """A trace in the order of hardware ids, for a GPU of which only ``xcds`` have work."""

    trace: Trace
    xcds: int


def place(trace: Trace, tiles: np.ndarray, xcds: int) -> Schedule:
    """Give each hardware workgroup its tiles.

    Parameters
    ----------
    trace : Trace
        One workgroup a tile.
    tiles : (n_workgroups,) or (n_workgroups, most) int array
        Tiles that each hardware workgroup computes, one after the other; `NOTHING` for none.
    xcds : int
        Workgroup w runs on XCD ``w % xcds``.

    Returns
    -------
    Schedule

    Raises
    ------
    ReplayError
        If nobody computes anything, or XCDs have so unequal shares that padding them would change the counts.
    """
    tiles = tiles.reshape(tiles.shape[0], -1)
    busy = (tiles != NOTHING).any(axis=1)
    queues = [tiles[xcd::xcds][busy[xcd::xcds]] for xcd in range(xcds)]
    queues = [queue for queue in queues if queue.shape[0]]
    if not queues:
        raise ReplayError("no workgroup of this schedule computes a tile")
    length = max(queue.shape[0] for queue in queues)
    idle = sum(length - queue.shape[0] for queue in queues)
    full = np.full((length, len(queues), tiles.shape[1]), NOTHING, np.int64)
    for at, queue in enumerate(queues):
        full[: queue.shape[0], at] = queue
    placed = _gather(_with_idle_tile(trace) if idle else trace, full.reshape(-1, tiles.shape[1]), trace.n_workgroups)
    if idle > MAX_PADDING * placed.n_touches:
        raise ReplayError(f"{idle} workgroups would have to be padded, beside {placed.n_touches} line touches")
    return Schedule(placed, len(queues))


def _with_idle_tile(trace: Trace) -> Trace:
    """Trace with one more workgroup, which reads a line of a tensor of its own."""
    line = max(tensor.base_line + tensor.n_lines for tensor in trace.tensors)
    return dataclasses.replace(
        trace,
        tensors=(*trace.tensors, Tensor("idle", line, 1, trace.line_bytes)),
        start=np.append(trace.start, trace.base.size + 1),
        base=np.append(trace.base, line),
        template=np.append(trace.template, np.int32(trace.rel_start.size - 1)),
        rel_start=np.append(trace.rel_start, trace.rel.size + 1),
        rel=np.append(trace.rel, np.int32(0)),
        sectors=np.append(trace.sectors, np.uint8(1)),
        is_write=np.append(trace.is_write, False),
        tensor=np.append(trace.tensor, np.int32(len(trace.tensors))),
        wave_requests=np.append(trace.wave_requests, np.uint16(1)),
    )


def _gather(trace: Trace, tiles: np.ndarray, idle: int) -> Trace:
    """Instructions of each workgroup's tiles, one after the other; a workgroup without any runs tile ``idle``."""
    tiles = tiles.copy()
    tiles[(tiles == NOTHING).all(axis=1), 0] = idle
    one_each = raw_trace(trace, tiles[tiles != NOTHING])
    ends = np.cumsum((tiles != NOTHING).sum(axis=1))
    return dataclasses.replace(one_each, start=one_each.start[np.concatenate([[0], ends])])
