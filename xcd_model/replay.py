"""Dispatch, trace and caches put together: the lockstep replay.

*Lockstep*: in each turn every resident workgroup issues one tensor instruction, slot by slot, the XCDs side by side.
It is the fast bound: real workgroups drift apart and lose each other's lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .batch import CHUNK, _count_misses, _fill_all, _locate_all, _look_up, scratch
from .cache import _locate, _popcount4, _touch
from .dispatch import check_order
from .errors import ReplayError
from .plan import Plan
from .rows import aligned_words
from .stream import Machine
from .traffic import (
    COLUMNS,
    INSTRUCTIONS,
    MALL_HITS,
    MALL_REQUESTS,
    READ_REQUESTS,
    WRITE_REQUESTS,
    WRITEBACKS,
    Traffic,
)

MAX_BINS = 4096


class State(NamedTuple):
    """What changes during a replay.

    ``l2`` and ``mall`` are cache words (see `xcd_model.cache`); ``running`` is (n_xcds, slots, 2): next and end
    instruction of the workgroup in each slot; ``queue`` is (n_xcds,): next hardware id of each XCD.
    """

    l2: np.ndarray
    mall: np.ndarray
    running: np.ndarray
    queue: np.ndarray


@njit(cache=True, nogil=True)
def _fill(machine, mall, line, weight, counts):
    """Fetch a line that an L2 missed, from the Infinity Cache if there is one."""
    if machine.mall.n_sets == 0:
        return
    at, tag = _locate(line, machine.mall)
    counts[MALL_REQUESTS] += weight
    if _touch(mall, at * machine.mall_ways, machine.mall_ways, (tag + 1) << 4) == 1:
        counts[MALL_HITS] += weight


@njit(inline="always")
def _issue(stream, machine, l2, mall, instruction, scratch, counts):
    """Send the lines of one instruction to one XCD's L2 words. ``counts`` is that XCD's row of the bin."""
    template = stream.template[instruction]
    base = stream.base[instruction]
    counts[INSTRUCTIONS] += 1
    counts[WRITE_REQUESTS if stream.is_write[template] else READ_REQUESTS] += stream.requests[template]
    end = stream.rel_start[template + 1]
    for start in range(stream.rel_start[template], end, CHUNK):
        first, n = np.uint64(start), min(CHUNK, end - start)
        _locate_all(base, stream.rel, first, n, machine.l2, scratch.at, scratch.word)
        n_missed = _look_up(stream.dirty, first, n, l2, machine.l2_ways, scratch)
        if n_missed:
            reads = _count_misses(stream, first, n_missed, scratch, counts)
            if reads and machine.mall.n_sets:
                _fill_all(machine, mall, base, reads, scratch, counts)


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(stream, machine, order, state, scratch, bin_counts):
    """Let every resident workgroup issue one instruction; return how many did."""
    issued = 0
    for slot in range(machine.slots):
        for xcd in range(machine.xcds):
            if state.running[xcd, slot, 0] == state.running[xcd, slot, 1]:
                pid = state.queue[xcd]
                if pid >= order.size:
                    continue
                state.queue[xcd] = pid + machine.xcds
                state.running[xcd, slot, 0] = stream.start[order[pid]]
                state.running[xcd, slot, 1] = stream.start[order[pid] + 1]
            at = state.running[xcd, slot, 0]
            _issue(stream, machine, state.l2[xcd], state.mall, at, scratch, bin_counts[xcd])
            state.running[xcd, slot, 0] = at + 1
            issued += 1
    return issued


@njit(cache=True, nogil=True)
def _flush(stream, machine, l2, counts):
    """Write back what is dirty at the end of the kernel."""
    for xcd in range(machine.xcds):
        for way in range(l2.shape[1]):
            held = np.int64(l2[xcd, way])
            if held & 15:
                counts[xcd, WRITEBACKS] += stream.set_weight[way // machine.l2_ways] * _popcount4(held)


@njit(cache=True, nogil=True)
def _lockstep(stream, machine, order, state, scratch, timeline):
    """Replay the whole grid; fill ``timeline`` and return (turns, turns a bin). Checks nothing.

    order    : (n_workgroups,) int64, workgroup that each hardware id computes
    timeline : (n_bins, n_xcds, n_columns) int64, zeros; pairs of bins are merged when it is full
    """
    turns = 0
    per_bin = 1
    at = 0
    while _turn(stream, machine, order, state, scratch, timeline[at]):
        turns += 1
        at = turns // per_bin
        if at == timeline.shape[0]:
            for half in range(at // 2):
                timeline[half] = timeline[2 * half] + timeline[2 * half + 1]
            timeline[at // 2 :] = 0
            per_bin *= 2
            at //= 2
    _flush(stream, machine, state.l2, timeline[max(0, turns - 1) // per_bin])
    return turns, per_bin


def replay(plan: Plan, order: np.ndarray, *, workgroups_per_cu: int) -> Traffic:
    """Replay a trace in lockstep under one order of workgroups.

    Parameters
    ----------
    plan : Plan
        A trace made ready for a GPU, see `prepare`; shared by all orders.
    order : (n_workgroups,) int array
        ``order[w]`` is the workgroup of the trace that hardware workgroup ``w`` computes: a permutation.
    workgroups_per_cu : int
        Occupancy, at least 1.

    Returns
    -------
    Traffic

    Raises
    ------
    ReplayError
        If ``order`` is no permutation of the trace's workgroups, or the occupancy is below 1.
    """
    order = check_order(order, plan.n_workgroups)
    if workgroups_per_cu < 1:
        raise ReplayError(f"workgroups_per_cu = {workgroups_per_cu}: at least one workgroup runs on a CU")
    machine: Machine = plan.machine._replace(slots=plan.gpu.cus_per_xcd * workgroups_per_cu)
    state = State(
        l2=aligned_words(machine.xcds * machine.l2.n_sets * machine.l2_ways).reshape(machine.xcds, -1),
        mall=aligned_words(machine.mall.n_sets * machine.mall_ways),
        running=np.zeros((machine.xcds, machine.slots, 2), np.int64),
        queue=(np.arange(machine.xcds, dtype=np.int64) - machine.offset) % machine.xcds,
    )
    timeline = np.zeros((MAX_BINS, machine.xcds, len(COLUMNS)), np.int64)
    turns, per_bin = _lockstep(plan.stream, machine, order, state, scratch(), timeline)
    return Traffic(
        timeline=timeline[: -(-turns // per_bin)].copy(),
        turns_per_bin=per_bin,
        turns=turns,
        line_bytes=plan.gpu.l2.line_bytes,
        write_request_bytes=plan.gpu.l2.write_request_bytes,
        simulated_fraction=plan.simulated_fraction,
    )
