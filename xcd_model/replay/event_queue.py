"""What happens next in a timed replay: slots that can issue and CUs that can compute, the earliest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class Agenda(NamedTuple):
    """An indexed binary heap of at most one event each of slots and CUs, ``n`` of them together.

    A slot's age may change only while its event is the first, and before it is put or dropped: then the heap holds.

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


def agenda_of(n_slots: int, n_cus: int) -> Agenda:
    """Every slot at time 0, no CU."""
    n = n_slots + n_cus
    age, place = np.zeros(n, np.int64), np.arange(n, dtype=np.int32)
    age[n_slots:] = place[n_slots:] = -1
    return Agenda(np.zeros(n, np.int64), np.arange(n, dtype=np.int32), place, age, np.array([n_slots]))


@njit(inline="always")
def _before(agenda, time, who, at):
    """Whether an event comes before the one at a place of the heap."""
    other = agenda.who[at]
    return (time, agenda.age[who], who) < (agenda.time[at], agenda.age[other], np.int64(other))


@njit(inline="always")
def _set(agenda, at, time, who):
    agenda.time[at], agenda.who[at] = time, who
    agenda.place[who] = at


@njit(inline="always")
def _settle(agenda, at, time, who):
    """Put an event at a place of the heap, then where it belongs."""
    size = agenda.size[0]
    while at > 0 and _before(agenda, time, who, (at - 1) // 2):
        up = (at - 1) // 2
        _set(agenda, at, agenda.time[up], agenda.who[up])
        at = up
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(agenda, agenda.time[child + 1], np.int64(agenda.who[child + 1]), child):
            child += 1
        if _before(agenda, time, who, child):
            break
        _set(agenda, at, agenda.time[child], agenda.who[child])
        at = child
    _set(agenda, at, time, who)


@njit(inline="always")
def _put(agenda, who, time):
    """Give a slot or a CU its event, or another time for the one it has."""
    at = np.int64(agenda.place[who])
    if at < 0:
        at = agenda.size[0]
        agenda.size[0] += 1
    _settle(agenda, at, time, who)


@njit(inline="always")
def _drop(agenda, who):
    """Take away the event of a slot or a CU."""
    at = np.int64(agenda.place[who])
    agenda.place[who] = -1
    agenda.size[0] -= 1
    last = agenda.size[0]
    if at != last:
        _settle(agenda, at, agenda.time[last], np.int64(agenda.who[last]))
