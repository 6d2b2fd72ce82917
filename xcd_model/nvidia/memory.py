"""What is behind an SM's L1 on NVIDIA's GPUs alone: an L2 of two partitions, rows of the HBM, read-write turnaround.

    hook of the L2      `_look_up_partitions`    in place of the look-up of one L2
    hooks of the HBM    `_activated`             time of the rows that a miss activates
                        `_wait_among_writes`     what a read waits for the writes beside it

**Partitions** (A100, H100, H200): each caches what the SMs on it read, and half of the addresses.

    point of coherence of a line = parity(line & mask)
    read:   own partition has it -> hit;  else the point of coherence, if that is the other one (remote), and a copy
    store:  at the point of coherence, with a copy in the SM's own partition
    victims are written back from the point of coherence alone: copies are clean

Each partition replaces its own lines, so a line that is read from its copy grows old at its point of coherence.

**Rows**: an access that misses the row of its bank takes a least time, whatever its size.

    interleave block  b = line // lines a block          span  n = b // blocks a span
    place             p = (b + hash(n)) mod blocks a span
    row               r = (n // blocks a row) * blocks a span + p          bank = hash(r) mod open rows
    cost of an access that misses the row of its bank = max(0, least time - service time)

A row is cut into blocks that lie far apart in memory, so that a large contiguous piece keeps many banks busy; where
they lie, and which bank a row is in, are hashes, so that no distance is worse than another. What leaves an L2 line by
line hits open rows where whole spans were written at about the same time, and misses them where they were not.

**Turnaround**: a read waits longer while memory also writes.

    wait ~ uniform on [0, 2 * mean],    mean = turnaround * min(1, busy, 4 * writing)

where busy and writing are shares of the last microsecond: a read may come at any moment of what its channel is at, and
from a quarter of writes on, more of them make it wait no longer.

Sources, each measured on H200s: latencies and memory reads by partition of the SM and point of coherence of the line
(docs/decisions/0026-two-sides-of-the-l2.md); writes by tiles a line wide, which take up to 37 % longer in some orders
than in others, and reads do not (0022-l1-beside-lds-and-rows-of-memory.md); how far apart the blocks lie
(0027-how-far-a-row-of-memory-reaches.md); reads between writes (0023-reads-between-writes-and-a-workgroups-start.md).
JEDEC's names for what a channel loses when it changes direction are tWTR and tRTW.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.cache.locate import DIRTY, HIT, PARTLY, WORD, _coherence_point
from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import called, inlined
from xcd_model.compiled.numba_setup import njit
from xcd_model.compiled.splitmix import _mix
from xcd_model.spec.nvidia import HbmBanks
from xcd_model.speed import _touch

COPY = 1 << 32  # with a victim's word: it made room for a copy, and nothing was fetched
WINDOW_FS = 1_000_000_000
PICO = 1000  # femtoseconds; products of shares of a microsecond in these fit 64 bits
WRITES_COUNT = 4  # from a quarter of the time on, more writes make reads wait no longer


@called
def _look_up_partitions(n, words, filler, inputs, access, scratch, arrival, in_time):
    """As `xcd_model.replay.through_l2._look_up` for lines from a CU of ``access.partition``.

    Besides an entry for each line to fetch or allocate there is one for each dirty word that a copy drove out, marked
    as `COPY`. Read requests of remote hits are added to ``scratch.remote_hits``.

    Returns entries, latest arrival of lines that hit, of remote ones (-1: none), and how many hits were under a miss.
    """
    machine, set_weight = inputs.machine, inputs.stream.set_weight
    marks, at, rows, word, miss_index, victims = (
        scratch.marks, scratch.cache_set, scratch.row, scratch.word, scratch.miss_index, scratch.victim,
    )  # fmt: skip
    ways, other = machine.l2_ways, words.size // 2
    partition, is_write, by = access.partition, access.is_write, access.instruction
    made, wait, remote, under_miss = 0, np.int64(0), np.int64(-1), np.int64(0)
    for i in range(n):
        row, touched = np.int64(rows[i]) * ways, np.int64(word[i]) | np.int64(marks[i])
        owner = _coherence_point(scratch.line[i], machine.coherence_mask)
        there = np.int64(0)
        if owner != partition:
            both = _touch(words, filler, row + partition * other, ways, touched & ~DIRTY, by)
            found = both & WORD
            if found == HIT and not is_write:
                if filler is not None:
                    there = arrival[both >> 32]
                wait = max(wait, there)
                under_miss += set_weight[at[i]] * np.int64(there > in_time)
                continue
            if found not in (HIT, PARTLY) and found & DIRTY:
                miss_index[made], victims[made] = i, found | COPY
                made += 1
        both = _touch(words, filler, row + owner * other, ways, touched, by)
        found = both & WORD
        if found != HIT:
            miss_index[made], victims[made] = i, found
            made += 1
            continue
        if filler is not None:
            there = arrival[both >> 32]
        under_miss += set_weight[at[i]] * np.int64(there > in_time)
        if owner == partition:
            wait = max(wait, there)
        elif not is_write:
            remote = max(remote, there)
            scratch.remote_hits[0] += set_weight[at[i]] * np.int64(scratch.requests[i])
    return np.uint64(made), wait, remote, under_miss


@by_reference
class Hbm(NamedTuple):
    """Open rows of the HBM, and what it served lately."""

    open: np.ndarray  # (banks,) int64: row that each bank has open, -1 for none; without banks no rows are modelled
    block_lines: int  # the interleave
    span: int  # in blocks: of a span, and of a row
    blocks: int
    # (5,) int64: the microsecond that is under way, busy and writing [fs] in the one before it, and in it
    recent: np.ndarray


def idle_hbm(rows: HbmBanks | None, line_bytes: int) -> Hbm:
    """Memory that has served nothing: no bank has a row open."""
    recent = np.zeros(5, np.int64)
    if rows is None:
        return Hbm(np.zeros(0, np.int64), 1, 1, 1, recent)
    banks = np.full(rows.open_rows, -1, np.int64)
    return Hbm(banks, rows.block_bytes // line_bytes, rows.stretch_blocks, rows.blocks, recent)


@njit(inline="always")
def _activation(hbm, line, service_fs, least_fs):
    """Time that an access of ``service_fs`` to a line takes beyond that: 0 on a row hit; opens the row [fs]."""
    block = line // hbm.block_lines
    number = block // hbm.span
    place = (block + np.int64(_mix(np.uint64(number)) % np.uint64(hbm.span))) % hbm.span
    row = number // hbm.blocks * hbm.span + place
    bank = np.int64(_mix(np.uint64(row)) % np.uint64(hbm.open.size))
    if hbm.open[bank] == row:
        return np.int64(0)
    hbm.open[bank] = row
    return max(np.int64(0), least_fs - service_fs)


@inlined
def _activated(hbm, times, fetched_line, fetched, written_line, written):
    """Time of the rows that a miss activates [fs]: first of its ``written`` pieces, then of its ``fetched`` ones."""
    taken = np.int64(0)
    for reads in range(2):
        line, pieces = (fetched_line, fetched) if reads else (written_line, written)
        if pieces:
            service = pieces * (times.hbm if reads else times.hbm_write)
            taken += _activation(hbm, line, service, times.hbm_row_read if reads else times.hbm_row_write)
    return taken


@njit(inline="always")
def _note_busy(recent, at, busy_fs, writing_fs):
    """Add service that ended ``at`` [fs] to the window of that time; ends never go back."""
    window = at // WINDOW_FS
    if window > recent[0]:
        follows = window == recent[0] + 1
        recent[1] = min(recent[3], WINDOW_FS) if follows else 0
        recent[2] = min(recent[4], WINDOW_FS) if follows else 0
        recent[0], recent[3], recent[4] = window, 0, 0
    recent[3] += busy_fs
    recent[4] += writing_fs


@njit(inline="always")
def _turnaround(recent, at, most_fs):
    """Extra latency of a read served ``at`` [fs]; ``most_fs``: its mean in a memory that is busy all the time."""
    before = WINDOW_FS - at % WINDOW_FS  # how much of the last microsecond is the window before
    busy = recent[1] // PICO * (before // PICO) // (WINDOW_FS // PICO) + recent[3] // PICO
    writing = recent[2] // PICO * (before // PICO) // (WINDOW_FS // PICO) + recent[4] // PICO
    share = min(WINDOW_FS // PICO, busy, WRITES_COUNT * writing)
    mean = most_fs * share // (WINDOW_FS // PICO)
    return np.int64(_mix(np.uint64(at)) % np.uint64(2 * mean + 1))


@inlined
def _wait_among_writes(hbm, at, busy_fs, writing_fs, most_fs):
    """Extra latency of a read served ``at`` [fs], after a service that takes part of itself to write."""
    _note_busy(hbm.recent, at, busy_fs, writing_fs)
    return _turnaround(hbm.recent, at, most_fs)
