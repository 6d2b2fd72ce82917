"""A chunk of lines through an L2 and the Infinity Cache behind it: hits, misses, victims, write-backs.

    for each line, in order:  touch its set;  hit -> nothing;  miss -> an entry (which line, victim)
    for each entry:           fetch what lacks (reads and stores allocate);  a dirty victim is written back

The timed look-up also has who filled each line, so that a read of a line still under way waits for it: a hit under
miss. All of it is inlined into its callers, see `xcd_model.compiled.numba_inline`.

Behind the L2s is the Infinity Cache (MALL). The timed replay takes its instructions in order of time, and looks missed
lines up at once (`_mall_hits`); the lockstep replay has a queue of its own (`xcd_model.replay.lockstep`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.cache.locate import (
    DIRTY,
    HIT,
    MARK_BITS,
    WHOLE,
    WORD,
    _fetched_inlined,
    _line_of_inlined,
    _locate_all,
    _locate_inlined,
    _popcount4,
    _spread_inlined,
)
from xcd_model.cache.packed import BITS
from xcd_model.compiled.numba_inline import called, inlined
from xcd_model.compiled.numba_setup import uncounted
from xcd_model.nvidia.memory import COPY, _look_up_partitions
from xcd_model.replay.traffic import (
    INSTRUCTIONS,
    L1_HITS,
    L1_REQUESTS,
    MALL_HITS,
    MALL_REQUESTS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_MISSES,
    WRITE_REQUESTS,
    WRITEBACKS,
    Tally,
    _count,
)
from xcd_model.speed import _prefetch, _touch, _touch_whole


class Access(NamedTuple):
    """What an L2 has to know of the instruction whose lines reach it.

    ``partition`` of the L2 is that of the CU, 0 where there are none. Lines of a tensor that is ``only_read``, see
    `Stream`, are in the L2 with the marks that each touch of them has, or not at all.
    """

    instruction: int
    tensor: int
    is_write: bool
    partition: int
    only_read: bool


@inlined
def _access(stream, machine, unit, instruction):
    """`Access` of an instruction on the CU ``unit``."""
    template = stream.template[instruction]
    partition = machine.partition_of[unit % machine.cus] if machine.coherence_mask else np.int64(0)
    tensor = stream.tensor[template]
    return Access(instruction, tensor, stream.is_write[template], partition, stream.only_read[tensor])


@called  # by itself its loop keeps all that it needs in registers
def _touch_each(n, words, ways, row, word, miss_index, victim):
    """Touch ``n`` lines that the L2 has whole or not at all; return how many missed."""
    n_missed = np.uint64(0)
    for i in range(np.uint64(n)):
        found = _touch_whole(words, None, np.int64(row[i]) * ways, ways, np.int64(word[i]) | WHOLE, 0)
        miss_index[n_missed] = i  # kept or overwritten by the next: a branch would be mispredicted
        victim[n_missed] = found
        n_missed += np.uint64(found != HIT)
    return n_missed


@inlined
def _look_up(n, words, filler, inputs, access, scratch, arrival, in_time):
    """Look ``n`` gathered lines up in an L2; ``filler`` and ``arrival`` are None in lockstep, which knows no times.

    Returns (entries of misses, latest arrival of lines that hit, the same of remote ones (-1: none)). Lines that a read
    hits under a miss are added to ``scratch``: those that arrive later than ``in_time`` [fs], since a line that the L2
    has when it takes the instruction up is at the CU by then.
    """
    machine, set_weight = inputs.machine, inputs.stream.set_weight
    at, row, word, marks, ways = scratch.cache_set, scratch.row, scratch.word, scratch.marks, machine.l2_ways
    miss_index, victim = scratch.miss_index, scratch.victim
    n_missed, wait, remote, under_miss = np.uint64(0), np.int64(0), np.int64(-1), np.int64(0)
    by, whole = access.instruction, access.only_read
    _locate_all(scratch.line, n, machine.l2, at, row, word)
    if machine.coherence_mask:
        n_missed, wait, remote, under_miss = _look_up_partitions(
            n, words, filler, inputs, access, scratch, arrival, in_time
        )
    elif whole and filler is None:
        n_missed = _touch_each(n, words, ways, row, word, miss_index, victim)
    else:
        for i in range(np.uint64(n)):
            if whole:
                both = _touch_whole(words, filler, np.int64(row[i]) * ways, ways, np.int64(word[i]) | WHOLE, by)
            else:
                touched = np.int64(word[i]) | np.int64(marks[i])
                both = _touch(words, filler, np.int64(row[i]) * ways, ways, touched, by)
            found = both & WORD
            miss_index[n_missed] = i
            victim[n_missed] = found
            if filler is None:
                n_missed += np.uint64(found != HIT)
            elif found == HIT:
                there = arrival[both >> 32]
                wait = max(wait, there)
                under_miss += set_weight[at[i]] * np.int64(there > in_time)
            else:
                n_missed += np.uint64(1)
    if not access.is_write:
        scratch.hits_under_miss[0] += under_miss
    return n_missed, wait, remote


@inlined
def _write_back(stream, machine, at, word, pieces, tally):
    """Count the dirty ``pieces`` of a word that left set ``at``, for the tensor that it belongs to; return its line."""
    written = _line_of_inlined(at, (word >> MARK_BITS) - 1, machine.l2)
    owner = 0
    while written < stream.tensor_lines[owner, 0] or written >= stream.tensor_lines[owner, 1]:
        owner += 1
    _count(tally, owner, WRITEBACKS, pieces)
    return written


@inlined
def _miss(stream, machine, scratch, entry, tally):
    """One entry of a look-up's misses, its victim written back.

    Returns (place in the chunk, sets that this one stands for, pieces fetched, line written back, its dirty pieces);
    pieces count for all those sets.
    """
    i, victim = scratch.miss_index[entry], scratch.victim[entry]
    at = np.int64(scratch.cache_set[i])
    weight, word = stream.set_weight[at], victim & WORD
    fetched = weight * _fetched_inlined(word, scratch.marks[i]) if victim < COPY else np.int64(0)
    written, pieces = np.int64(-1), np.int64(0)
    if word & DIRTY:
        pieces = weight * _popcount4(word)
        written = _write_back(stream, machine, at, word, pieces, tally)
    return i, weight, fetched, written, pieces


@inlined
def _count_misses(tally, access, misses, mall_hits, has_mall):
    """Count what a chunk fetched or allocated, and what of it the Infinity Cache was asked for and had."""
    _count(tally, access.tensor, WRITE_MISSES if access.is_write else READ_MISSES, misses)
    if has_mall and not access.is_write:
        _count(tally, access.tensor, MALL_REQUESTS, misses)
        _count(tally, access.tensor, MALL_HITS, mall_hits)


@inlined
def _count_instruction(tally, access, requests, l1_requests, l1_hits):
    """Count one instruction and its requests."""
    _count(tally, access.tensor, INSTRUCTIONS, 1)
    _count(tally, access.tensor, WRITE_REQUESTS if access.is_write else READ_REQUESTS, requests)
    _count(tally, access.tensor, L1_REQUESTS, l1_requests)
    _count(tally, access.tensor, L1_HITS, l1_hits)


@uncounted()
def _flush(stream, machine, l2, tally):
    """Write back what is dirty in one L2 at the end of the kernel; its lines stay, clean. Return how many pieces."""
    flushed, ways = np.int64(0), machine.l2_ways
    rows = l2.size // ways // (2 if machine.coherence_mask else 1)
    for way in range(l2.size):
        word = np.int64(l2[way])
        if word & DIRTY:
            at = _spread_inlined(way // ways % rows)
            pieces = stream.set_weight[at] * _popcount4(word)
            _write_back(stream, machine, at, word, pieces, tally)
            l2[way] = np.uint32(word & ~DIRTY)
            flushed += pieces
    return flushed


def flush_all(plan, l2: np.ndarray, timeline: np.ndarray, where: int, totals: np.ndarray) -> int:
    """Flush the L2 of every XCD, counted in bin ``where`` of the timeline; return how many pieces were dirty."""
    tallies = (Tally(timeline[where, xcd], totals[:, xcd]) for xcd in range(plan.machine.xcds))
    return sum(int(_flush(plan.stream, plan.machine, l2[xcd], tally)) for xcd, tally in enumerate(tallies))


@inlined
def _touch_bit(bits, line):
    """Touch a line; return 1 if it was touched before, else 0."""
    at, bit = np.uint64(line) // np.uint64(BITS), np.uint32(np.uint64(line) % np.uint64(BITS))
    there = bits[at]
    bits[at] = there | (np.uint32(1) << bit)
    return np.int64((there >> bit) & np.uint32(1))


@inlined
def _mall_hits(machine, mall, scratch, n, set_weight):
    """Fetch the lines of ``n`` missed entries; return how many the Infinity Cache had, weighted as their L2 sets."""
    hits, ways = np.int64(0), machine.mall_ways
    if machine.mall_has_room:
        for entry in range(n):
            i = scratch.miss_index[entry]
            hits += set_weight[scratch.cache_set[i]] * _touch_bit(mall, scratch.line[i])
        return hits
    for entry in range(n):
        at, _ = _locate_inlined(scratch.line[scratch.miss_index[entry]], machine.mall)
        _prefetch(mall, _spread_inlined(at) * ways)
    for entry in range(n):
        i = scratch.miss_index[entry]
        at, tag = _locate_inlined(scratch.line[i], machine.mall)
        found = _touch_whole(mall, None, _spread_inlined(at) * ways, ways, (tag + 1) << MARK_BITS, 0)
        hits += set_weight[scratch.cache_set[i]] * np.int64(found == HIT)
    return hits
