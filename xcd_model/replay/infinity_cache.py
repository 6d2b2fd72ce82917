"""What the L2s missed, on its way to the Infinity Cache: one queue an XCD, merged in the order of issue.

XCDs share nothing before the Infinity Cache. So each is replayed by itself for a window of turns, on any thread, and
its missed reads are queued with the place (turn, slot) of the instruction they belong to. Then the queues are merged
by place, then XCD: the order in which XCDs side by side would have asked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.cache.batch import CHUNK, Scratch, _locate_all
from xcd_model.cache.lru import HIT, _touch
from xcd_model.fast.lru_simd import WAYS, _prefetch, _touch_row
from xcd_model.numba_setup import uncounted
from xcd_model.replay.traffic import MALL_HITS, MALL_REQUESTS
from xcd_model.trace.packed import Machine

NEVER = 2**62  # a place after all others
QUEUE_LINES = 1 << 18  # wanted length of a queue: its part that is used stays in the host's caches


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
def _fetch(index, ways, mall, line, weight, first, end, at, word):
    """Look lines ``first .. end - 1`` of a queue up in the Infinity Cache; return (requests, hits)."""
    requests = hits = 0
    last = np.int64(1) << (ways - 1)
    for start in range(first, end, CHUNK):
        n = min(CHUNK, end - start)
        _locate_all(line[start:end], n, index, at, word)
        for i in range(np.uint64(n)):
            _prefetch(mall, np.int64(at[i]) * ways)
        for i in range(np.uint64(n)):
            row, fetched = np.int64(at[i]) * ways, np.int64(word[i])
            gone = _touch_row(mall, row, fetched, last) if ways <= WAYS else _touch(mall, row, ways, fetched)
            asked = np.int64(weight[start + i])
            requests += asked
            hits += asked * np.int64(gone == HIT)
    return requests, hits


@uncounted()
def _merge(queue, machine, mall, first_turn, per_bin, timeline, by_tensor, scratch: Scratch):
    """Send a window's missed reads to the Infinity Cache, in order of place, then XCD; empties the queues."""
    n_xcds, slots, ways = queue.size.size, machine.slots, machine.mall_ways
    size, places, ends, tensors = queue.size, queue.place, queue.end, queue.tensor
    at, begin = queue.at, queue.begin
    for xcd in range(n_xcds):
        at[xcd] = begin[xcd] = 0
    place = np.int64(0)
    while place < NEVER:
        place = NEVER
        for xcd in range(n_xcds):
            if at[xcd] < size[xcd]:
                place = min(place, places[xcd, at[xcd]])
        if place == NEVER:
            continue
        where = (first_turn + place // slots) // per_bin
        for xcd in range(n_xcds):
            i = at[xcd]
            if i == size[xcd] or places[xcd, i] != place:
                continue
            end, tensor = ends[xcd, i], tensors[xcd, i]
            requests, hits = _fetch(
                machine.mall, ways, mall, queue.line[xcd], queue.weight[xcd], begin[xcd], end, scratch.at, scratch.word
            )
            timeline[where, xcd, MALL_REQUESTS] += requests
            timeline[where, xcd, MALL_HITS] += hits
            by_tensor[tensor, xcd, MALL_REQUESTS] += requests
            by_tensor[tensor, xcd, MALL_HITS] += hits
            begin[xcd], at[xcd] = end, i + 1
    for xcd in range(n_xcds):
        size[xcd] = 0
