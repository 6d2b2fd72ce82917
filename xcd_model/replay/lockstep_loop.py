"""The compiled loop of the lockstep replay: one XCD through a window of turns."""

from __future__ import annotations

import numpy as np
from numba import njit

from xcd_model.cache.batch import CHUNK, _gather, _gather_lines, _gather_sets, _locate_all, _write_back
from xcd_model.cache.l1 import _read_tile
from xcd_model.cache.l2 import _look_up
from xcd_model.cache.lru import _fetched, _popcount4
from xcd_model.dispatch.round_robin import _next_instruction
from xcd_model.numba_setup import uncounted
from xcd_model.nvidia.partitioned_l2 import COPY, _look_up_sides
from xcd_model.replay.traffic import (
    INSTRUCTIONS,
    L1_HITS,
    L1_REQUESTS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_MISSES,
    WRITE_REQUESTS,
    WRITEBACKS,
)
from xcd_model.trace.packed import BY_LINE, BY_TILE, NO_L1, Machine, Stream

NO_TIMES = np.zeros(0, np.int64)  # arrivals: the lockstep replay has none


@njit(inline="always")
def _l2(stream, machine, l2, unit, n, is_write, tensor, queued_line, queued_weight, queued, scratch, counts, by_tensor):
    """Send ``n`` gathered lines to an L2; return the length of the queue of missed reads."""
    line, marks, at, missed, fell = scratch.line, scratch.marks, scratch.at, scratch.missed, scratch.fell
    set_weight = stream.set_weight
    _locate_all(line, n, machine.l2, at, scratch.word)
    if machine.home_mask:
        side = machine.side_of[unit % machine.cus]
        n_missed = np.uint64(_look_up_sides(n, l2, machine, side, is_write, set_weight, scratch))
    else:
        n_missed = _look_up(n, l2, machine.l2_ways, at, scratch.word, marks, missed, fell)
    queues = machine.mall.n_sets and not is_write
    misses = np.int64(0)
    for j in range(n_missed):
        i = missed[j]
        weight = set_weight[at[i]]
        if fell[j] < COPY:
            misses += weight * _fetched(fell[j], marks[i])
        if fell[j] & 15:
            pieces = weight * _popcount4(fell[j])
            word = fell[j] & 0xFFFFFFFF
            _write_back(stream.tensor_lines, machine.l2, np.int64(at[i]), word, pieces, WRITEBACKS, counts, by_tensor)
        if queues:
            queued_line[queued] = line[i]
            queued_weight[queued] = weight
            queued += 1
    column = WRITE_MISSES if is_write else READ_MISSES
    counts[column] += misses
    by_tensor[tensor, column] += misses
    return queued


@njit(inline="always")
def _tally(counts, by_tensor, tensor, column, requests, l1_requests, l1_hits):
    """Count one instruction and its requests."""
    counts[INSTRUCTIONS] += 1
    by_tensor[tensor, INSTRUCTIONS] += 1
    counts[column] += requests
    by_tensor[tensor, column] += requests
    counts[L1_REQUESTS] += l1_requests
    by_tensor[tensor, L1_REQUESTS] += l1_requests
    counts[L1_HITS] += l1_hits
    by_tensor[tensor, L1_HITS] += l1_hits


@njit(inline="always")
def _ask_tile(stream, machine, l1, unit, instruction):
    """Send a read through an L1 by tile; return (its missing sets as bits, L2 requests, lines that miss)."""
    tile, tile_lines, tile_requests = stream.tile[instruction], stream.tile_lines, stream.tile_requests
    _, missing = _read_tile(tile_lines, machine.l1_ways, l1, unit, tile, instruction)
    requests = lines = np.int64(0)
    for at in range(machine.l1.n_sets):
        is_missing = (missing >> at) & 1
        requests += is_missing * tile_requests[tile, at]
        lines += is_missing * tile_lines[tile, at]
    return missing, requests, lines


@njit(inline="always")
def _issue(stream, machine, l1, l2, unit, instruction, queued_line, queued_weight, queued, scratch, counts, by_tensor):
    """Send one instruction to the L1 ``unit`` and the L2; return the length of the queue of missed reads."""
    template = stream.template[instruction]
    base, is_write, tensor = stream.base[instruction], stream.is_write[template], stream.tensor[template]
    begin, end = stream.rel_start[template], stream.rel_start[template + 1]
    requests, missing, whole = stream.requests[template], np.int64(-1), True
    l1_requests = l1_hits = np.int64(0)
    by_line = machine.l1_mode == BY_LINE and not is_write
    if machine.l1_mode != NO_L1 and not is_write:
        l1_requests = l1_hits = stream.waves[template]
    if machine.l1_mode == BY_TILE and not is_write:
        missing, requests, lines = _ask_tile(stream, machine, l1, unit, instruction)
        whole = missing == stream.tile_sets[stream.tile[instruction]]
        l1_hits -= lines
    if by_line:
        requests = np.int64(0)
    for start in range(begin, end if missing else begin, CHUNK):
        first, n = np.uint64(start), min(CHUNK, end - start)
        if by_line:
            n, asked, _ = _gather_lines(
                stream.rel, stream.marks, stream.pieces, machine.l1, machine.l1_ways, l1, unit, base, first, n,
                instruction, NO_TIMES, scratch.line, scratch.marks, scratch.asked,
            )  # fmt: skip
            requests += asked
            l1_hits -= n
        elif whole:
            _gather(stream.rel, stream.marks, stream.pieces, base, first, n, scratch.line, scratch.marks, scratch.asked)
        else:
            n = _gather_sets(
                stream.rel, stream.marks, stream.pieces, machine.l1, base, first, n, missing, scratch.line,
                scratch.marks, scratch.asked,
            )  # fmt: skip
        queued = _l2(
            stream,
            machine,
            l2,
            unit,
            n,
            is_write,
            tensor,
            queued_line,
            queued_weight,
            queued,
            scratch,
            counts,
            by_tensor,
        )
    _tally(counts, by_tensor, tensor, WRITE_REQUESTS if is_write else READ_REQUESTS, requests, l1_requests, l1_hits)
    return queued


@uncounted()
def _advance(
    stream, machine, order, slots, l1, l2, xcd, first_turn, n_turns, per_bin, timeline, totals, queue, scratch
):
    """Let one XCD run for ``n_turns`` turns, or until its work is done; return the turn after the last that issued.

    l2       : (words,) uint32, of this XCD, see `xcd_model.replay.launches.l2_words`
    timeline : (n_bins, n_xcds, n_columns) int64; totals : (n_tensors, n_xcds, n_columns) int64
    """
    by_tensor = totals[:, xcd]
    queued_line, queued_weight = queue.line[xcd], queue.weight[xcd]
    queued, segments = np.int64(0), np.int64(0)
    turn, idle = np.int64(first_turn), False
    while turn < first_turn + n_turns and not idle:
        counts = timeline[turn // per_bin, xcd]
        idle = True
        for slot in range(machine.slots):
            at = _next_instruction(stream.start, machine, order, slots, xcd, slot)
            if at < 0:
                continue
            idle = False
            before, unit = queued, xcd * machine.cus + slot % machine.cus
            queued = _issue(
                stream, machine, l1, l2, unit, at, queued_line, queued_weight, queued, scratch, counts, by_tensor
            )
            if queued > before:
                queue.end[xcd, segments] = queued
                queue.place[xcd, segments] = (turn - first_turn) * machine.slots + slot
                queue.tensor[xcd, segments] = stream.tensor[stream.template[at]]
                segments += 1
        turn += 1 - np.int64(idle)
    queue.size[xcd] = segments
    return turn


@uncounted()
def _flush(stream, machine, l2, xcd, timeline, where, totals):
    """Write back what is dirty in one L2 at the end of the kernel; its lines stay, clean. Return how many pieces."""
    flushed = np.int64(0)
    counts, by_tensor, set_weight, ways = timeline[where, xcd], totals[:, xcd], stream.set_weight, machine.l2_ways
    for way in range(l2.size):
        word = np.int64(l2[way])
        if word & 15:
            at = way // ways % machine.l2.n_sets
            pieces = set_weight[at] * _popcount4(word)
            _write_back(stream.tensor_lines, machine.l2, at, word, pieces, WRITEBACKS, counts, by_tensor)
            l2[way] = np.uint32(word & ~15)
            flushed += pieces
    return flushed


def flush_all(
    stream: Stream, machine: Machine, l2: np.ndarray, timeline: np.ndarray, where: int, totals: np.ndarray
) -> int:
    """Flush the L2 of every XCD, counted in bin ``where`` of the timeline; return how many pieces were dirty."""
    return sum(int(_flush(stream, machine, l2[xcd], xcd, timeline, where, totals)) for xcd in range(machine.xcds))
