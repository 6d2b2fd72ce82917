"""The timed replay: workgroups issue when their loads have come back, so they drift apart, as on hardware.

An event is "a slot can issue its next tensor instruction". Events are taken in order of time, ties by slot, then XCD.
An instruction's lines go to the L2 back to back; its misses share one trip through fabric, Infinity Cache and HBM,
each a queue that serves in order of arrival. A read of a line in flight is a hit that waits for it. A workgroup has
at most ``in_flight`` instructions between issue and the end of their compute; a CU computes for one at a time.

All times are whole femtoseconds: the same inputs give the same bytes on every machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .cache import _locate, _popcount4
from .dispatch import check_order
from .errors import ReplayError
from .plan import Plan
from .rates import Pace, Rates, rates_of
from .replay import MAX_BINS, _fill, _flush
from .symmetry import _mix
from .traffic import (
    COLUMNS,
    INSTRUCTIONS,
    MALL_HITS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_MISSES,
    WRITE_REQUESTS,
    WRITEBACKS,
    Traffic,
)


class Clockwork(NamedTuple):
    """What changes during a timed replay; times are int64 [fs].

    ``words`` (n_xcds, sets * ways) are the L2s, ``filler`` beside them the instruction that brought each line in,
    ``arrival`` (n_instructions,) when that was done. ``free`` is (n_xcds, 2), when L2 port and fabric are free;
    ``shared`` (2,) the same of Infinity Cache and HBM; ``cu`` (n_xcds, cus). For each slot, numbered
    ``slot * n_xcds + xcd``: ``running`` (n, 3), next, end and first instruction and ``pid`` its hardware id;
    ``ring`` (n, in_flight), when the latest instructions were done, ``last`` the latest of them.
    ``heap_time, heap_slot`` are a binary heap of events, ``queue`` (n_xcds,) the next hardware ids.
    """

    words: np.ndarray
    filler: np.ndarray
    arrival: np.ndarray
    mall: np.ndarray
    free: np.ndarray
    shared: np.ndarray
    cu: np.ndarray
    running: np.ndarray
    pid: np.ndarray
    ring: np.ndarray
    last: np.ndarray
    heap_time: np.ndarray
    heap_slot: np.ndarray
    queue: np.ndarray


@njit(cache=True)
def _touch_filled(words, filler, row, ways, word, instruction):
    """Look a line up and make it the most recent; return (1, its filler), or (word that fell out, -1).

    As `xcd_model.cache._touch`, with the filler of each line moving along; a new line gets ``instruction``.
    """
    held, by = words[row], filler[row]
    if (held ^ word) < 16:
        words[row] = np.uint32(held | (word & 15))
        return np.int64(1), np.int64(by)
    words[row], filler[row] = np.uint32(word), np.int32(instruction)
    for way in range(row + 1, row + ways):
        carry, carry_by = held, by
        held, by = words[way], filler[way]
        words[way], filler[way] = carry, carry_by
        if (held ^ word) < 16:
            words[row], filler[row] = np.uint32(held | (word & 15)), by
            return np.int64(1), np.int64(by)
    return np.int64(held), np.int64(-1)


@njit(inline="always")
def _look_up(stream, machine, clockwork, xcd, instruction, counts):
    """Send the lines of one instruction to its L2; return (latest arrival of a hit line, fills, fills from HBM, wb).

    counts : (n_columns,) int64, of this XCD and bin
    """
    template, base = stream.template[instruction], stream.base[instruction]
    words, filler = clockwork.words[xcd], clockwork.filler[xcd]
    before = counts[READ_MISSES], counts[MALL_HITS], counts[WRITEBACKS]
    wait = np.int64(0)
    for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
        line = base + stream.rel[entry]
        at, tag = _locate(line, machine.l2)
        dirty = np.int64(stream.dirty[entry])
        row = at * machine.l2_ways
        gone, by = _touch_filled(words, filler, row, machine.l2_ways, ((tag + 1) << 4) | dirty, instruction)
        if gone == 1:
            wait = max(wait, clockwork.arrival[by])
            continue
        weight = stream.set_weight[at]
        if gone & 15:
            counts[WRITEBACKS] += weight * _popcount4(gone)
        if dirty:
            counts[WRITE_MISSES] += weight
        else:
            counts[READ_MISSES] += weight
            _fill(machine, clockwork.mall, line, weight, counts)
    fills = counts[READ_MISSES] - before[0]
    return wait, fills, fills - (counts[MALL_HITS] - before[1]), counts[WRITEBACKS] - before[2]


@njit(inline="always")
def _travel(machine, rates, clockwork, xcd, l2_end, fills, from_hbm, writebacks):
    """Queue an instruction's fills and write-backs behind the others; return when the last fill is there."""
    if fills == 0 and writebacks == 0:
        return l2_end
    mall_end = max(l2_end, clockwork.free[xcd, 1]) + fills * rates.fabric + writebacks * rates.fabric_write
    clockwork.free[xcd, 1] = mall_end
    if machine.mall.n_sets:
        mall_end = max(mall_end, clockwork.shared[0]) + fills * rates.mall + writebacks * rates.mall_write
        clockwork.shared[0] = mall_end
    there = l2_end
    if fills > from_hbm:
        there = mall_end + rates.mall_latency
    if from_hbm or writebacks:
        hbm_end = max(mall_end, clockwork.shared[1]) + from_hbm * rates.hbm + writebacks * rates.hbm_write
        clockwork.shared[1] = hbm_end
        if from_hbm:
            there = max(there, hbm_end + rates.hbm_latency)
    return there


@njit(inline="always")
def _issue_at(stream, machine, rates, clockwork, xcd, instruction, now, counts):
    """Issue one instruction; return (when its data is there, when the L2 port is free)."""
    template = stream.template[instruction]
    write, requests = stream.is_write[template], stream.requests[template]
    counts[INSTRUCTIONS] += 1
    counts[WRITE_REQUESTS if write else READ_REQUESTS] += requests
    l2_end = max(now, clockwork.free[xcd, 0]) + requests * (rates.l2_write if write else rates.l2_read)
    clockwork.free[xcd, 0] = l2_end
    wait, fills, from_hbm, writebacks = _look_up(stream, machine, clockwork, xcd, instruction, counts)
    there = _travel(machine, rates, clockwork, xcd, l2_end, fills, from_hbm, writebacks)
    if write:  # stores are not waited for
        clockwork.arrival[instruction] = l2_end
        return l2_end, l2_end
    clockwork.arrival[instruction] = there
    arrive = max(l2_end + rates.l2_latency, wait)
    return (max(arrive, there) if fills else arrive), l2_end


@njit(inline="always")
def _start(stream, machine, clockwork, order, slot, now):
    """Give an empty slot the next workgroup of its XCD; False if there is none."""
    xcd = slot % machine.xcds
    pid = clockwork.queue[xcd]
    if pid >= order.size:
        return False
    clockwork.queue[xcd] = pid + machine.xcds
    clockwork.pid[slot] = pid
    first = stream.start[order[pid]]
    clockwork.running[slot] = first, stream.start[order[pid] + 1], first
    clockwork.ring[slot] = now
    clockwork.last[slot] = now
    return True


@njit(inline="always")
def _sink(heap_time, heap_slot, size):
    """Restore the heap after its first event was changed."""
    time, slot = heap_time[0], heap_slot[0]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and (heap_time[child + 1], heap_slot[child + 1]) < (heap_time[child], heap_slot[child]):
            child += 1
        if (time, slot) <= (heap_time[child], heap_slot[child]):
            break
        heap_time[at], heap_slot[at] = heap_time[child], heap_slot[child]
        at = child
    heap_time[at], heap_slot[at] = time, slot


@njit(inline="always")
def _bin_at(timeline, now, bin_fs):
    """Bin of a time and the length of a bin, after merging pairs of bins as often as the time asks for."""
    while now // bin_fs >= timeline.shape[0]:
        half = timeline.shape[0] // 2
        for i in range(half):
            timeline[i] = timeline[2 * i] + timeline[2 * i + 1]
        timeline[half:] = 0
        bin_fs *= 2
    return now // bin_fs, bin_fs


@njit(inline="always")
def _step(stream, machine, rates, pace, clockwork, order, slot, now, counts):
    """Issue the next instruction of a slot; return (when the slot can issue again, the latest time it made)."""
    xcd = slot % machine.xcds
    instruction, end, first = clockwork.running[slot]
    arrive, l2_end = _issue_at(stream, machine, rates, clockwork, xcd, instruction, now, counts)
    position = instruction - first
    if pace.jitter_fs and not stream.is_write[stream.template[instruction]]:
        draw = _mix(_mix(_mix(pace.seed) ^ np.uint64(order[clockwork.pid[slot]])) ^ np.uint64(position))
        arrive += np.int64(draw % np.uint64(pace.jitter_fs + 1))
    cu = (slot // machine.xcds) % clockwork.cu.shape[1]
    done = max(arrive, clockwork.last[slot], clockwork.cu[xcd, cu]) + pace.compute_fs
    clockwork.cu[xcd, cu] = done
    clockwork.last[slot] = done
    clockwork.ring[slot, position % pace.in_flight] = done
    clockwork.running[slot, 0] = instruction + 1
    if instruction + 1 == end:
        return done, max(done, l2_end)
    return max(now, clockwork.ring[slot, (position + 1) % pace.in_flight]), max(done, l2_end)


@njit(cache=True, nogil=True)
def _timed(stream, machine, rates, pace, order, clockwork, timeline, bin_fs):
    """Replay the whole grid; fill ``timeline``, return (time of the kernel, time a bin, last bin). Checks nothing."""
    size = clockwork.heap_time.size
    latest = np.int64(0)
    at = np.int64(0)
    while size:
        now, slot = clockwork.heap_time[0], np.int64(clockwork.heap_slot[0])
        empty = clockwork.running[slot, 0] == clockwork.running[slot, 1]
        if empty and not _start(stream, machine, clockwork, order, slot, now):
            size -= 1
            clockwork.heap_time[0], clockwork.heap_slot[0] = clockwork.heap_time[size], clockwork.heap_slot[size]
        else:
            at, bin_fs = _bin_at(timeline, now, bin_fs)
            counts = timeline[at, slot % machine.xcds]
            again, made = _step(stream, machine, rates, pace, clockwork, order, slot, now, counts)
            clockwork.heap_time[0] = again
            latest = max(latest, made)
        _sink(clockwork.heap_time, clockwork.heap_slot, size)
    _flush(stream, machine, clockwork.words, timeline[at])
    return latest, bin_fs, at


def _check_time(plan: Plan, rates: Rates, pace: Pace) -> None:
    """Refuse a replay whose times might leave 64 bits, were everything to run one after the other."""
    slowest = plan.trace.n_touches * sum(rates) * 8 + plan.trace.n_instructions * (pace.compute_fs + pace.jitter_fs)
    if slowest >= 2**63:
        raise ReplayError(
            f"one after the other the instructions take up to {slowest} fs, over 64 bits: a smaller problem"
        )


def _clockwork(plan: Plan, slots: int, in_flight: int) -> Clockwork:
    machine = plan.machine
    n_words, n_slots = machine.l2.n_sets * machine.l2_ways, machine.xcds * slots
    return Clockwork(
        words=np.zeros((machine.xcds, n_words), np.uint32),
        filler=np.zeros((machine.xcds, n_words), np.int32),
        arrival=np.zeros(plan.trace.n_instructions, np.int64),
        mall=np.zeros(machine.mall.n_sets * machine.mall_ways, np.uint32),
        free=np.zeros((machine.xcds, 2), np.int64),
        shared=np.zeros(2, np.int64),
        cu=np.zeros((machine.xcds, plan.gpu.cus_per_xcd), np.int64),
        running=np.zeros((n_slots, 3), np.int64),
        pid=np.zeros(n_slots, np.int64),
        ring=np.zeros((n_slots, in_flight), np.int64),
        last=np.zeros(n_slots, np.int64),
        heap_time=np.zeros(n_slots, np.int64),
        heap_slot=np.arange(n_slots, dtype=np.int32),  # equal times, slots in order: a heap
        queue=(np.arange(machine.xcds, dtype=np.int64) - machine.offset) % machine.xcds,
    )


def replay_timed(
    plan: Plan, order: np.ndarray, *, workgroups_per_cu: int, pace: Pace, bin_fs: int = 1_000_000_000
) -> Traffic:
    """Replay a trace under one order of workgroups, letting them drift.

    Parameters
    ----------
    plan : Plan
        A trace made ready for a GPU, see `prepare`; shared by all orders.
    order : (n_workgroups,) int array
        ``order[w]`` is the workgroup of the trace that hardware workgroup ``w`` computes: a permutation.
    workgroups_per_cu : int
        Occupancy, at least 1.
    pace : Pace
        How fast the kernel computes, how far it loads ahead, and the jitter.
    bin_fs : int [fs]
        Length of a bin of the timeline; doubled as often as the kernel's time asks for.

    Returns
    -------
    Traffic
        With ``time_fs``, when the last workgroup is done; the flush of dirty lines at the end is counted, not timed.

    Raises
    ------
    ReplayError
        If ``order`` is no permutation of the trace's workgroups, or occupancy, pace or bin make no sense.

    Notes
    -----
    Fills of one instruction arrive together. So cache sets of one class (see `xcd_model.symmetry`) stay alike, and
    counts and times by symmetry equal those of the plain replay.
    """
    order = check_order(order, plan.n_workgroups)
    if workgroups_per_cu < 1 or bin_fs < 1:
        raise ReplayError(f"workgroups_per_cu = {workgroups_per_cu}, bin_fs = {bin_fs}: both are at least 1")
    pace.check()
    rates: Rates = rates_of(plan.gpu)
    _check_time(plan, rates, pace)
    slots = plan.gpu.cus_per_xcd * workgroups_per_cu
    timeline = np.zeros((MAX_BINS, plan.machine.xcds, len(COLUMNS)), np.int64)
    clockwork = _clockwork(plan, slots, pace.in_flight)
    machine = plan.machine._replace(slots=slots)
    time_fs, bin_fs, last = _timed(plan.stream, machine, rates, pace, order, clockwork, timeline, bin_fs)
    return Traffic(
        timeline=timeline[: last + 1].copy(),
        turns_per_bin=0,
        turns=0,
        line_bytes=plan.gpu.l2.line_bytes,
        write_request_bytes=plan.gpu.l2.write_request_bytes,
        simulated_fraction=plan.simulated_fraction,
        time_fs=int(time_fs),
        bin_fs=int(bin_fs),
    )
