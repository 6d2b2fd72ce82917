"""Which tiles miss: stack distances of a sample of lines, and from them the misses of each workgroup.

    miss  <=>  first touch of its XCD, or  distance * (lines a sampled one stands for) >= lines of the L2

A fully associative LRU cache in lockstep, so an estimate next to the replay's counts; associativity, the drift of the
timed replay, and the second partition of an L2 that has two are left out.

Sources: Mattson et al., IBM Systems Journal 9(2), 1970 (stack distance); Waldspurger et al., FAST 2015 (SHARDS: a
sample of lines by hash keeps stack distances in proportion).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from xcd_model.analysis.schedule import Schedule
from xcd_model.compiled.numba_setup import njit
from xcd_model.replay.plan import Plan

MAX_SAMPLES = 1 << 20


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
