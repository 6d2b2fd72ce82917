"""An L2 of two partitions (NVIDIA: A100, H100, H200): each caches what the SMs on it read, and half of the addresses.

    point of coherence of a line = parity(line & mask)
    read:   own partition has it -> hit;  else the point of coherence, if that is the other one (remote), and a copy
    store:  at the point of coherence, with a copy in the SM's own partition
    victims are written back from the point of coherence alone: copies are clean

Each partition replaces its own lines, so a line that is read from its copy grows old at its point of coherence.

Source: latencies and memory reads by partition of the SM and point of coherence of the line, on one H200
(docs/decisions/0022-the-h200-beside-the-mi300x.md).
"""

from __future__ import annotations

import numpy as np

from xcd_model.cache.locate import DIRTY, HIT, PARTLY, WORD, _coherence_point
from xcd_model.cache.replacement import _to_last, _to_last_by
from xcd_model.numba_inline import called
from xcd_model.speed import _touch, _touch_by

COPY = 1 << 32  # with a victim's word: it made room for a copy, and nothing was fetched


@called
def _look_up_partitions(n, l2, machine, access, scratch, set_weight):
    """As `xcd_model.replay.through_l2._look_up` for lines from a CU of ``access.partition``; return how many entries.

    Besides an entry for each line to fetch or allocate there is one for each dirty word that a copy drove out, marked
    as `COPY`. Read requests of remote hits are added to ``scratch.remote_hits``.
    """
    marks, at, rows, word, miss_index, victims = (
        scratch.marks, scratch.cache_set, scratch.row, scratch.word, scratch.miss_index, scratch.victim,
    )  # fmt: skip
    ways, other = machine.l2_ways, l2.size // 2
    partition, is_write, made = access.partition, access.is_write, 0
    for i in range(n):
        row, touched = np.int64(rows[i]) * ways, np.int64(word[i]) | np.int64(marks[i])
        owner = _coherence_point(scratch.line[i], machine.coherence_mask)
        if owner != partition:
            found = _touch(l2, row + partition * other, ways, touched & ~DIRTY)
            if access.streamed:
                _to_last(l2, row + partition * other, ways)
            if found == HIT and not is_write:
                continue
            if found not in (HIT, PARTLY) and found & DIRTY:
                miss_index[made], victims[made] = i, found | COPY
                made += 1
        found = _touch(l2, row + owner * other, ways, touched)
        if access.streamed:
            _to_last(l2, row + owner * other, ways)
        if found != HIT:
            miss_index[made], victims[made] = i, found
            made += 1
        elif owner != partition and not is_write:
            scratch.remote_hits[0] += set_weight[at[i]] * np.int64(scratch.requests[i])
    return made


@called
def _look_up_partitions_by(n, l2, machine, access, scratch, arrival, set_weight):
    """As `_look_up_partitions`, with fillers.

    Returns entries, latest arrival of lines that hit, of remote ones (-1: none), and how many hits were under a miss.
    """
    marks, at, rows, word, miss_index, victims = (
        scratch.marks, scratch.cache_set, scratch.row, scratch.word, scratch.miss_index, scratch.victim,
    )  # fmt: skip
    ways, other = machine.l2_ways, l2.words.size // 2
    partition, is_write, by = access.partition, access.is_write, access.instruction
    made, wait, remote, under_miss = 0, np.int64(0), np.int64(-1), np.int64(0)
    for i in range(n):
        row, touched = np.int64(rows[i]) * ways, np.int64(word[i]) | np.int64(marks[i])
        owner = _coherence_point(scratch.line[i], machine.coherence_mask)
        if owner != partition:
            both = _touch_by(l2.words, l2.filler, row + partition * other, ways, touched & ~DIRTY, by)
            if access.streamed:
                _to_last_by(l2.words, l2.filler, row + partition * other, ways)
            found = both & WORD
            if found == HIT and not is_write:
                there = arrival[both >> 32]
                wait = max(wait, there)
                under_miss += set_weight[at[i]] * np.int64(there > access.in_time)
                continue
            if found not in (HIT, PARTLY) and found & DIRTY:
                miss_index[made], victims[made] = i, found | COPY
                made += 1
        both = _touch_by(l2.words, l2.filler, row + owner * other, ways, touched, by)
        if access.streamed:
            _to_last_by(l2.words, l2.filler, row + owner * other, ways)
        found = both & WORD
        if found != HIT:
            miss_index[made], victims[made] = i, found
            made += 1
            continue
        there = arrival[both >> 32]
        under_miss += set_weight[at[i]] * np.int64(there > access.in_time)
        if owner == partition:
            wait = max(wait, there)
        elif not is_write:
            remote = max(remote, there)
            scratch.remote_hits[0] += set_weight[at[i]] * np.int64(scratch.requests[i])
    return made, wait, remote, under_miss
