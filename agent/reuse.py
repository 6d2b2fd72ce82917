"""Where reuse is won and lost: every touch of a sampled line, classed by who touched the line before.

The order is that of the lockstep replay. Hits are those of one fully associative LRU cache an XCD, from exact stack
distances of lines sampled by hash, so the figures are an estimate beside the replay's counts: associativity, and the
drift of the timed replay, are left out.

Sources: Mattson et al., IBM Systems Journal 9(2), 1970 (stack distance); Waldspurger et al., FAST 2015 (SHARDS: a
sample of lines by hash keeps stack distances in proportion).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from swizzle_sim.swizzle.grid import Grid
from xcd_model import Plan

FIRST, FIRST_HERE, OWN, ALONG_M, ALONG_N, DIAGONAL, LATER = range(7)
KINDS = (
    "first touch by any XCD",
    "first touch by this XCD, another XCD has fetched the line",
    "reuse within a workgroup",
    "reuse between resident neighbours along m",
    "reuse between resident neighbours along n",
    "reuse between resident workgroups, other direction",
    "reuse across waves of workgroups (the earlier one has finished)",
)
MAX_SAMPLES = 1 << 20


@dataclass(frozen=True, eq=False)
class Reuse:
    """Touches of sampled lines under one order, scaled to the whole.

    Parameters
    ----------
    tensors : tuple of str
    touches, misses : (n_tensors, len(KINDS)) float [lines]
        Touches of each kind, and those whose stack distance exceeds the L2.
    copies : (n_tensors,) float
        XCDs that touch a line, on average over the lines touched.
    misses_of_workgroup : (n_workgroups,) float [lines]
    sampled_fraction : float
        Of all lines.
    """

    tensors: tuple[str, ...]
    touches: np.ndarray = field(repr=False)
    misses: np.ndarray = field(repr=False)
    copies: np.ndarray = field(repr=False)
    misses_of_workgroup: np.ndarray = field(repr=False)
    sampled_fraction: float = 1.0


@njit(cache=True, nogil=True)
def _schedule(start, order, xcds, offset, slots, sequence, ends, owner, born, died):
    """Issue order of every XCD in lockstep, one XCD after the other.

    sequence, owner : (n_instructions,) int64, instruction and workgroup in order of issue
    ends            : (xcds,) int64, where each XCD's part ends
    born, died      : (n_workgroups,) int64, position of its first and last instruction in its XCD's part
    """
    at = 0
    for xcd in range(xcds):
        queue = (xcd - offset) % xcds
        next_of, end_of = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
        of = np.full(slots, -1, np.int64)
        issued = True
        while issued:
            issued = False
            for slot in range(slots):
                while next_of[slot] == end_of[slot] and queue < order.size:  # a workgroup may touch nothing
                    of[slot] = order[queue]
                    queue += xcds
                    next_of[slot], end_of[slot] = start[of[slot]], start[of[slot] + 1]
                    born[of[slot]] = at
                if next_of[slot] == end_of[slot]:
                    continue
                sequence[at], owner[at] = next_of[slot], of[slot]
                died[of[slot]] = at
                next_of[slot] += 1
                at += 1
                issued = True
        ends[xcd] = at


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


def tile_coordinates(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Tile row and column of each workgroup; a grid without tile axes is one row."""
    pid = np.arange(grid.num_pids)
    if grid.tiles:
        return pid // grid.tiles[1], pid % grid.tiles[1]
    if len(grid.launch) == 1:
        return np.zeros_like(pid), pid
    return pid % grid.launch[0], pid // grid.launch[0]


def reuse_of(plan: Plan, order: np.ndarray, *, workgroups_per_cu: int, grid: Grid) -> Reuse:
    """Class the touches of one order.

    Parameters
    ----------
    plan : Plan
    order : (n_workgroups,) int64
        A permutation.
    workgroups_per_cu : int
    grid : Grid

    Returns
    -------
    Reuse
    """
    trace, gpu = plan.trace, plan.gpu
    n = trace.n_instructions
    sequence, owner = np.empty(n, np.int64), np.empty(n, np.int64)
    ends, born, died = np.empty(gpu.xcds, np.int64), *(np.empty(trace.n_workgroups, np.int64) for _ in range(2))
    slots = gpu.cus_per_xcd * workgroups_per_cu
    _schedule(trace.start, order, gpu.xcds, gpu.dispatch_offset, slots, sequence, ends, owner, born, died)
    shift = max(0, int(np.ceil(np.log2(trace.n_touches / MAX_SAMPLES))))
    mask = (1 << shift) - 1
    lines, at = _touches(plan, sequence, mask)
    unique, line = np.unique(lines, return_inverse=True)
    xcd = np.searchsorted(ends, at, side="right")
    kind, distance = _classes(line, unique.size, at, xcd, owner, (born, died), grid, gpu.xcds)
    limit = gpu.l2.size_bytes // gpu.l2.line_bytes / (mask + 1)
    miss = (distance < 0) | (distance >= limit)
    tensor = trace.tensor[trace.template[sequence[at]]]
    table = [np.zeros((len(trace.tensors), len(KINDS))) for _ in range(2)]
    np.add.at(table[0], (tensor, kind), mask + 1.0)
    np.add.at(table[1], (tensor[miss], kind[miss]), mask + 1.0)
    of_workgroup = np.bincount(owner[at[miss]], minlength=trace.n_workgroups) * (mask + 1.0)
    names = tuple(t.name for t in trace.tensors)
    first = distance < 0
    tensor_of_line = np.zeros(unique.size, np.int64)
    tensor_of_line[line] = tensor
    held = np.bincount(tensor_of_line[line[first]], minlength=len(names))
    copies = held / np.maximum(1, np.bincount(tensor_of_line, minlength=len(names)))
    return Reuse(names, table[0], table[1], copies, of_workgroup, 1 / (mask + 1))


def _touches(plan: Plan, sequence: np.ndarray, mask: int) -> tuple[np.ndarray, np.ndarray]:
    trace = plan.trace
    none = np.empty(0, np.int64)
    given = (sequence, trace.base, trace.template, trace.rel_start, trace.rel, mask)
    size = _collect(*given, none, none)
    lines, at = np.empty(size, np.int64), np.empty(size, np.int64)
    if size:
        _collect(*given, lines, at)
    return lines, at


def _classes(
    line: np.ndarray,
    n_lines: int,
    at: np.ndarray,
    xcd: np.ndarray,
    owner: np.ndarray,
    life: tuple[np.ndarray, np.ndarray],
    grid: Grid,
    xcds: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Kind and stack distance of each touch; touches lie one XCD after the other."""
    distance, earlier = np.empty(line.size, np.int64), np.full(line.size, -1)
    for x in range(xcds):
        mine = np.flatnonzero(xcd == x)
        found = np.empty(mine.size, np.int64)
        _distances(line[mine], np.full(n_lines, -1), found)
        distance[mine] = found
        by_line = mine[np.argsort(line[mine], kind="stable")]
        same = np.flatnonzero(line[by_line[1:]] == line[by_line[:-1]])
        earlier[by_line[same + 1]] = by_line[same]
    born, died = life
    row, col = tile_coordinates(grid)
    now, before = owner[at], owner[at[np.maximum(earlier, 0)]]
    kind = np.full(line.size, DIAGONAL)
    kind[row[now] == row[before]] = ALONG_N
    kind[col[now] == col[before]] = ALONG_M
    kind[born[now] > died[before]] = LATER
    kind[now == before] = OWN
    first = distance < 0
    kind[first] = FIRST_HERE
    # the XCD with the earliest turn brought the line first; position within an XCD's part stands for time
    starts = np.concatenate([[0], np.flatnonzero(np.diff(xcd)) + 1])
    since = at - at[starts[np.searchsorted(starts, np.arange(line.size), side="right") - 1]] if line.size else at
    candidates = np.flatnonzero(first)
    by_time = candidates[np.lexsort((xcd[candidates], since[candidates], line[candidates]))]
    kind[by_time[np.unique(line[by_time], return_index=True)[1]]] = FIRST
    return kind, distance
