"""The event queue of a timed replay: which slot can issue first, or which CU of a cluster can compute.

a CU's events:      (time, rank) of each of its slots, in a row;    rank = (age + 1) << 24 | slot, age: hardware id
in clusters also:   (time, CU) of when it can compute, before those of slots at that time
a tournament:       node i has the first of nodes 2 i and 2 i + 1;  node CUS + c: the first event of CU c

What has no event has one at the time `NEVER`. The nodes above a CU are known without a look at any of them, and their
number is no variable: LLVM unrolls the way up and selects, where a loop would have branches that are mispredicted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import called, inlined
from xcd_model.errors import ReplayError

SLOT_BITS = 24  # of a rank; above it an age of up to 2^39 - 2
NEVER = 2**63 - 1
LEVELS = 12
CUS = 1 << LEVELS  # most that a GPU may have
ONE = np.uint64(1)


@by_reference
class EventQueue(NamedTuple):
    """Events of slots and CUs.

    Parameters
    ----------
    slot_time, slot_rank : (n_cus, slots a CU) int64 [fs]
        When each slot of a CU can issue or take up a workgroup, and who is first of events at one time. What is changed
        counts from `_settle` on.
    computes : (n_cus,) int64 [fs]
        When each CU can compute, of clusters; else `NEVER`.
    time, rank : (2 `CUS`,) int64
        First event by node; node 0 has none, node 1 the first of all.
    """

    slot_time: np.ndarray
    slot_rank: np.ndarray
    computes: np.ndarray
    time: np.ndarray
    rank: np.ndarray


def event_queue_of(xcds: int, cus: int, slots_per_cu: int) -> EventQueue:
    """Every slot at time 0, no CU; of a GPU with so many CUs an XCD.

    Raises
    ------
    ReplayError
        If there are more than `CUS` CUs.
    """
    n = xcds * cus
    if n > CUS:
        raise ReplayError(f"{xcds} XCDs of {cus} CUs are {n} CUs: the timed replay takes at most {CUS}")
    slot = np.arange(n * slots_per_cu).reshape(slots_per_cu, cus, xcds).transpose(2, 1, 0).reshape(n, slots_per_cu)
    slot_rank = np.ascontiguousarray((1 << SLOT_BITS) + slot)  # else, of one XCD, kernels would be compiled again
    time, rank = np.full((2, 2 * CUS), NEVER)
    time[CUS : CUS + n], rank[CUS : CUS + n] = 0, slot_rank[:, 0]
    for node in range(CUS - 1, 0, -1):
        time[node], rank[node] = min((time[child], rank[child]) for child in (2 * node, 2 * node + 1))
    return EventQueue(np.zeros((n, slots_per_cu), np.int64), slot_rank, np.full(n, NEVER), time, rank)


@inlined
def _first(events):
    """(Time, rank) of the first event, `NEVER` if there is none."""
    return events.time[1], events.rank[1]


@inlined
def _first_of(time, rank, other_time, other_rank):
    """(Time, rank) of the first of two events."""
    other = (other_time < time) | ((other_time == time) & (other_rank < rank))
    return other_time if other else time, other_rank if other else rank


@called
def _settle(events, unit):
    """Let all know of the events of a CU."""
    times, ranks = events.slot_time[unit], events.slot_rank[unit]
    time = computes = events.computes[unit]
    for i in range(times.size):
        time = min(time, times[i])
    rank = np.int64(unit)
    if time < computes:
        rank = np.int64(NEVER)
        for i in range(times.size):
            rank = min(rank, ranks[i] if times[i] == time else np.int64(NEVER))
    times, ranks, at = events.time, events.rank, np.uint64(CUS + unit)
    times[at], ranks[at] = time, rank
    for _ in range(LEVELS):
        time, rank = _first_of(time, rank, times[at ^ ONE], ranks[at ^ ONE])
        at >>= ONE
        times[at], ranks[at] = time, rank
