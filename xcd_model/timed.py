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

from .batch import CHUNK, Scratch, _gather, _gather_lines, _gather_sets, _locate_all, _write_back, scratch
from .cache import _popcount4, _touch
from .dispatch import check_order
from .errors import ReplayError
from .l1 import L1, _read_tile, empty_l1
from .launches import Caches, cold_caches
from .lockstep import Slots, _flush, _next_pid, _tally, slots_of
from .plan import Plan
from .rates import Pace, Rates, rates_of
from .replay import MAX_BINS
from .rows import WAYS, _touch_row, _touch_row_by, aligned_words
from .stream import BY_LINE, BY_TILE, NO_L1, Machine
from .symmetry import _mix
from .traffic import (
    COLUMNS,
    MALL_HITS,
    MALL_REQUESTS,
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
    ``arrival`` (n_instructions + 1,) when that was done (the last, 0, is of an earlier launch), and ``at_cu`` when
    the CU had what the instruction read. ``free`` is (n_xcds, 2), when L2 port and fabric are free; ``shared`` (2,)
    the same of Infinity Cache and HBM; ``port`` and ``cu`` (n_xcds * cus,) of L1 and arithmetic. For each slot, at
    ``slot * n_xcds + xcd``: ``first`` (n,) instruction of its workgroup, ``ring`` (n, in_flight), when the latest
    instructions were done. ``heap_time, heap_slot`` are a binary heap of events.
    """

    words: np.ndarray
    filler: np.ndarray
    arrival: np.ndarray
    at_cu: np.ndarray
    mall: np.ndarray
    l1: L1
    slots: Slots
    free: np.ndarray
    shared: np.ndarray
    port: np.ndarray
    cu: np.ndarray
    first: np.ndarray
    ring: np.ndarray
    last: np.ndarray
    heap_time: np.ndarray
    heap_slot: np.ndarray
    scratch: Scratch


@njit(inline="always")
def _touch_by(words, filler, row, ways, word, by):
    """As `xcd_model.rows._touch_row_by`, for any number of ways."""
    place = row
    while place < row + ways - 1 and (words[place] ^ word) >= 16:
        place += 1
    held, held_by = np.int64(words[place]), np.int64(filler[place])
    hit = (held ^ word) < 16
    for back in range(place - row):
        words[place - back] = words[place - back - 1]
        filler[place - back] = filler[place - back - 1]
    words[row] = np.uint32(word | (held & 15)) if hit else np.uint32(word)
    filler[row] = np.int32(held_by) if hit else np.int32(by)
    return (np.int64(1) if hit else held) | (held_by << 32)


@njit(inline="always")
def _look_up_by(n, words, filler, ways, by, arrival, at, word, dirty, missed, fell):
    """Look the located lines up in an L2; return (how many missed, latest arrival of the others)."""
    last = np.int64(1) << (ways - 1)
    n_missed, wait = np.uint64(0), np.int64(0)
    for i in range(np.uint64(n)):
        row, touched = np.int64(at[i]) * ways, np.int64(word[i]) | np.int64(dirty[i])
        if ways <= WAYS:
            found = _touch_row_by(words, filler, row, touched, last, by)
        else:
            found = _touch_by(words, filler, row, ways, touched, by)
        gone = found & 0xFFFFFFFF
        missed[n_missed] = i
        fell[n_missed] = gone
        if gone == 1:
            wait = max(wait, arrival[found >> 32])
        else:
            n_missed += np.uint64(1)
    return n_missed, wait


@njit(inline="always")
def _fill_missed(n, index, ways, mall, line, missed, weight_of, at):
    """Fetch ``n`` missed lines from the Infinity Cache; return how many it held, weighted. ``at``: their L2 sets."""
    n_sets, mask, shift, table = index.n_sets, index.mask, index.shift, index.hash
    last = np.int64(1) << (ways - 1)
    held = np.int64(0)
    for j in range(n):
        i = missed[j]
        touched = line[i]
        row, tag = (touched % n_sets, touched // n_sets) if mask < 0 else (touched & mask, touched >> shift)
        if table.size:
            row ^= table[tag]
        row, word = row * ways, (tag + 1) << 4
        gone = _touch_row(mall, row, word, last) if ways <= WAYS else _touch(mall, row, ways, word)
        held += weight_of[at[i]] * np.int64(gone == 1)
    return held


@njit(inline="always")
def _l2_by(stream, machine, clockwork, xcd, instruction, n, is_write, tensor, counts, by_tensor):
    """Send ``n`` gathered lines to an L2; return (latest arrival of a hit line, misses, of them held by the MALL)."""
    scratch, set_weight = clockwork.scratch, stream.set_weight
    line, at, missed, fell = scratch.line, scratch.at, scratch.missed, scratch.fell
    _locate_all(line, n, machine.l2, at, scratch.word)
    words, filler = clockwork.words[xcd], clockwork.filler[xcd]
    n_missed, wait = _look_up_by(
        n, words, filler, machine.l2_ways, instruction, clockwork.arrival, at, scratch.word, scratch.dirty, missed, fell
    )
    misses, held = np.int64(0), np.int64(0)
    for j in range(n_missed):
        i = missed[j]
        weight = set_weight[at[i]]
        misses += weight
        if fell[j] & 15:
            pieces = weight * _popcount4(fell[j])
            _write_back(
                stream.tensor_lines, machine.l2, np.int64(at[i]), fell[j], pieces, WRITEBACKS, counts, by_tensor
            )
    if n_missed and machine.mall.n_sets and not is_write:
        held = _fill_missed(n_missed, machine.mall, machine.mall_ways, clockwork.mall, line, missed, set_weight, at)
        counts[MALL_REQUESTS] += misses
        by_tensor[tensor, MALL_REQUESTS] += misses
        counts[MALL_HITS] += held
        by_tensor[tensor, MALL_HITS] += held
    column = WRITE_MISSES if is_write else READ_MISSES
    counts[column] += misses
    by_tensor[tensor, column] += misses
    return wait, misses, held


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
def _ask_tile(stream, machine, l1, at_cu, unit, instruction):
    """Send a read through an L1 by tile; return (missing sets, L2 requests, lines missing, when it had the others)."""
    tile, tile_lines, tile_requests = stream.tile[instruction], stream.tile_lines, stream.tile_requests
    brought_by = l1.brought_by[unit]
    place, missing = _read_tile(tile_lines, machine.l1_ways, l1, unit, tile, instruction)
    requests = lines = wait = np.int64(0)
    for at in range(machine.l1.n_sets):
        if (missing >> at) & 1:
            requests += tile_requests[tile, at]
            lines += tile_lines[tile, at]
        elif tile_lines[tile, at]:
            wait = max(wait, at_cu[brought_by[place, at]])
    return missing, requests, lines, wait


@njit(inline="always")
def _issue_at(stream, machine, rates, clockwork, xcd, unit, instruction, now, counts, by_tensor):
    """Issue one instruction; return (when its data is there, when the L2 port is free)."""
    scratch, template = clockwork.scratch, stream.template[instruction]
    base, is_write, tensor = stream.base[instruction], stream.is_write[template], stream.tensor[template]
    begin, end = stream.rel_start[template], stream.rel_start[template + 1]
    requests, missing, whole, wait = stream.requests[template], np.int64(-1), True, np.int64(0)
    l1_requests = l1_hits = np.int64(0)
    l1_end = np.int64(now)
    if machine.l1_mode != NO_L1 and not is_write:
        l1_requests = l1_hits = stream.waves[template]
        l1_end = max(now, clockwork.port[unit]) + l1_requests * rates.l1
        clockwork.port[unit] = l1_end
        wait = l1_end + rates.l1_latency
    if machine.l1_mode == BY_TILE and not is_write:
        missing, requests, lines, held = _ask_tile(stream, machine, clockwork.l1, clockwork.at_cu, unit, instruction)
        whole = missing == stream.tile_sets[stream.tile[instruction]]
        l1_hits -= lines
        wait = max(wait, held)
    by_line = machine.l1_mode == BY_LINE and not is_write
    if by_line:
        requests = np.int64(0)
    misses = held_by_mall = l2_wait = np.int64(0)
    written = counts[WRITEBACKS]
    for start in range(begin, end if missing else begin, CHUNK):
        first, n = np.uint64(start), min(CHUNK, end - start)
        if by_line:
            words, filler = clockwork.l1.words[unit], clockwork.l1.filler[unit]
            n, asked, held = _gather_lines(
                stream.rel, stream.pieces, machine.l1, machine.l1_ways, words, filler, base, first, n, instruction,
                clockwork.at_cu, scratch.line, scratch.dirty,
            )  # fmt: skip
            requests += asked
            l1_hits -= n
            wait = max(wait, held)
        elif whole:
            _gather(stream.rel, stream.dirty, base, first, n, scratch.line, scratch.dirty)
        else:
            n = _gather_sets(stream.rel, machine.l1, base, first, n, missing, scratch.line, scratch.dirty)
        latest, missed, held = _l2_by(
            stream, machine, clockwork, xcd, instruction, n, is_write, tensor, counts, by_tensor
        )
        l2_wait = max(l2_wait, latest)
        misses += missed
        held_by_mall += held
    _tally(counts, by_tensor, tensor, WRITE_REQUESTS if is_write else READ_REQUESTS, requests, l1_requests, l1_hits)
    l2_end = l1_end
    if requests:
        service = requests * (rates.l2_write if is_write else rates.l2_read)
        l2_end = max(l1_end, clockwork.free[xcd, 0]) + service
        clockwork.free[xcd, 0] = l2_end
        wait = max(wait, l2_end + rates.l2_latency, l2_wait)
    fills = np.int64(0) if is_write else misses
    there = _travel(machine, rates, clockwork, xcd, l2_end, fills, fills - held_by_mall, counts[WRITEBACKS] - written)
    if is_write:  # stores are not waited for
        return l2_end, l2_end
    clockwork.arrival[instruction] = there
    wait = max(wait, there) if fills else wait
    clockwork.at_cu[instruction] = wait
    return wait, l2_end


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
    bins, xcds, columns = timeline.shape
    while now // bin_fs >= bins:
        for i in range(bins):
            for xcd in range(xcds):
                for column in range(columns):
                    merged = timeline[2 * i, xcd, column] + timeline[2 * i + 1, xcd, column] if 2 * i < bins else 0
                    timeline[i, xcd, column] = merged
        bin_fs *= 2
    return now // bin_fs, bin_fs


@njit(inline="always")
def _step(stream, machine, rates, pace, clockwork, order, slot, now, counts, totals):
    """Issue the next instruction of a slot; return (when the slot can issue again, the latest time it made)."""
    xcd, place = slot % machine.xcds, slot // machine.xcds
    unit = xcd * machine.cus + place % machine.cus
    running = clockwork.slots.running[xcd, place]
    instruction, first = running[0], clockwork.first[slot]
    arrive, l2_end = _issue_at(stream, machine, rates, clockwork, xcd, unit, instruction, now, counts, totals[:, xcd])
    position = instruction - first
    if pace.jitter_fs and not stream.is_write[stream.template[instruction]]:
        tile = order[clockwork.slots.pid[xcd, place]]
        draw = _mix(_mix(_mix(pace.seed) ^ np.uint64(tile)) ^ np.uint64(position))
        arrive += np.int64(draw % np.uint64(pace.jitter_fs + 1))
    done = max(arrive, clockwork.last[slot], clockwork.cu[unit]) + pace.compute_fs
    clockwork.cu[unit] = done
    clockwork.last[slot] = done
    clockwork.ring[slot, position % pace.in_flight] = done
    running[0] = instruction + 1
    if instruction + 1 == running[1]:
        return done, max(done, l2_end)
    return max(now, clockwork.ring[slot, (position + 1) % pace.in_flight]), max(done, l2_end)


@njit(inline="always")
def _start(stream, machine, clockwork, order, slot, now):
    """Give an empty slot its next workgroup; False if there is none."""
    xcd, place, slots = slot % machine.xcds, slot // machine.xcds, clockwork.slots
    pid = _next_pid(machine, order.size, slots.pid[xcd, place], slots.waiting, xcd)
    if pid < 0:
        return False
    slots.pid[xcd, place] = pid
    slots.running[xcd, place, 0] = stream.start[order[pid]]
    slots.running[xcd, place, 1] = stream.start[order[pid] + 1]
    clockwork.first[slot] = stream.start[order[pid]]
    for i in range(clockwork.ring.shape[1]):
        clockwork.ring[slot, i] = now
    return True


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def _timed(stream, machine, rates, pace, order, clockwork, timeline, totals, bin_fs):
    """Replay the whole grid; fill ``timeline``, return (time of the kernel, time a bin, last bin). Checks nothing."""
    size = clockwork.heap_time.size
    latest = np.int64(0)
    at = np.int64(0)
    while size:
        now, slot = clockwork.heap_time[0], np.int64(clockwork.heap_slot[0])
        running = clockwork.slots.running[slot % machine.xcds, slot // machine.xcds]
        empty = running[0] == running[1]
        if empty and not _start(stream, machine, clockwork, order, slot, now):
            size -= 1
            clockwork.heap_time[0], clockwork.heap_slot[0] = clockwork.heap_time[size], clockwork.heap_slot[size]
        else:
            at, bin_fs = _bin_at(timeline, now, bin_fs)
            counts = timeline[at, slot % machine.xcds]
            again, made = _step(stream, machine, rates, pace, clockwork, order, slot, now, counts, totals)
            clockwork.heap_time[0] = again
            latest = max(latest, made)
        _sink(clockwork.heap_time, clockwork.heap_slot, size)
    return latest, bin_fs, at


def _check_time(plan: Plan, rates: Rates, pace: Pace) -> None:
    """Refuse a replay whose times might leave 64 bits, were everything to run one after the other."""
    touches = plan.trace.n_touches * (8 + int(plan.trace.wave_requests.max()))
    slowest = touches * sum(rates) + plan.trace.n_instructions * (pace.compute_fs + pace.jitter_fs)
    if slowest >= 2**63:
        raise ReplayError(
            f"one after the other the instructions take up to {slowest} fs, over 64 bits: a smaller problem"
        )


def _clockwork(plan: Plan, machine: Machine, in_flight: int, caches: Caches) -> Clockwork:
    n_slots, n_instructions = machine.xcds * machine.slots, plan.trace.n_instructions
    filler = aligned_words(caches.l2.size).view(np.int32).reshape(caches.l2.shape)
    filler[:] = n_instructions  # what an earlier launch left is there
    return Clockwork(
        words=caches.l2,
        filler=filler,
        arrival=np.zeros(n_instructions + 1, np.int64),
        at_cu=np.zeros(n_instructions, np.int64),
        mall=caches.mall,
        l1=empty_l1(machine),
        slots=slots_of(machine),
        free=np.zeros((machine.xcds, 2), np.int64),
        shared=np.zeros(2, np.int64),
        port=np.zeros(machine.xcds * machine.cus, np.int64),
        cu=np.zeros(machine.xcds * machine.cus, np.int64),
        first=np.zeros(n_slots, np.int64),
        ring=np.zeros((n_slots, in_flight), np.int64),
        last=np.zeros(n_slots, np.int64),
        heap_time=np.zeros(n_slots, np.int64),
        heap_slot=np.arange(n_slots, dtype=np.int32),  # equal times, slots in order: a heap
        scratch=scratch(),
    )


def replay_timed(
    plan: Plan,
    order: np.ndarray,
    *,
    workgroups_per_cu: int,
    pace: Pace,
    bin_fs: int = 1_000_000_000,
    caches: Caches | None = None,
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
    caches : Caches, optional
        Left by an earlier launch, and left for the next; cold where not given.

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
    machine = plan.machine._replace(slots=plan.gpu.cus_per_xcd * workgroups_per_cu)
    caches = cold_caches(plan) if caches is None else caches
    caches.begin(plan)
    timeline = np.zeros((MAX_BINS, machine.xcds, len(COLUMNS)), np.int64)
    totals = np.zeros((len(plan.trace.tensors), machine.xcds, len(COLUMNS)), np.int64)
    clockwork = _clockwork(plan, machine, pace.in_flight, caches)
    time_fs, bin_fs, last = _timed(plan.stream, machine, rates, pace, order, clockwork, timeline, totals, bin_fs)
    for xcd in range(machine.xcds):
        _flush(plan.stream, machine, caches.l2[xcd], xcd, timeline, last, totals)
    return Traffic(
        timeline=timeline[: last + 1].copy(),
        turns_per_bin=0,
        turns=0,
        line_bytes=plan.gpu.l2.line_bytes,
        write_request_bytes=plan.gpu.l2.write_request_bytes,
        simulated_fraction=plan.simulated_fraction,
        time_fs=int(time_fs),
        bin_fs=int(bin_fs),
        by_tensor=totals,
        tensors=tuple(t.name for t in plan.trace.tensors),
    )
