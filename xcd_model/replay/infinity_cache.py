"""The Infinity Cache (MALL) behind the L2s. Lockstep: one miss queue an XCD, merged in the order of issue.

    XCD 0:  (turn 0, slot 0) (turn 0, slot 2)      ...  \
    XCD 1:           (turn 0, slot 1)              ...   }->  merged by (turn, slot), then XCD  ->  one look-up each
    XCD 2:  (turn 0, slot 0)      (turn 1, slot 0) ...  /

XCDs share nothing before the Infinity Cache. So each is replayed by itself for a window of turns, on any thread, and
its missed reads are queued with the place (turn, slot) of the instruction they belong to. Then the queues are merged
by place, then XCD: the order in which XCDs running side by side would have sent them. The timed replay takes its
instructions in order of time anyhow, and looks missed lines up at once (`_mall_hits`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.cache.locate import _locate, _locate_all
from xcd_model.cache.packed import Machine
from xcd_model.cache.words import HIT, MARK_BITS
from xcd_model.numba_setup import uncounted
from xcd_model.replay.through_l1 import CHUNK
from xcd_model.replay.traffic import MALL_HITS, MALL_REQUESTS, Tally, _count
from xcd_model.speed import _prefetch, _touch

NEVER = 2**62  # a place after all others
QUEUE_LINES = 1 << 18  # wanted length of a queue: its part that is used stays in the host's caches


class Window(NamedTuple):
    """Turns that every XCD runs for before their missed reads are merged."""

    first_turn: int
    turns: int
    turns_per_bin: int


class Queue(NamedTuple):
    """Missed reads of one window, for each XCD.

    ``line, weight`` (n_xcds, capacity); an instruction's are ``end[i - 1] .. end[i] - 1``, with its ``place``
    (turn * slots + slot, within the window) and ``tensor``, each (n_xcds, n_instructions); ``size`` (n_xcds,) of these.
    ``at, begin`` (n_xcds,): how far the merge is, in instructions and in lines.
    """

    line: np.ndarray
    weight: np.ndarray
    end: np.ndarray
    place: np.ndarray
    tensor: np.ndarray
    size: np.ndarray
    at: np.ndarray
    begin: np.ndarray


def window_turns(slots: int, most_lines: int) -> int:
    """Turns of a window in which every slot issues the largest instruction, for a queue of about `QUEUE_LINES`."""
    return int(np.clip(QUEUE_LINES // (slots * most_lines), 1, 4096))


def queue_of(machine: Machine, turns: int, most_lines: int) -> Queue:
    """Empty queues for windows of ``turns``; of no length where there is no Infinity Cache."""
    issues = machine.slots * turns if machine.mall.n_sets else 0
    return Queue(
        line=np.empty((machine.xcds, issues * most_lines), np.int64),
        weight=np.empty((machine.xcds, issues * most_lines), np.int32),
        end=np.empty((machine.xcds, issues), np.int64),
        place=np.empty((machine.xcds, issues), np.int64),
        tensor=np.empty((machine.xcds, issues), np.int32),
        size=np.zeros(machine.xcds, np.int64),
        at=np.zeros(machine.xcds, np.int64),
        begin=np.zeros(machine.xcds, np.int64),
    )


@njit(inline="always")
def _mall_hits(machine, mall, scratch, n, set_weight):
    """Fetch the lines of ``n`` missed entries; return how many the Infinity Cache had, weighted as their L2 sets."""
    hits = np.int64(0)
    for entry in range(n):
        i = scratch.miss_index[entry]
        at, tag = _locate(scratch.line[i], machine.mall)
        found = _touch(mall, at * machine.mall_ways, machine.mall_ways, (tag + 1) << MARK_BITS)
        hits += set_weight[scratch.cache_set[i]] * np.int64(found == HIT)
    return hits


@njit(inline="always")
def _fetch(machine, mall, line, weight, first, end, scratch):
    """Look lines ``first .. end - 1`` of a queue up in the Infinity Cache; return (requests, hits)."""
    requests = hits = 0
    at, word, ways = scratch.cache_set, scratch.word, machine.mall_ways
    for start in range(first, end, CHUNK):
        n = min(CHUNK, end - start)
        _locate_all(line[start:end], n, machine.mall, at, word)
        for i in range(np.uint64(n)):
            _prefetch(mall, np.int64(at[i]) * ways)
        for i in range(np.uint64(n)):
            found = _touch(mall, np.int64(at[i]) * ways, ways, np.int64(word[i]))
            pieces = np.int64(weight[start + i])
            requests += pieces
            hits += pieces * np.int64(found == HIT)
    return requests, hits


@uncounted()
def _merge(machine, queue, mall, window, timeline, totals, scratch):
    """Send a window's missed reads to the Infinity Cache, in order of place, then XCD; empties the queues."""
    n_xcds, size, at, begin = queue.size.size, queue.size, queue.at, queue.begin
    for xcd in range(n_xcds):
        at[xcd] = begin[xcd] = 0
    place = np.int64(0)
    while place < NEVER:
        place = NEVER
        for xcd in range(n_xcds):
            if at[xcd] < size[xcd]:
                place = min(place, queue.place[xcd, at[xcd]])
        if place == NEVER:
            continue
        where = (window.first_turn + place // machine.slots) // window.turns_per_bin
        for xcd in range(n_xcds):
            i = at[xcd]
            if i == size[xcd] or queue.place[xcd, i] != place:
                continue
            end, tensor = queue.end[xcd, i], queue.tensor[xcd, i]
            requests, hits = _fetch(machine, mall, queue.line[xcd], queue.weight[xcd], begin[xcd], end, scratch)
            tally = Tally(timeline[where, xcd], totals[:, xcd])
            _count(tally, tensor, MALL_REQUESTS, requests)
            _count(tally, tensor, MALL_HITS, hits)
            begin[xcd], at[xcd] = end, i + 1
    for xcd in range(n_xcds):
        size[xcd] = 0
