"""A chunk of lines through an L2: hits, misses, victims and write-backs. Both replays use it.

    for each line, in order:  touch its set;  hit -> nothing;  miss -> an entry (which line, victim)
    for each entry:           fetch what lacks (reads and stores allocate);  a dirty victim is written back

The timed look-up also has who filled each line, so that a read of a line still under way waits for it: a hit under
miss. All of it is inlined into its callers, see `xcd_model.numba_setup`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.cache.locate import _line_of, _locate_all
from xcd_model.cache.words import DIRTY, HIT, MARK_BITS, WORD, _fetched, _popcount4
from xcd_model.numba_setup import uncounted
from xcd_model.nvidia.l2_partitions import COPY, _look_up_partitions, _look_up_partitions_by
from xcd_model.replay.traffic import (
    INSTRUCTIONS,
    L1_HITS,
    L1_REQUESTS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_MISSES,
    WRITE_REQUESTS,
    WRITEBACKS,
    Tally,
    _count,
)
from xcd_model.speed import _touch, _touch_by


class Access(NamedTuple):
    """What an L2 has to know of the instruction whose lines reach it.

    ``partition`` of the L2 is that of the CU, 0 where there are none. A line that hits is under a miss if it arrives
    later than ``in_time`` [fs]: a line that the L2 has when it takes the instruction up is at the CU by then.
    """

    instruction: int
    tensor: int
    is_write: bool
    partition: int
    in_time: int


class TimedL2(NamedTuple):
    """Words of an L2, and the instruction that filled each line; both (words,)."""

    words: np.ndarray
    filler: np.ndarray


@njit(inline="always")
def _access(stream, machine, unit, instruction, in_time):
    """`Access` of an instruction on the CU ``unit``."""
    template = stream.template[instruction]
    partition = machine.partition_of[unit % machine.cus] if machine.coherence_mask else np.int64(0)
    return Access(instruction, stream.tensor[template], stream.is_write[template], partition, in_time)


@njit(inline="always")
def _look_up(n, l2, machine, access, scratch, set_weight):
    """Look ``n`` gathered lines up in an L2; return how many entries of misses that makes."""
    at, word, marks, ways = scratch.cache_set, scratch.word, scratch.marks, machine.l2_ways
    miss_index, victim = scratch.miss_index, scratch.victim
    _locate_all(scratch.line, n, machine.l2, at, word)
    if machine.coherence_mask:
        return np.uint64(_look_up_partitions(n, l2, machine, access, scratch, set_weight))
    n_missed = np.uint64(0)
    for i in range(np.uint64(n)):
        found = _touch(l2, np.int64(at[i]) * ways, ways, np.int64(word[i]) | np.int64(marks[i]))
        miss_index[n_missed] = i  # kept or overwritten by the next: a branch would be mispredicted
        victim[n_missed] = found
        n_missed += np.uint64(found != HIT)
    return n_missed


@njit(inline="always")
def _look_up_by(n, l2, machine, access, scratch, arrival, set_weight):
    """As `_look_up`, with fillers.

    Returns entries of misses, latest arrival of lines that hit, of remote ones (-1: none); hits under a miss are added
    to ``scratch``.
    """
    at, word, marks, ways = scratch.cache_set, scratch.word, scratch.marks, machine.l2_ways
    miss_index, victim = scratch.miss_index, scratch.victim
    n_missed, wait, remote, under_miss = np.uint64(0), np.int64(0), np.int64(-1), np.int64(0)
    _locate_all(scratch.line, n, machine.l2, at, word)
    if machine.coherence_mask:
        made, wait, remote, under_miss = _look_up_partitions_by(n, l2, machine, access, scratch, arrival, set_weight)
        n_missed = np.uint64(made)
    else:
        words, filler, in_time, by = l2.words, l2.filler, access.in_time, access.instruction
        for i in range(np.uint64(n)):
            touched = np.int64(word[i]) | np.int64(marks[i])
            both = _touch_by(words, filler, np.int64(at[i]) * ways, ways, touched, by)
            found = both & WORD
            miss_index[n_missed] = i
            victim[n_missed] = found
            if found == HIT:
                there = arrival[both >> 32]
                wait = max(wait, there)
                under_miss += set_weight[at[i]] * np.int64(there > in_time)
            else:
                n_missed += np.uint64(1)
    if not access.is_write:
        scratch.hits_under_miss[0] += under_miss
    return n_missed, wait, remote


@njit(inline="always")
def _write_back(stream, machine, at, word, pieces, tally):
    """Count the dirty ``pieces`` of a word that left set ``at``, for the tensor that it belongs to; return its line."""
    written = _line_of(at, (word >> MARK_BITS) - 1, machine.l2)
    owner = 0
    while written < stream.tensor_lines[owner, 0] or written >= stream.tensor_lines[owner, 1]:
        owner += 1
    _count(tally, owner, WRITEBACKS, pieces)
    return written


@njit(inline="always")
def _miss(stream, machine, scratch, entry, tally):
    """One entry of a look-up's misses, its victim written back.

    Returns (place in the chunk, sets that this one stands for, pieces fetched, line written back, its dirty pieces);
    pieces count for all those sets.
    """
    i, victim = scratch.miss_index[entry], scratch.victim[entry]
    at = np.int64(scratch.cache_set[i])
    weight, word = stream.set_weight[at], victim & WORD
    fetched = weight * _fetched(word, scratch.marks[i]) if victim < COPY else np.int64(0)
    written, pieces = np.int64(-1), np.int64(0)
    if word & DIRTY:
        pieces = weight * _popcount4(word)
        written = _write_back(stream, machine, at, word, pieces, tally)
    return i, weight, fetched, written, pieces


@njit(inline="always")
def _count_misses(tally, access, misses):
    """Count what a chunk fetched or allocated."""
    _count(tally, access.tensor, WRITE_MISSES if access.is_write else READ_MISSES, misses)


@njit(inline="always")
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
    for way in range(l2.size):
        word = np.int64(l2[way])
        if word & DIRTY:
            at = way // ways % machine.l2.n_sets
            pieces = stream.set_weight[at] * _popcount4(word)
            _write_back(stream, machine, at, word, pieces, tally)
            l2[way] = np.uint32(word & ~DIRTY)
            flushed += pieces
    return flushed


def flush_all(plan, l2: np.ndarray, timeline: np.ndarray, where: int, totals: np.ndarray) -> int:
    """Flush the L2 of every XCD, counted in bin ``where`` of the timeline; return how many pieces were dirty."""
    tallies = (Tally(timeline[where, xcd], totals[:, xcd]) for xcd in range(plan.machine.xcds))
    return sum(int(_flush(plan.stream, plan.machine, l2[xcd], tally)) for xcd, tally in enumerate(tallies))
