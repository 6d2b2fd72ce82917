"""Schedules that no permutation describes: workgroups that compute several tiles, none, or one that others compute too.

Some published patterns are no bijections: their kernels computed a few tiles many times and left the rest out, and
what was measured is the hit rate of that. Nothing of the kind is ever scored: `swizzle_sim.Scorer` and
`xcd_model.replay.lockstep` refuse it. For fidelity alone a trace is rearranged so that hardware workgroup w runs the
instructions of its tiles. Workgroups with nothing to do end at once on hardware; here they are left out of their XCD's
queue, and XCDs without any work are left out altogether.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, Tensor, Trace, Traffic, prepare, replay_lockstep, workgroups_per_cu
from xcd_model.errors import ReplayError, TraceError
from xcd_model.replay.plan import MAX_LAUNCHES, replay_launches
from xcd_model.replay.traffic import add_fetches, instruction_fetches

from .formulas import NOTHING


def raw_trace(trace: Trace, tiles: np.ndarray) -> Trace:
    """Trace in which hardware workgroup ``w`` does what workgroup ``tiles[w]`` of another trace does.

    Parameters
    ----------
    tiles : (n_workgroups,) int array
        Any tiles of the trace; the same one may come again and again.
    """
    tiles = np.asarray(tiles)
    if tiles.ndim != 1 or not tiles.size or not np.issubdtype(tiles.dtype, np.integer):
        raise TraceError(f"tiles has shape {tiles.shape} and type {tiles.dtype}: a row of integers is needed")
    bad = (tiles < 0) | (tiles >= trace.n_workgroups)
    if bad.any():
        w = int(np.argmax(bad))
        raise TraceError(f"workgroup {w} computes tile {tiles[w]}: the trace has tiles 0 to {trace.n_workgroups - 1}")
    count = np.diff(trace.start)[tiles]
    start = np.concatenate([[0], np.cumsum(count)])
    instruction = np.repeat(trace.start[tiles] - start[:-1], count) + np.arange(start[-1])
    return Trace(
        line_bytes=trace.line_bytes,
        tensors=trace.tensors,
        start=start,
        base=trace.base[instruction],
        template=trace.template[instruction],
        rel_start=trace.rel_start,
        rel=trace.rel,
        sectors=trace.sectors,
        is_write=trace.is_write,
        tensor=trace.tensor,
        wave_requests=trace.wave_requests,
        waves=trace.waves,
    )


def replay_raw(kernel: Kernel, gpu: Gpu, tiles: np.ndarray) -> Traffic:
    """Lockstep counts of a kernel whose hardware workgroup ``w`` computes tile ``tiles[w]``, bijection or not.

    Parameters
    ----------
    tiles : (num_pids,) int array
    """
    trace = raw_trace(kernel.build_trace(gpu.l2.line_bytes), tiles)
    plan = prepare(trace, gpu, programs=kernel.programs)
    as_given, fit = np.arange(trace.n_workgroups), workgroups_per_cu(kernel.resources, gpu)
    replayed = replay_launches(
        [plan],
        lambda plan, caches: replay_lockstep(plan, as_given, workgroups_per_cu=fit, caches=caches),
        min(kernel.launches, MAX_LAUNCHES),
    )[0]
    fetches = instruction_fetches(gpu, kernel.resources, kernel.programs or trace.n_workgroups)
    return add_fetches(replayed, fetches)


MAX_PADDING = 1e-3  # of all line touches, that idle workgroups may add


class Schedule(NamedTuple):
    """A trace in the order of hardware ids, for a GPU of which only ``xcds`` have work."""

    trace: Trace
    xcds: int


def place(trace: Trace, tiles: np.ndarray, xcds: int) -> Schedule:
    """Give each hardware workgroup its tiles.

    Parameters
    ----------
    tiles : (n_workgroups,) or (n_workgroups, most) int array
        Tiles that each hardware workgroup computes, one after the other; `NOTHING` for none.
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
        waves=np.append(trace.waves, [[1, 1, 4, 1]], axis=0),
    )


def _gather(trace: Trace, tiles: np.ndarray, idle: int) -> Trace:
    """Instructions of each workgroup's tiles, one after the other; a workgroup without any runs tile ``idle``."""
    tiles = tiles.copy()
    tiles[(tiles == NOTHING).all(axis=1), 0] = idle
    one_each = raw_trace(trace, tiles[tiles != NOTHING])
    ends = np.cumsum((tiles != NOTHING).sum(axis=1))
    return dataclasses.replace(one_each, start=one_each.start[np.concatenate([[0], ends])])
