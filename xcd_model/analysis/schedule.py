"""Which workgroup runs when: the order in which the lockstep replay issues instructions, without any cache."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from xcd_model.compiled.numba_setup import njit
from xcd_model.dispatch import _next_instruction, slots_in_step
from xcd_model.replay.plan import Plan


@dataclass(frozen=True, eq=False)
class Schedule:
    """Issue order of every XCD in lockstep, one XCD's part after the other."""

    sequence: np.ndarray = field(repr=False)  # (n_instructions,) int32: instruction and workgroup in order of issue
    owner: np.ndarray = field(repr=False)
    ends: np.ndarray = field(repr=False)  # (n_xcds,) int64: where each XCD's part ends
    # (n_workgroups,) int32: position in ``sequence`` of a workgroup's first and last instruction
    born: np.ndarray = field(repr=False)
    died: np.ndarray = field(repr=False)
    # (n_workgroups,) int32 [turns]: turn of its first instruction, and the turn after its last; 0 for a workgroup that
    # touches nothing
    begin: np.ndarray = field(repr=False)
    end: np.ndarray = field(repr=False)
    xcd: np.ndarray = field(repr=False)  # (n_workgroups,) int32: XCD that runs it; -1 for one that touches nothing

    @property
    def turns(self) -> int:
        """Turns in all."""
        return int(self.end.max())

    def without_instructions(self) -> Schedule:
        """The same with an empty ``sequence`` and ``owner``."""
        return replace(self, sequence=self.sequence[:0].copy(), owner=self.owner[:0].copy())

    def of_clusters(self, size: int) -> Schedule:
        """The same by cluster: a cluster is born with its first workgroup and dies with its last."""

        def folded(array: np.ndarray, last: bool) -> np.ndarray:
            of = array.reshape(-1, size)
            idle = (self.xcd < 0).reshape(-1, size)  # touches nothing
            found = np.where(idle, of.min() if last else of.max(), of)
            return np.where(idle.all(axis=1), 0, found.max(axis=1) if last else found.min(axis=1))

        return replace(
            self,
            owner=self.owner // size,
            born=folded(self.born, False),
            died=folded(self.died, True),
            begin=folded(self.begin, False),
            end=folded(self.end, True),
            xcd=self.xcd.reshape(-1, size).max(axis=1),
        )


class _Found(NamedTuple):
    """Arrays of a `Schedule` while they are filled."""

    sequence: np.ndarray
    owner: np.ndarray
    ends: np.ndarray
    born: np.ndarray
    died: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    xcd: np.ndarray


@njit(cache=True, nogil=True)
def _schedule(start, machine, order, slots, found):
    """Fill the arrays of `Schedule`: the loop of the lockstep replay with nothing but the dispatch rule in it.

    turn t of an XCD: every slot, in order, issues the next instruction of its workgroup
    """
    at = np.int64(0)
    for xcd in range(machine.xcds):
        issued, turn = True, 0
        while issued:
            issued = False
            for slot in range(machine.slots):
                instruction = _next_instruction(start, machine, order, slots, xcd, slot)
                if instruction < 0:
                    continue
                workgroup = order[slots.pid[xcd, slot]]
                if instruction == start[workgroup]:
                    found.born[workgroup], found.begin[workgroup], found.xcd[workgroup] = at, turn, xcd
                found.sequence[at], found.owner[at] = instruction, workgroup
                found.died[workgroup], found.end[workgroup] = at, turn + 1
                at += 1
                issued = True
            turn += 1
        found.ends[xcd] = at


def schedule_of(plan: Plan, order: np.ndarray, *, workgroups_per_cu: int) -> Schedule:
    """Schedule of one order.

    Parameters
    ----------
    order : (n_workgroups,) or (n_clusters,) int64
        A permutation.
    """
    by_cluster = np.size(order) != plan.n_workgroups
    n, workgroups = plan.trace.n_instructions, plan.trace.n_workgroups
    machine = plan.machine._replace(slots=plan.gpu.cus_per_xcd * workgroups_per_cu)
    sequence, owner = np.empty((2, n), np.int32)
    ends, (born, died, begin, end) = np.empty(machine.xcds, np.int64), np.zeros((4, workgroups), np.int32)
    found = _Found(sequence, owner, ends, born, died, begin, end, np.full(workgroups, -1, np.int32))
    order = plan.order_of_workgroups(order)
    slots = slots_in_step(plan.trace.start, machine, order, plan.stream.multicast)
    _schedule(plan.trace.start, machine, order, slots, found)
    schedule = Schedule(*found)
    return schedule.of_clusters(machine.cluster) if by_cluster else schedule
