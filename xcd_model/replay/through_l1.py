"""An instruction through its L1: which of its lines go on to the L2. Both replays and the stack distances use it.

    no L1, or a store:   all lines go on
    by tile:             the lines in L1 sets that miss go on (`xcd_model.fast.symmetry`)
    by line:             the lines that miss go on (`xcd_model.cache.l1`)

    passage = _enter_l1(...)
    for start in range(passage.begin, passage.end, CHUNK):
        n, requests, missed, wait = _gather(..., passage, start, scratch)     n lines, in scratch.line and scratch.marks

Chunks are short so that their arrays stay in the host's L1, and each step over them is a pass of its own. All of it is
inlined into its callers, see `xcd_model.numba_setup`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xcd_model.cache.l1 import LineL1, _read_line, empty_line_l1
from xcd_model.cache.locate import DIRTY_BITS, FILL_BITS, _locate
from xcd_model.cache.packed import BY_LINE, BY_TILE, NO_L1, Machine
from xcd_model.speed import _read_tile, empty_tile_l1

CHUNK = 256


class L1(NamedTuple):
    """State of all L1s of a GPU, numbered ``xcd * cus + cu``, by line and by tile: a replay uses one of them.

    ``arrival`` is (n_instructions,) int64 [fs]: when the CU had what each instruction read; empty in lockstep.
    """

    lines: LineL1
    tiles: Any
    arrival: np.ndarray


def empty_l1(machine: Machine, *, n_instructions: int = 0) -> L1:
    """Empty L1s; with times of so many instructions."""
    return L1(empty_line_l1(machine), empty_tile_l1(machine), np.zeros(n_instructions, np.int64))


class Scratch(NamedTuple):
    """Arrays of `CHUNK` + 1 for the lines that reach the L2, and counts that one thread adds up.

    Parameters
    ----------
    line, marks : (size,) int64, uint8
        Lines, and what is wanted and stored of each (`xcd_model.cache.locate`).
    requests : (size,) uint8
        Read requests that each line takes; empty but for a partitioned L2.
    cache_set, word : (size,) uint64
        Where each line lies in the L2.
    miss_index : (2 * size,) uint64
        Places in the chunk of the lines that missed; twice as long, since inserting a copy in a partition of the L2
        can evict a second line.
    victim : (2 * size,) int64
        What the look-up returned for each of them.
    remote_hits : (1,) int64
        Read requests that the remote partition of the L2 served.
    hits_under_miss : (1,) int64
        Lines that a read found in the L2 while their fill was under way.
    """

    line: np.ndarray
    marks: np.ndarray
    requests: np.ndarray
    cache_set: np.ndarray
    word: np.ndarray
    miss_index: np.ndarray
    victim: np.ndarray
    remote_hits: np.ndarray
    hits_under_miss: np.ndarray


def scratch_of(machine: Machine) -> Scratch:
    """Scratch arrays for one thread."""
    size = CHUNK + 1
    return Scratch(
        line=np.zeros(size, np.int64),
        marks=np.zeros(size, np.uint8),
        requests=np.zeros(size if machine.coherence_mask else 0, np.uint8),
        cache_set=np.zeros(size, np.uint64),
        word=np.zeros(size, np.uint64),
        miss_index=np.zeros(2 * size, np.uint64),
        victim=np.zeros(2 * size, np.int64),
        remote_hits=np.zeros(1, np.int64),
        hits_under_miss=np.zeros(1, np.int64),
    )


class Passage(NamedTuple):
    """One instruction on its way through the L1 ``unit``, before its lines are gathered.

    Entries ``begin .. end - 1`` of its template are gathered: all of them if ``whole``, those that miss the L1 line by
    line if ``by_line``, else those in the ``missing`` sets, as bits. ``requests`` to the L2, and requests and hits of
    the L1, are those known so far; ``wait`` is when the CU had the tile's lines that the L1 has.
    """

    instruction: int
    unit: int
    base: int
    begin: int
    end: int
    whole: bool
    by_line: bool
    missing: int
    requests: int
    l1_requests: int
    l1_hits: int
    wait: int


@njit(inline="always")
def _enter_l1(stream, machine, l1, unit, instruction):
    """Begin an instruction's passage through the L1 ``unit``; by tile its hits and misses are known at once."""
    template = stream.template[instruction]
    is_write, begin, end = stream.is_write[template], stream.rel_start[template], stream.rel_start[template + 1]
    requests, missing, whole = stream.requests[template], np.int64(-1), True
    l1_requests = l1_hits = wait = np.int64(0)
    by_line = machine.l1_mode == BY_LINE and not is_write
    if machine.l1_mode != NO_L1 and not is_write:
        l1_requests = l1_hits = stream.waves[template]
    if machine.l1_mode == BY_TILE and not is_write:
        missing, requests, lines, wait = _read_tile(stream, machine, l1.tiles, unit, instruction, l1.arrival)
        whole = missing == stream.tile_sets[stream.tile[instruction]]
        l1_hits -= lines
        end = end if missing else begin
    if by_line:
        requests = np.int64(0)
    return Passage(
        instruction, unit, stream.base[instruction], begin, end, whole, by_line, missing, requests, l1_requests,
        l1_hits, wait,
    )  # fmt: skip


@njit(inline="always")
def _gather_all(stream, base, first, n, scratch):
    """Copy all of ``n`` entries."""
    rel, marks, pieces, line, kept_marks = stream.rel, stream.marks, stream.pieces, scratch.line, scratch.marks
    for i in range(np.uint64(n)):
        line[i] = base + rel[first + i]
        kept_marks[i] = marks[first + i]
    if scratch.requests.size:
        for i in range(np.uint64(n)):
            scratch.requests[i] = pieces[first + i]
    return n


@njit(inline="always")
def _gather_sets(stream, index, passage, first, n, scratch):
    """Copy the entries that lie in a missing L1 set; return how many."""
    rel, marks, pieces, line, kept_marks = stream.rel, stream.marks, stream.pieces, scratch.line, scratch.marks
    kept = np.int64(0)
    for i in range(n):
        touched = passage.base + rel[first + i]
        at, _ = _locate(touched, index)
        line[kept] = touched
        kept_marks[kept] = marks[first + i]
        if scratch.requests.size:
            scratch.requests[kept] = pieces[first + i]
        kept += (passage.missing >> at) & 1
    return kept


@njit(inline="always")
def _gather_misses(stream, machine, l1, passage, first, n, scratch):
    """Copy the entries that the L1 misses; return (how many, their L2 requests, latest arrival of the others)."""
    rel, marks, pieces, line, kept_marks = stream.rel, stream.marks, stream.pieces, scratch.line, scratch.marks
    kept = requests = wait = np.int64(0)
    for i in range(n):
        touched = passage.base + rel[first + i]
        at, tag = _locate(touched, machine.l1)
        word = np.uint32(((tag + 1) << FILL_BITS) | (np.int64(marks[first + i]) >> DIRTY_BITS))
        by = _read_line(l1.lines, passage.unit, at, machine.l1_ways, word, passage.instruction)
        if by < 0:
            line[kept] = touched
            kept_marks[kept] = marks[first + i]
            if scratch.requests.size:
                scratch.requests[kept] = pieces[first + i]
            kept += 1
            requests += np.int64(pieces[first + i])
        elif l1.arrival.size:
            wait = max(wait, l1.arrival[by])
    return kept, requests, wait


@njit(inline="always")
def _gather(stream, machine, l1, passage, start, scratch):
    """Copy the lines of one chunk that go on to the L2 into ``scratch``.

    Returns (how many; by line, L2 requests and L1 misses that the passage does not count yet, and the latest arrival of
    the lines that the L1 has).
    """
    first, n = np.uint64(start), min(CHUNK, passage.end - start)
    requests = missed = wait = np.int64(0)
    if passage.by_line:
        n, requests, wait = _gather_misses(stream, machine, l1, passage, first, n, scratch)
        missed = n
    elif passage.whole:
        _gather_all(stream, passage.base, first, n, scratch)
    else:
        n = _gather_sets(stream, machine.l1, passage, first, n, scratch)
    return n, requests, missed, wait
