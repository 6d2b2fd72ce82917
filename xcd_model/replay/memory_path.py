"""One instruction of the timed replay: through L1 and L2 and the queues behind them, and when its data is there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.cache.batch import (
    CHUNK,
    Scratch,
    _gather,
    _gather_lines,
    _gather_sets,
    _locate_all,
    _write_back,
    scratch,
)
from xcd_model.cache.l1 import L1, _read_tile, empty_l1
from xcd_model.cache.l2 import _look_up_by, _touch_one
from xcd_model.cache.lru import HIT, MARK_BITS, _fetched, _popcount4
from xcd_model.dispatch.round_robin import Slots, slots_of
from xcd_model.fast.lru_simd import aligned_words
from xcd_model.nvidia.hbm_rows import Rows, _opening, closed_rows
from xcd_model.nvidia.hbm_turnaround import _mixed_wait, _note_busy, nothing_yet
from xcd_model.nvidia.partitioned_l2 import COPY, _look_up_sides_by
from xcd_model.replay.event_queue import Agenda, agenda_of
from xcd_model.replay.launches import Caches
from xcd_model.replay.lockstep_loop import _tally
from xcd_model.replay.plan import Plan
from xcd_model.replay.read_queue import ReadQueue, _ask, read_queue
from xcd_model.replay.traffic import (
    MALL_HITS,
    MALL_REQUESTS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_MISSES,
    WRITE_REQUESTS,
    WRITEBACKS,
)
from xcd_model.trace.packed import BY_LINE, BY_TILE, NO_L1, Machine


class Clockwork(NamedTuple):
    """What changes during a timed replay; times are int64 [fs].

    ``words`` (n_xcds, `xcd_model.replay.launches.l2_words`) are the L2s, ``filler`` beside them the instruction that
    brought each line in, ``arrival`` (n_instructions + 1,) when that was done (the last, 0, is of an earlier launch),
    and ``at_cu`` when the CU had what the instruction read. ``free`` is (n_xcds, 2), when L2 port and fabric are free;
    ``shared`` (3,) the same of Infinity Cache and HBM, and the time taken so far to open ``rows`` of the HBM;
    ``recent`` what that was lately busy with (`xcd_model.nvidia.hbm_turnaround`); ``port`` and ``cu`` (n_xcds * cus,)
    of L1 and arithmetic. For each slot, at ``slot * n_xcds + xcd``: ``issued`` and ``computed`` (n,), instructions of
    its workgroup so far; ``ring`` and ``arrive`` (n, in_flight), when the latest were done and when their data was
    there. ``agenda`` is what happens next, ``reads`` are what the CUs have under way.
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
    rows: Rows
    recent: np.ndarray
    port: np.ndarray
    cu: np.ndarray
    ring: np.ndarray
    arrive: np.ndarray
    computed: np.ndarray
    issued: np.ndarray
    agenda: Agenda
    reads: ReadQueue
    scratch: Scratch


@njit(inline="always")
def _fill_missed(n, index, ways, mall, line, missed, weight_of, at):
    """Fetch ``n`` missed lines from the Infinity Cache; return how many it held, weighted. ``at``: their L2 sets."""
    n_sets, mask, shift, table = index.n_sets, index.mask, index.shift, index.hash
    held = np.int64(0)
    for j in range(n):
        i = missed[j]
        touched = line[i]
        row, tag = (touched % n_sets, touched // n_sets) if mask < 0 else (touched & mask, touched >> shift)
        if table.size:
            row ^= table[tag]
        row, word = row * ways, (tag + 1) << MARK_BITS
        held += weight_of[at[i]] * np.int64(_touch_one(mall, row, ways, word) == HIT)
    return held


@njit(inline="always")
def _l2_by(stream, machine, rates, clockwork, xcd, unit, instruction, n, is_write, tensor, in_time, counts, by_tensor):
    """Send ``n`` gathered lines to an L2; those it has that come later than ``in_time`` are late hits.

    Returns latest arrival of a hit line, the same of those held on the other side (-1: none), misses, and how many of
    them the Infinity Cache held.
    """
    scratch, set_weight = clockwork.scratch, stream.set_weight
    line, marks, at, missed, fell = scratch.line, scratch.marks, scratch.at, scratch.missed, scratch.fell
    _locate_all(line, n, machine.l2, at, scratch.word)
    words, filler = clockwork.words[xcd], clockwork.filler[xcd]
    far, arrival = np.int64(-1), clockwork.arrival
    if machine.home_mask:
        side = machine.side_of[unit % machine.cus]
        made, wait, far, late = _look_up_sides_by(
            n, words, filler, machine, side, is_write, instruction, arrival, set_weight, scratch, in_time
        )
        n_missed = np.uint64(made)
    else:
        n_missed, wait, late = _look_up_by(
            n, words, filler, machine.l2_ways, instruction, arrival, at, scratch.word, marks, missed, fell, in_time,
            set_weight,
        )  # fmt: skip
    if not is_write:
        scratch.late[0] += late
    misses, held = np.int64(0), np.int64(0)
    for j in range(n_missed):
        i = missed[j]
        weight, word = set_weight[at[i]], fell[j] & 0xFFFFFFFF
        fetched = weight * _fetched(word, marks[i]) if fell[j] < COPY else np.int64(0)
        misses += fetched
        if word & 15:
            pieces = weight * _popcount4(word)
            left = _write_back(
                stream.tensor_lines, machine.l2, np.int64(at[i]), word, pieces, WRITEBACKS, counts, by_tensor
            )
            if clockwork.rows.held.size:
                clockwork.shared[2] += _opening(clockwork.rows, left, pieces * rates.hbm_write, rates.hbm_row_write)
        if clockwork.rows.held.size and not is_write and fell[j] < COPY:
            clockwork.shared[2] += _opening(clockwork.rows, line[i], fetched * rates.hbm, rates.hbm_row_read)
    if n_missed and machine.mall.n_sets and not is_write:
        held = _fill_missed(n_missed, machine.mall, machine.mall_ways, clockwork.mall, line, missed, set_weight, at)
        counts[MALL_REQUESTS] += misses
        by_tensor[tensor, MALL_REQUESTS] += misses
        counts[MALL_HITS] += held
        by_tensor[tensor, MALL_HITS] += held
    column = WRITE_MISSES if is_write else READ_MISSES
    counts[column] += misses
    by_tensor[tensor, column] += misses
    return wait, far, misses, held


@njit(inline="always")
def _travel(machine, rates, clockwork, xcd, l2_end, fills, from_hbm, writebacks, opening):
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
        hbm_end = max(mall_end, clockwork.shared[1]) + from_hbm * rates.hbm + writebacks * rates.hbm_write + opening
        clockwork.shared[1] = hbm_end
        wait = np.int64(0)
        if rates.mixed_wait:
            written = writebacks * rates.hbm_write
            _note_busy(clockwork.recent, hbm_end, from_hbm * rates.hbm + written + opening, written)
            wait = _mixed_wait(clockwork.recent, hbm_end, rates.mixed_wait)
        if from_hbm:
            there = max(there, hbm_end + rates.hbm_latency + wait)
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
def _ask_l1(stream, machine, rates, clockwork, unit, instruction, template, is_write, now):
    """Take an instruction through the port of its L1, and a tile through the L1.

    Returns L2 requests, L1 sets that miss (-1: all), whether the whole tile does, requests and hits of the L1, when its
    port is free, and when the CU has what the L1 held.
    """
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
    return requests, missing, whole, l1_requests, l1_hits, l1_end, wait


@njit(inline="always")
def _issue_at(stream, machine, rates, clockwork, xcd, unit, instruction, now, counts, by_tensor):
    """Issue one instruction; return (when its data is there, when the L2 port is free)."""
    scratch, template = clockwork.scratch, stream.template[instruction]
    base, is_write, tensor = stream.base[instruction], stream.is_write[template], stream.tensor[template]
    begin, end = stream.rel_start[template], stream.rel_start[template + 1]
    requests, missing, whole, l1_requests, l1_hits, l1_end, wait = _ask_l1(
        stream, machine, rates, clockwork, unit, instruction, template, is_write, now
    )
    by_line = machine.l1_mode == BY_LINE and not is_write
    if by_line:
        requests = np.int64(0)
    misses = held_by_mall = l2_wait = np.int64(0)
    far_wait = np.int64(-1)
    written, opened = counts[WRITEBACKS], clockwork.shared[2]
    # a line that the L2 holds when it takes the instruction up is at the CU by then
    in_time = max(l1_end, clockwork.free[xcd, 0]) + rates.l2_latency
    for start in range(begin, end if missing else begin, CHUNK):
        first, n = np.uint64(start), min(CHUNK, end - start)
        if by_line:
            n, asked, held = _gather_lines(
                stream.rel, stream.marks, stream.pieces, machine.l1, machine.l1_ways, clockwork.l1, unit, base, first,
                n, instruction, clockwork.at_cu, scratch.line, scratch.marks, scratch.asked,
            )  # fmt: skip
            requests += asked
            l1_hits -= n
            wait = max(wait, held)
        elif whole:
            _gather(stream.rel, stream.marks, stream.pieces, base, first, n, scratch.line, scratch.marks, scratch.asked)
        else:
            n = _gather_sets(
                stream.rel, stream.marks, stream.pieces, machine.l1, base, first, n, missing, scratch.line,
                scratch.marks, scratch.asked,
            )  # fmt: skip
        latest, far, missed, held = _l2_by(
            stream, machine, rates, clockwork, xcd, unit, instruction, n, is_write, tensor, in_time, counts, by_tensor
        )
        l2_wait, far_wait = max(l2_wait, latest), max(far_wait, far)
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
    there = _travel(
        machine, rates, clockwork, xcd, l2_end, fills, fills - held_by_mall, counts[WRITEBACKS] - written,
        clockwork.shared[2] - opened,
    )  # fmt: skip
    if is_write:  # stores are not waited for
        return l2_end, l2_end
    wait = max(wait, there) if fills else wait
    if far_wait >= 0:  # copies of what the other side held
        far_wait = max(far_wait, l2_end + rates.l2_latency + rates.l2_far)
        wait, there = max(wait, far_wait), max(there, far_wait)
    clockwork.arrival[instruction], clockwork.at_cu[instruction] = there, wait
    if requests and clockwork.reads.limit:
        _ask(clockwork.reads, unit, requests, wait)
    return wait, l2_end


def clockwork_of(plan: Plan, machine: Machine, in_flight: int, caches: Caches) -> Clockwork:
    """Everything idle, at time 0; the caches as they are."""
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
        shared=np.zeros(3, np.int64),
        rows=closed_rows(plan.gpu.hbm_rows, plan.gpu.l2.line_bytes),
        recent=nothing_yet(),
        port=np.zeros(machine.xcds * machine.cus, np.int64),
        cu=np.zeros(machine.xcds * machine.cus, np.int64),
        ring=np.zeros((n_slots, in_flight), np.int64),
        arrive=np.zeros((n_slots, in_flight), np.int64),
        computed=np.zeros(n_slots, np.int64),
        issued=np.zeros(n_slots, np.int64),
        agenda=agenda_of(n_slots, machine.xcds * machine.cus),
        reads=read_queue(plan.gpu.limits.reads_in_flight_per_cu, machine.xcds * machine.cus),
        scratch=scratch(machine),
    )
