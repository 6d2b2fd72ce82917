"""The event queue of a timed replay: slots that can issue and CUs that can compute, the earliest first.

an indexed binary heap:   parent (i - 1) // 2,   children 2 i + 1 and 2 i + 2,   place[who] = i
order of events:          (time, age, who)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.numba_inline import called, inlined
from xcd_model.numba_reference import by_reference


@by_reference
class EventQueue(NamedTuple):
    """An indexed binary heap of at most one event each of slots and CUs, ``n`` of them together.

    A slot's age may change only while its event is the first, and before it is put or dropped: the heap stays one.

    Parameters
    ----------
    time : (n,) int64 [fs]
        When, by place in the heap.
    who : (n,) int32
        Whose event, by place in the heap: a slot, or the number of slots plus a CU.
    place : (n,) int32
        Where in the heap everyone's event is; -1 without one.
    age : (n,) int64
        Among events at one time the lowest goes first, then the lowest ``who``: hardware ids for slots, -1 for CUs.
    size : (1,) int64
        Events in the heap.
    """

    time: np.ndarray
    who: np.ndarray
    place: np.ndarray
    age: np.ndarray
    size: np.ndarray


def event_queue_of(n_slots: int, n_cus: int) -> EventQueue:
    """Every slot at time 0, no CU."""
    n = n_slots + n_cus
    age, place = np.zeros(n, np.int64), np.arange(n, dtype=np.int32)
    age[n_slots:] = place[n_slots:] = -1
    return EventQueue(np.zeros(n, np.int64), np.arange(n, dtype=np.int32), place, age, np.array([n_slots]))


@inlined
def _before(events, time, who, at):
    """Whether an event comes before the one at a place of the heap."""
    other = events.who[at]
    return (time, events.age[who], who) < (events.time[at], events.age[other], np.int64(other))


@inlined
def _set(events, at, time, who):
    events.time[at], events.who[at] = time, who
    events.place[who] = at


@called
def _settle(events, at, time, who):
    """Put an event at a place of the heap, then where it belongs."""
    size = events.size[0]
    while at > 0 and _before(events, time, who, (at - 1) // 2):
        up = (at - 1) // 2
        _set(events, at, events.time[up], events.who[up])
        at = up
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(events, events.time[child + 1], np.int64(events.who[child + 1]), child):
            child += 1
        if _before(events, time, who, child):
            break
        _set(events, at, events.time[child], events.who[child])
        at = child
    _set(events, at, time, who)


@inlined
def _put(events, who, time):
    """Give a slot or a CU its event, or another time for the one it has."""
    at = np.int64(events.place[who])
    if at < 0:
        at = events.size[0]
        events.size[0] += 1
    _settle(events, at, time, who)


@inlined
def _drop(events, who):
    """Take away the event of a slot or a CU."""
    at = np.int64(events.place[who])
    events.place[who] = -1
    events.size[0] -= 1
    last = events.size[0]
    if at != last:
        _settle(events, at, events.time[last], np.int64(events.who[last]))
