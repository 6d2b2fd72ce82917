"""An instruction through its L1: which of its lines go on to the L2. Both replays use it.

    no L1, or a store:   all lines go on
    by tile:             the lines in L1 sets that miss go on (`xcd_model.fast.symmetry`)
    by line:             the lines that miss go on (`LineL1`)

    passage = _enter_l1(...)
    for start in range(passage.begin, passage.end, CHUNK):
        n, requests, missed, wait = _gather(..., passage, start, scratch)     n lines, in scratch.line and scratch.marks

The vector L1 of each CU sees reads only: stores go past it (write-through, no allocation; taken neither to update nor
to drop a line). A launch starts with empty L1s. By line, each set is a ring of ways, from the newest to the oldest:

    miss:  newest <- the oldest way, filled anew: the ring turns by one
    hit:   the way is taken out of the ring and put in before the newest

The ways of a set are searched by vectors; moving them up on each miss would not be one. An instruction with as many
lines of each set as that has ways, of a tensor that the L1 has no line of, misses all of them and leaves its own: they
are written into the L1 only before an instruction that may hit (`_write_in`). The ragged tiles of a GEMM, of A and of B
in turn, need no look-up. Where tiles that are read have all lines in common or none, `xcd_model.fast.symmetry` gives
the same counts by tile.

Chunks are short so that their arrays stay in the host's L1, and each step over them is a pass of its own. All of it is
inlined into its callers, see `xcd_model.compiled.numba_inline`.

Source: Mattson et al., IBM Systems Journal 9(2), 1970 (LRU).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xcd_model.cache.locate import DIRTY_BITS, FILL_BITS, _locate_inlined
from xcd_model.cache.packed import BY_LINE, BY_TILE, NO_L1, Machine, aligned_words
from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import called, inlined
from xcd_model.speed import _read_tile, _way_of, empty_tile_l1

PIECES = np.uint32(1 << FILL_BITS)
NO_TENSOR, SEVERAL = -1, -2


@by_reference
class LineL1(NamedTuple):
    """State of all L1s of a GPU by line, numbered ``xcd * cus + cu``; empty where they are not replayed by line."""

    words: np.ndarray  # (n, sets * ways) uint32: ``(tag + 1) << 2 | valid``, with the pieces that the L2 gave
    filler: np.ndarray  # (n, sets * ways) int32: instruction that filled the line
    older: np.ndarray  # (n, sets * ways) int16: neighbours of each way in the ring of its set
    newer: np.ndarray
    newest: np.ndarray  # (n, sets) int64: way that was touched last
    tensor: np.ndarray  # (n,) int64: the one whose lines each L1 has, or `NO_TENSOR`, `SEVERAL`
    pending: np.ndarray  # (n,) int64: instruction whose lines are the L1's and are not written in yet, or -1


def empty_line_l1(machine: Machine) -> LineL1:
    """Empty L1s."""
    n, sets, lines = machine.xcds * machine.cus, machine.l1.n_sets, machine.l1.n_sets * machine.l1_ways
    ways = np.arange(machine.l1_ways, dtype=np.int16)
    n_words = lines if machine.l1_mode == BY_LINE else 0
    return LineL1(
        words=aligned_words(n * n_words).reshape(n, n_words),
        filler=np.zeros((n, n_words), np.int32),
        older=np.broadcast_to(np.tile((ways + 1) % machine.l1_ways, sets), (n, lines))[:, :n_words].copy(),
        newer=np.broadcast_to(np.tile((ways - 1) % machine.l1_ways, sets), (n, lines))[:, :n_words].copy(),
        newest=np.zeros((n, sets), np.int64),
        tensor=np.full(n, NO_TENSOR),
        pending=np.full(n, -1),
    )


@inlined
def _read_line(l1, unit, at, ways, word, instruction):
    """Touch a line in set ``at`` of the L1 ``unit``; return the instruction that filled it, or -1 for a miss.

    ``word`` has the pieces that are wanted; a line that is there without one of them is a miss with no victim. Of a
    miss ``instruction`` is the filler from then on.
    """
    words, filler, older, newer, newest = (
        l1.words[unit],
        l1.filler[unit],
        l1.older[unit],
        l1.newer[unit],
        l1.newest[unit],
    )
    row, top = at * ways, newest[at]
    if words[row + top] == word:
        return np.int64(filler[row + top])
    way = _way_of(words, row, ways, word, PIECES)
    oldest = np.int64(newer[row + top])
    by = np.int64(-1)
    if way < 0:
        way = oldest
        words[row + way] = word
        filler[row + way] = instruction
    else:
        there = words[row + way]
        if there | word == there:
            by = np.int64(filler[row + way])
        else:
            words[row + way] = there | word
            filler[row + way] = instruction
        if way not in (oldest, top):
            before, after = newer[row + way], older[row + way]
            older[row + before], newer[row + after] = after, before
            older[row + oldest], newer[row + way] = way, oldest
            older[row + way], newer[row + top] = top, way
    newest[at] = way
    return by


CHUNK = 256


@by_reference
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


@by_reference
class Scratch(NamedTuple):
    """Arrays of `CHUNK` + 1 for the lines that reach the L2, and counts that one thread adds up."""

    line: np.ndarray  # (size,) int64, uint8: lines, and what is wanted and stored of each (`xcd_model.cache.locate`)
    marks: np.ndarray
    requests: np.ndarray  # (size,) uint8: read requests that each line takes; empty but for a partitioned L2
    cache_set: np.ndarray  # (size,) uint64: where each line lies in the L2, see `xcd_model.cache.locate._locate_all`
    row: np.ndarray
    word: np.ndarray
    # (2 * size,) uint64: places in the chunk of the lines that missed; twice as long, since inserting a copy in a
    # partition of the L2 can evict a second line
    miss_index: np.ndarray
    victim: np.ndarray  # (2 * size,) int64: what the look-up returned for each of them
    remote_hits: np.ndarray  # (1,) int64: read requests that the remote partition of the L2 served
    hits_under_miss: np.ndarray  # (1,) int64: lines that a read found in the L2 while their fill was under way


def scratch_of(machine: Machine) -> Scratch:
    """Scratch arrays for one thread."""
    size = CHUNK + 1
    return Scratch(
        line=np.zeros(size, np.int64),
        marks=np.zeros(size, np.uint8),
        requests=np.zeros(size if machine.coherence_mask else 0, np.uint8),
        cache_set=np.zeros(size, np.uint64),
        row=np.zeros(size, np.uint64),
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


@inlined
def _l1_word(stream, index, line, entry):
    """(set, word) of a line in an L1, with the pieces that an entry of its template wants."""
    at, tag = _locate_inlined(line, index)
    return at, np.uint32(((tag + 1) << FILL_BITS) | (np.int64(stream.marks[entry]) >> DIRTY_BITS))


@called
def _write_in(stream, machine, l1, unit):
    """Write the lines of the pending instruction into the L1 ``unit``, which has no others."""
    instruction, words = l1.pending[unit], l1.words[unit]
    template, base = stream.template[instruction], stream.base[instruction]
    for way in range(words.size):
        words[way] = 0
    for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
        at, word = _l1_word(stream, machine.l1, base + stream.rel[entry], entry)
        _read_line(l1, unit, at, machine.l1_ways, word, instruction)
    l1.pending[unit] = -1


@inlined
def _misses_all(stream, machine, l1, unit, instruction):
    """Whether no line of an instruction can be in the L1 ``unit``, by its tensor; then it is pending."""
    template = stream.template[instruction]
    tensor, has = np.int64(stream.tensor[template]), l1.tensor[unit]
    if stream.fills_l1[template] and has not in (tensor, SEVERAL):
        l1.tensor[unit], l1.pending[unit] = tensor, instruction
        return True
    if l1.pending[unit] >= 0:
        _write_in(stream, machine, l1, unit)
    l1.tensor[unit] = tensor if has in (tensor, NO_TENSOR) else SEVERAL
    return False


@inlined
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
        whole = missing < 0
        l1_hits -= lines
        end = end if missing else begin
    if by_line and _misses_all(stream, machine, l1.lines, unit, instruction):
        by_line = False
        l1_hits -= end - begin
    elif by_line:
        requests = np.int64(0)
    return Passage(
        instruction, unit, stream.base[instruction], begin, end, whole, by_line, missing, requests, l1_requests,
        l1_hits, wait,
    )  # fmt: skip


@inlined
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


@inlined
def _gather_sets(stream, index, passage, first, n, scratch):
    """Copy the entries that lie in a missing L1 set; return how many."""
    rel, marks, pieces, line, kept_marks = stream.rel, stream.marks, stream.pieces, scratch.line, scratch.marks
    kept = np.int64(0)
    for i in range(n):
        touched = passage.base + rel[first + i]
        at, _ = _locate_inlined(touched, index)
        line[kept] = touched
        kept_marks[kept] = marks[first + i]
        if scratch.requests.size:
            scratch.requests[kept] = pieces[first + i]
        kept += (passage.missing >> at) & 1
    return kept


@inlined
def _gather_misses(stream, machine, l1, passage, first, n, scratch):
    """Copy the entries that the L1 misses; return (how many, their L2 requests, latest arrival of the others)."""
    rel, marks, pieces, line, kept_marks = stream.rel, stream.marks, stream.pieces, scratch.line, scratch.marks
    kept = requests = wait = np.int64(0)
    for i in range(n):
        touched = passage.base + rel[first + i]
        at, word = _l1_word(stream, machine.l1, touched, first + i)
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


@inlined
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
