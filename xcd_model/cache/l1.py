"""The vector L1 of each CU, line by line: what it has does not reach the L2.

Reads only: stores go past it (write-through, no allocation; taken neither to update nor to drop a line). A launch
starts with empty L1s. Each set is a ring of ways, from the newest to the oldest:

    miss:  newest <- the oldest way, filled anew: the ring turns by one
    hit:   the way is taken out of the ring and put in before the newest

Searching 64 ways is a loop that LLVM vectorises; moving them up on each miss would not be one. Where no line belongs to
two tiles that are read, `xcd_model.fast.symmetry` gives the same counts by tile.

Source: Mattson et al., IBM Systems Journal 9(2), 1970 (LRU).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.cache.locate import FILL_BITS
from xcd_model.cache.packed import BY_LINE, Machine

PIECES = np.uint32(1 << FILL_BITS)


class LineL1(NamedTuple):
    """State of all L1s of a GPU by line, numbered ``xcd * cus + cu``; empty where they are not replayed by line.

    Parameters
    ----------
    words : (n, sets * ways) uint32
        ``(tag + 1) << 2 | valid``, with the pieces that the L2 gave.
    filler : (n, sets * ways) int32
        Instruction that filled the line.
    older, newer : (n, sets * ways) int16
        Neighbours of each way in the ring of its set.
    newest : (n, sets) int64
        Way that was touched last.
    """

    words: np.ndarray
    filler: np.ndarray
    older: np.ndarray
    newer: np.ndarray
    newest: np.ndarray


def empty_line_l1(machine: Machine) -> LineL1:
    """Empty L1s."""
    n, sets, lines = machine.xcds * machine.cus, machine.l1.n_sets, machine.l1.n_sets * machine.l1_ways
    ways = np.arange(machine.l1_ways, dtype=np.int16)
    n_words = lines if machine.l1_mode == BY_LINE else 0
    return LineL1(
        words=np.zeros((n, n_words), np.uint32),
        filler=np.zeros((n, n_words), np.int32),
        older=np.broadcast_to(np.tile((ways + 1) % machine.l1_ways, sets), (n, lines))[:, :n_words].copy(),
        newer=np.broadcast_to(np.tile((ways - 1) % machine.l1_ways, sets), (n, lines))[:, :n_words].copy(),
        newest=np.zeros((n, sets), np.int64),
    )


@njit(inline="always")
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
    way = np.int64(-1)
    for place in range(ways):
        way = max(way, place if (words[row + place] ^ word) < PIECES else np.int64(-1))
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
