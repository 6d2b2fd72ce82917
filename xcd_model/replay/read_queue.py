"""Limit on outstanding L2 reads per CU, with oldest-workgroup-first arbitration (an MSHR limit).

    outstanding requests of a CU >= limit   ->   it issues no further load until the first load under way is back

A CU has a limited number of read requests that its L1 missed and that are not back from the L2 yet. While it is full,
the loads that wait are still with their workgroups, and when there is room the oldest workgroup's goes first, as the
arbiter of a CU prefers the oldest wave. That keeps the workgroups that run at once from sharing their caches evenly: a
few advance, the others wait. Loads come back in the order of issue, as an L1 returns them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import inlined

HEAD, ENTRIES, REQUESTS = range(3)


@by_reference
class ReadQueue(NamedTuple):
    """Reads under way from each CU, a ring of loads in the order they were issued.

    Parameters
    ----------
    limit : int
        Requests at which a CU issues no further load; 0 for no bound.
    back : (n_xcds * cus, limit) int64 [fs]
        When each load is back. Every load under way has a request at least, so a ring of ``limit`` never fills.
    requests : (n_xcds * cus, limit) int64
        Requests of each load.
    state : (n_xcds * cus, 3) int64
        First load of the ring, number of loads, and their requests together.
    """

    limit: int
    back: np.ndarray
    requests: np.ndarray
    state: np.ndarray


def read_queue(limit: int | None, n_cus: int) -> ReadQueue:
    """Nothing under way, from any of ``n_cus`` CUs."""
    ring = (n_cus if limit else 0, limit or 0)
    return ReadQueue(limit or 0, np.zeros(ring, np.int64), np.zeros(ring, np.int64), np.zeros((n_cus, 3), np.int64))


@inlined
def _room_at(queue, unit, now):
    """When a CU can issue a load: ``now``, or the time at which the first load under way is back."""
    state = queue.state[unit]
    while state[ENTRIES] and queue.back[unit, state[HEAD]] <= now:
        state[REQUESTS] -= queue.requests[unit, state[HEAD]]
        state[HEAD] = (state[HEAD] + 1) % queue.limit
        state[ENTRIES] -= 1
    return now if state[REQUESTS] < queue.limit else queue.back[unit, state[HEAD]]


@inlined
def _enqueue(queue, unit, requests, back):
    """Add a load of so many requests that is under way until ``back``, or until those before it are back."""
    state = queue.state[unit]
    if state[ENTRIES]:
        back = max(back, queue.back[unit, (state[HEAD] + state[ENTRIES] - 1) % queue.limit])
    place = (state[HEAD] + state[ENTRIES]) % queue.limit
    queue.back[unit, place] = back
    queue.requests[unit, place] = requests
    state[ENTRIES] += 1
    state[REQUESTS] += requests
