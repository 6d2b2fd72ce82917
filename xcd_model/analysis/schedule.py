"""Which workgroup runs when: the order in which the lockstep replay issues instructions, without any cache."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from xcd_model.replay.plan import Plan


@dataclass(frozen=True, eq=False)
class Schedule:
    """Issue order of every XCD in lockstep, one XCD's part after the other.

    Parameters
    ----------
    sequence, owner : (n_instructions,) int64
        Instruction and workgroup in order of issue.
    ends : (n_xcds,) int64
        Where each XCD's part ends.
    born, died : (n_workgroups,) int64
        Position in ``sequence`` of a workgroup's first and last instruction.
    begin, end : (n_workgroups,) int64 [turns]
        Turn of its first instruction, and the turn after its last; 0 for a workgroup that touches nothing.
    xcd : (n_workgroups,) int64
        XCD that runs it; -1 for one that touches nothing.
    """

    sequence: np.ndarray = field(repr=False)
    owner: np.ndarray = field(repr=False)
    ends: np.ndarray = field(repr=False)
    born: np.ndarray = field(repr=False)
    died: np.ndarray = field(repr=False)
    begin: np.ndarray = field(repr=False)
    end: np.ndarray = field(repr=False)
    xcd: np.ndarray = field(repr=False)

    @property
    def turns(self) -> int:
        """Turns in all."""
        return int(self.end.max())


@njit(inline="always")
def _next_pid(pid, queue, xcd, xcds, n_tiles, programs):
    """Hardware id that a slot takes up after ``pid`` (-1 before the first), -1 if there is none left."""
    if programs and pid >= 0 and pid + programs < n_tiles:
        return pid + programs
    if queue[xcd] >= (programs if programs else n_tiles):
        return -1
    queue[xcd] += xcds
    return queue[xcd] - xcds


@njit(cache=True, nogil=True)
def _schedule(start, order, queue, slots, programs, sequence, owner, ends, life, turns, xcd_of):
    """Fill the arrays of `Schedule`.

    queue : (n_xcds,) int64, first hardware id of each XCD; scratch
    life, turns : (2, n_workgroups) int64, (born, died) and (begin, end)
    """
    at = 0
    xcds = queue.size
    for xcd in range(xcds):
        next_of, end_of = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
        pid, of = np.full(slots, -1, np.int64), np.full(slots, -1, np.int64)
        issued, turn = True, 0
        while issued:
            issued = False
            for slot in range(slots):
                while next_of[slot] == end_of[slot]:  # a workgroup may touch nothing
                    taken = _next_pid(pid[slot], queue, xcd, xcds, order.size, programs)
                    if taken < 0:
                        break
                    pid[slot], of[slot] = taken, order[taken]
                    next_of[slot], end_of[slot] = start[of[slot]], start[of[slot] + 1]
                    if next_of[slot] < end_of[slot]:
                        life[0, of[slot]], turns[0, of[slot]], xcd_of[of[slot]] = at, turn, xcd
                if next_of[slot] == end_of[slot]:
                    continue
                sequence[at], owner[at] = next_of[slot], of[slot]
                life[1, of[slot]], turns[1, of[slot]] = at, turn + 1
                next_of[slot] += 1
                at += 1
                issued = True
            turn += 1
        ends[xcd] = at


def schedule_of(plan: Plan, order: np.ndarray, *, workgroups_per_cu: int) -> Schedule:
    """Schedule of one order.

    Parameters
    ----------
    plan : Plan
        Of a persistent kernel too: then a slot goes on with its program's next tile.
    order : (n_workgroups,) int64
        A permutation.
    workgroups_per_cu : int

    Returns
    -------
    Schedule
    """
    trace, gpu = plan.trace, plan.gpu
    n, workgroups = trace.n_instructions, trace.n_workgroups
    sequence, owner, ends = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(gpu.xcds, np.int64)
    life, turns = np.zeros((2, workgroups), np.int64), np.zeros((2, workgroups), np.int64)
    xcd_of, queue = np.full(workgroups, -1), (np.arange(gpu.xcds) - gpu.dispatch_offset) % gpu.xcds
    slots, programs = gpu.cus_per_xcd * workgroups_per_cu, plan.machine.programs
    _schedule(trace.start, order, queue, slots, programs, sequence, owner, ends, life, turns, xcd_of)
    return Schedule(sequence, owner, ends, life[0], life[1], turns[0], turns[1], xcd_of)
