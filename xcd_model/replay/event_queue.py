"""The event queue of a timed replay: slots that can issue and CUs that can compute, the earliest first.

an indexed heap of four children:   parent (i - 1) // 4,   children 4 i + 1 ... 4 i + 4,   place[who] = i
order of events:                    (time, age, who),      the last two as one number: rank = (age + 1) << 24 | who

Behind the last event there are `CHILDREN` of the time `NEVER`, so that a parent always has all of its children.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.numba_inline import called, inlined
from xcd_model.numba_reference import by_reference

WHO_BITS = 24  # of a rank; above it an age of up to 2^39 - 2
CHILDREN = 4
NEVER = 2**63 - 1
ONE, TWO = np.uint64(1), np.uint64(2)


@by_reference
class EventQueue(NamedTuple):
    """An indexed heap of at most one event each of slots and CUs, ``n`` of them together.

    A slot's age may change only while its event is the first, and before it is put or dropped: the heap stays one.

    Parameters
    ----------
    time : (n + `CHILDREN`,) int64 [fs]
        When, by place in the heap.
    rank : (n + `CHILDREN`,) int64
        Who comes first of events at one time, by place in the heap: of the lowest age, then the lowest number.
    place : (n,) int32
        Where in the heap everyone's event is; -1 without one. Slots first, then CUs.
    age : (n,) int64
        Hardware ids for slots, -1 for CUs.
    size : (1,) int64
        Events in the heap.
    """

    time: np.ndarray
    rank: np.ndarray
    place: np.ndarray
    age: np.ndarray
    size: np.ndarray


def event_queue_of(n_slots: int, n_cus: int) -> EventQueue:
    """Every slot at time 0, no CU."""
    n = n_slots + n_cus
    age, place = np.zeros(n, np.int64), np.arange(n, dtype=np.int32)
    age[n_slots:] = place[n_slots:] = -1
    time, rank = np.full((2, n + CHILDREN), NEVER)
    time[:n_slots], rank[:n_slots] = 0, (1 << WHO_BITS) + np.arange(n_slots)
    return EventQueue(time, rank, place, age, np.array([n_slots]))


@inlined
def _first(events):
    """(Time of the first event, whose it is)."""
    return events.time[0], events.rank[0] & ((1 << WHO_BITS) - 1)


@inlined
def _before(events, one, time, rank):
    """1 if the event at a place of the heap comes before another, else 0: a branch would be mispredicted."""
    first = (events.time[one] < time) | ((events.time[one] == time) & (events.rank[one] < rank))
    return np.uint64(first)


@inlined
def _first_child(events, first):
    """Place of the event that comes first of the four from ``first`` on."""
    left = first + _before(events, first + ONE, events.time[first], events.rank[first])
    right = first + TWO
    right += _before(events, right + ONE, events.time[right], events.rank[right])
    return left + (right - left) * _before(events, right, events.time[left], events.rank[left])


@inlined
def _set(events, at, time, rank):
    events.time[at], events.rank[at] = time, rank
    events.place[np.uint64(rank) & np.uint64((1 << WHO_BITS) - 1)] = np.int32(at)


@called
def _settle(events, at, time, rank):
    """Put an event at a place of the heap, then where it belongs; places are unsigned, which spares a comparison."""
    at, size = np.uint64(at), np.uint64(events.size[0])
    while at > 0:
        up = (at - ONE) >> TWO
        if _before(events, up, time, rank):
            break
        _set(events, at, events.time[up], events.rank[up])
        at = up
    while (at << TWO) + ONE < size:
        child = _first_child(events, (at << TWO) + ONE)
        if not _before(events, child, time, rank):
            break
        _set(events, at, events.time[child], events.rank[child])
        at = child
    _set(events, at, time, rank)


@inlined
def _put(events, who, time):
    """Give a slot or a CU its event, or another time for the one it has."""
    at = np.int64(events.place[who])
    if at < 0:
        at = events.size[0]
        events.size[0] += 1
    _settle(events, at, time, ((events.age[who] + 1) << WHO_BITS) | who)


@inlined
def _drop(events, who):
    """Take away the event of a slot or a CU."""
    at = np.int64(events.place[who])
    events.place[who] = -1
    events.size[0] -= 1
    last = events.size[0]
    time, rank = events.time[last], events.rank[last]
    events.time[last] = NEVER
    if at != last:
        _settle(events, at, time, rank)
