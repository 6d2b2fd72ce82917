"""Which workgroup runs when in the lockstep replay, and which tiles miss, by stack distances of a sample of lines.

    miss  <=>  first touch of its XCD, or  distance * (lines a sampled one stands for) >= lines of the L2

A fully associative LRU cache in lockstep, so an estimate next to the replay's counts; associativity, the drift of the
timed replay, and the second partition of an L2 that has two are left out.

Sources: Mattson et al., IBM Systems Journal 9(2), 1970 (stack distance); Waldspurger et al., FAST 2015 (SHARDS: a
sample of lines by hash keeps stack distances in proportion).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from xcd_model.compiled.numba_setup import njit
from xcd_model.dispatch import _next_instruction, slots_in_step
from xcd_model.replay.plan import Plan

MAX_SAMPLES = 1 << 20


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
    """Schedule of one order, a permutation of the workgroups or of the clusters."""
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


@dataclass(frozen=True, eq=False)
class Touches:
    """Touches of sampled lines in order of issue, one XCD after the other."""

    line: np.ndarray = field(repr=False)  # (n,) int64: number of the line among the sampled ones, below ``n_lines``
    at: np.ndarray = field(repr=False)  # (n,) int64: position in the schedule's sequence
    xcd: np.ndarray = field(repr=False)  # (n,) int64
    # (n,) int64: other sampled lines that the XCD touched since it touched this one; -1 at its first touch
    distance: np.ndarray = field(repr=False)
    n_lines: int
    one_in: int  # lines that a sampled one stands for

    def misses(self, plan: Plan) -> np.ndarray:
        """(n,) bool: whether a touch misses an L2 of the plan's GPU."""
        lines = plan.gpu.l2.size_bytes // plan.gpu.l2.line_bytes / self.one_in
        return (self.distance < 0) | (self.distance >= lines)


@njit(cache=True, nogil=True)
def _sampled(line, mask):
    """Whether a line is in the sample. Source: the multiplier is that of Knuth's multiplicative hash."""
    return ((np.uint64(line) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)) & np.uint64(mask) == 0


@njit(cache=True, nogil=True)
def _collect(sequence, base, template, rel_start, rel, mask, lines, at):
    """Sampled touches in order of issue: their line and position; return how many. Counts only if ``lines`` is empty.

    lines, at : (n,) int64, output
    """
    n = 0
    for position in range(sequence.size):
        instruction = sequence[position]
        for entry in range(rel_start[template[instruction]], rel_start[template[instruction] + 1]):
            line = base[instruction] + rel[entry]
            if _sampled(line, mask):
                if lines.size:
                    lines[n], at[n] = line, position
                n += 1
    return n


@njit(cache=True, nogil=True)
def _distances(line, previous, distance):
    """Fill the stack distance of each touch of one XCD: other sampled lines touched since; -1 for a first touch.

    line     : (n,) int64, each in 0 .. n_lines - 1
    previous : (n_lines,) int64, -1s; scratch
    distance : (n,) int64, output
    """
    n = line.size
    tree = np.zeros(n + 1, np.int64)  # a Fenwick tree with a one at the latest touch of each line
    for i in range(n):
        before = previous[line[i]]
        distance[i] = -1
        if before >= 0:
            total, at = 0, i
            while at > 0:
                total += tree[at]
                at -= at & -at
            at = before + 1
            while at > 0:
                total -= tree[at]
                at -= at & -at
            distance[i] = total
            at = before + 1
            while at <= n:
                tree[at] -= 1
                at += at & -at
        at = i + 1
        while at <= n:
            tree[at] += 1
            at += at & -at
        previous[line[i]] = i


def sampled_touches(plan: Plan, schedule: Schedule, most: int = MAX_SAMPLES) -> Touches:
    """Touches of about ``most`` samples at most; all of them where there are no more."""
    trace = plan.trace
    one_in = 1 << max(0, int(np.ceil(np.log2(trace.n_touches / most))))
    given = (schedule.sequence, trace.base, trace.template, trace.rel_start, trace.rel, one_in - 1)
    none = np.empty(0, np.int64)
    size = _collect(*given, none, none)
    lines, at = np.empty(size, np.int64), np.empty(size, np.int64)
    if size:
        _collect(*given, lines, at)
    unique, line = np.unique(lines, return_inverse=True)
    xcd = np.searchsorted(schedule.ends, at, side="right")
    distance = np.empty(size, np.int64)
    for x in range(plan.gpu.xcds):
        mine = slice(*np.searchsorted(xcd, [x, x + 1]))
        _distances(line[mine], np.full(unique.size, -1), distance[mine])
    return Touches(line, at, xcd, distance, unique.size, one_in)


def misses_of_workgroups(plan: Plan, schedule: Schedule, touches: Touches) -> np.ndarray:
    """Estimated L2 misses of each workgroup of the schedule, or cluster, (n,) float [lines]."""
    owner = schedule.owner[touches.at[touches.misses(plan)]]
    return np.bincount(owner, minlength=schedule.begin.size) * float(touches.one_in)
