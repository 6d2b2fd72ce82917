"""Lines that reach an L2 looked up in it, one after the other: in lockstep, and with who brought each of them in.

All of it is inlined into its callers, see `xcd_model.numba_setup`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xcd_model.cache.lru import HIT, MARKS, PARTLY, THERE, _touch
from xcd_model.fast.lru_simd import WAYS, _touch_row, _touch_row_by


@njit(inline="always")
def _touch_one(words, row, ways, word):
    """As `xcd_model.cache.lru._touch`, by the vector of a row where that has the ways."""
    return _touch_row(words, row, word, np.int64(1) << (ways - 1)) if ways <= WAYS else _touch(words, row, ways, word)


@njit(inline="always")
def _touch_scalar_by(words, filler, row, ways, word, by):
    """As `xcd_model.fast.lru_simd._touch_row_by`, for any number of ways."""
    place = row
    while place < row + ways - 1 and (words[place] ^ word) > MARKS:
        place += 1
    held, held_by = np.int64(words[place]), np.int64(filler[place])
    hit = (held ^ word) <= MARKS
    gone = np.int64(HIT) if word & ~held & THERE == 0 else np.int64(PARTLY)
    for back in range(place - row):
        words[place - back] = words[place - back - 1]
        filler[place - back] = filler[place - back - 1]
    words[row] = np.uint32(word | (held & MARKS)) if hit else np.uint32(word)
    filler[row] = np.int32(held_by) if hit and gone == HIT else np.int32(by)
    return (gone if hit else held) | (held_by << 32)


@njit(inline="always")
def _touch_by(words, filler, row, ways, word, by):
    """Touch a line for an instruction: what `_touch_one` returns, and in the high 32 bits who brought it in before."""
    if ways <= WAYS:
        return _touch_row_by(words, filler, row, word, np.int64(1) << (ways - 1), by)
    return _touch_scalar_by(words, filler, row, ways, word, by)


@njit(inline="always")
def _look_up(n, l2, ways, at, word, marks, missed, fell):
    """Look the located lines up in an L2; returns how many missed."""
    n_missed = np.uint64(0)
    for i in range(np.uint64(n)):
        gone = _touch_one(l2, np.int64(at[i]) * ways, ways, np.int64(word[i]) | np.int64(marks[i]))
        missed[n_missed] = i  # kept or overwritten by the next: a branch would be mispredicted
        fell[n_missed] = gone
        n_missed += np.uint64(gone != HIT)
    return n_missed


@njit(inline="always")
def _look_up_by(n, words, filler, ways, by, arrival, at, word, marks, missed, fell, in_time, set_weight):
    """Look the located lines up in an L2; return (how many missed, latest arrival of the others, how many late).

    A line is late that is held and not there ``in_time``.
    """
    n_missed, wait, late = np.uint64(0), np.int64(0), np.int64(0)
    for i in range(np.uint64(n)):
        touched = np.int64(word[i]) | np.int64(marks[i])
        found = _touch_by(words, filler, np.int64(at[i]) * ways, ways, touched, by)
        gone = found & 0xFFFFFFFF
        missed[n_missed] = i
        fell[n_missed] = gone
        if gone == HIT:
            there = arrival[found >> 32]
            wait = max(wait, there)
            late += set_weight[at[i]] * np.int64(there > in_time)
        else:
            n_missed += np.uint64(1)
    return n_missed, wait, late
