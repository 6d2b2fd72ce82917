"""Lines that reach an L2 of two sides, looked up on the side of their CU and at home: `..l2_partitions`.

Functions of their own rather than inlined: most GPUs never run them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xcd_model.cache.l2 import _touch_by, _touch_one
from xcd_model.cache.lru import DIRTY_BITS, HIT, PARTLY
from xcd_model.nvidia.l2_partitions import _home

COPY = 1 << 32  # with a word that fell out: it made room for a copy, and nothing was fetched
CLEAN = ~((1 << DIRTY_BITS) - 1)


@njit
def _look_up_sides(n, l2, machine, side, is_write, set_weight, scratch):
    """As `xcd_model.cache.l2._look_up` for lines that a CU on a side asks for; returns how many entries it made.

    Beside an entry for each line to fetch or allocate there is one for each dirty word that a copy drove out, marked
    as `COPY`. Read requests of lines that this side lacked and the other held are added to ``scratch.far``.
    """
    line, marks, at, word, missed, fell = (
        scratch.line, scratch.marks, scratch.at, scratch.word, scratch.missed, scratch.fell,
    )  # fmt: skip
    ways, apart = machine.l2_ways, machine.l2.n_sets * machine.l2_ways
    made = 0
    for i in range(n):
        row, touched = np.int64(at[i]) * ways, np.int64(word[i]) | np.int64(marks[i])
        home = _home(line[i], machine.home_mask)
        if home != side:
            gone = _touch_one(l2, row + side * apart, ways, touched & CLEAN)
            if gone == HIT and not is_write:
                continue
            if gone not in (HIT, PARTLY) and gone & ~CLEAN:
                missed[made], fell[made] = i, gone | COPY
                made += 1
        gone = _touch_one(l2, row + home * apart, ways, touched)
        if gone != HIT:
            missed[made], fell[made] = i, gone
            made += 1
        elif home != side and not is_write:
            scratch.far[0] += set_weight[at[i]] * np.int64(scratch.asked[i])
    return made


@njit
def _look_up_sides_by(n, words, filler, machine, side, is_write, by, arrival, set_weight, scratch, in_time):
    """As `_look_up_sides`, with fillers.

    Returns entries, latest arrival of lines held, of far ones (-1: none), and how many of those held are late.
    """
    line, marks, at, word, missed, fell = (
        scratch.line, scratch.marks, scratch.at, scratch.word, scratch.missed, scratch.fell,
    )  # fmt: skip
    ways, apart = machine.l2_ways, machine.l2.n_sets * machine.l2_ways
    made, wait, far, late = 0, np.int64(0), np.int64(-1), np.int64(0)
    for i in range(n):
        row, touched = np.int64(at[i]) * ways, np.int64(word[i]) | np.int64(marks[i])
        home = _home(line[i], machine.home_mask)
        if home != side:
            found = _touch_by(words, filler, row + side * apart, ways, touched & CLEAN, by)
            gone = found & 0xFFFFFFFF
            if gone == HIT and not is_write:
                there = arrival[found >> 32]
                wait = max(wait, there)
                late += set_weight[at[i]] * np.int64(there > in_time)
                continue
            if gone not in (HIT, PARTLY) and gone & ~CLEAN:
                missed[made], fell[made] = i, gone | COPY
                made += 1
        found = _touch_by(words, filler, row + home * apart, ways, touched, by)
        gone = found & 0xFFFFFFFF
        if gone != HIT:
            missed[made], fell[made] = i, gone
            made += 1
            continue
        there = arrival[found >> 32]
        late += set_weight[at[i]] * np.int64(there > in_time)
        if home == side:
            wait = max(wait, there)
        elif not is_write:
            far = max(far, there)
            scratch.far[0] += set_weight[at[i]] * np.int64(scratch.asked[i])
    return made, wait, far, late
