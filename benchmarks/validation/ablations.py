"""Ablations without time: one fully associative LRU for each L2, and no cache at all.

``lru``: each L2 is one fully associative LRU of its capacity, fed in lockstep, without L1. What the full model adds is
sets and channels, workgroup skew, the L1, and the second partition of an L2 that has two (the capacity is that of one).
A line in flight counts as resident.

``analytic``: the reuse formula of a GEMM window of ``rows`` x ``cols`` tiles that run at once on an XCD, with ``a`` and
``b`` bytes a K step of each,

    reuse = 1 - (rows a + cols b) / (rows cols (a + b)) = 1 - distinct lines / requested lines,

counted here for the window that an order makes, so that it holds for any kernel. The correction factors that the
published form multiplies it with are fitted to other hardware and left out.

Sources: Mattson et al., IBM Systems Journal 9(2), 1970; the L2 model of origami and hipBLASLt, as described in their
repositories.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model import Gpu, Trace
from xcd_model.compiled.numba_setup import njit
from xcd_model.dispatch import first_ids


class Stream(NamedTuple):
    """A trace and the order of its workgroups, as the compiled loop reads them."""

    start: np.ndarray
    base: np.ndarray
    template: np.ndarray
    rel_start: np.ndarray
    rel: np.ndarray
    is_write: np.ndarray
    order: np.ndarray


def _stream(trace: Trace, order: np.ndarray) -> Stream:
    return Stream(
        trace.start, trace.base, trace.template, trace.rel_start, trace.rel, trace.is_write, np.asarray(order, np.int64)
    )


def reuse_counts(trace: Trace, gpu: Gpu, order: np.ndarray, *, workgroups_per_cu: int) -> np.ndarray:
    """Read and write misses, scaled from the first, middle and last window of each XCD to the launch.

    Parameters
    ----------
    order : (n_workgroups,) int array

    Returns
    -------
    misses : (2,) float
        Of reads, of writes; a line read and written counts as read.
    """
    slots = gpu.cus_per_xcd * workgroups_per_cu
    seen = np.zeros(max(tensor.base_line + tensor.n_lines for tensor in trace.tensors), np.int16)
    counts, stamp, stream = np.zeros((2, 2), np.int64), 0, _stream(trace, order)
    for first in first_ids(gpu.xcds, gpu.dispatch_offset):
        queue = stream.order[first :: gpu.xcds]
        windows = -(-queue.size // slots)
        for at in sorted({0, windows // 2, windows - 1} & set(range(windows))):
            stamp += 1
            _window(stream, queue[at * slots : (at + 1) * slots], seen, stamp, counts)
    write = trace.is_write[trace.template]
    lines = trace.entries_per_template[trace.template]
    total = np.array([lines[~write].sum(), lines[write].sum()], float)
    distinct, asked = counts
    return np.divide(distinct * total, asked, out=np.zeros(2), where=asked > 0)


@njit(cache=True)
def _window(stream, workgroups, seen, stamp, counts):
    """Add distinct and touched lines of the workgroups' reads, then of their writes; ``counts`` (2, 2) int64."""
    for kind in range(2):
        for tile in workgroups:
            for at in range(stream.start[tile], stream.start[tile + 1]):
                shape = stream.template[at]
                if stream.is_write[shape] != (kind == 1):
                    continue
                for entry in range(stream.rel_start[shape], stream.rel_start[shape + 1]):
                    line = stream.base[at] + stream.rel[entry]
                    counts[0, kind] += seen[line] != stamp
                    counts[1, kind] += 1
                    seen[line] = stamp


READ_MISSES, WRITE_MISSES = range(2)


class Lines(NamedTuple):
    """A list of the lines held, newest first, as links between places; ``place`` (n_lines,) is -1 where not held.

    ``held`` (capacity,) is the line of each place; ``older`` and ``newer`` (capacity + 1,) link places, the last of
    them being both ends.
    """

    place: np.ndarray
    held: np.ndarray
    older: np.ndarray
    newer: np.ndarray


def replay_plain(trace: Trace, gpu: Gpu, order: np.ndarray, *, workgroups_per_cu: int) -> np.ndarray:
    """Misses of a lockstep replay through fully associative L2s.

    Parameters
    ----------
    order : (n_workgroups,) int array

    Returns
    -------
    counts : (2,) int64
        Read misses and write misses.
    """
    stream = _stream(trace, order)
    capacity = gpu.l2.size_bytes // gpu.l2.line_bytes
    n_lines = max(tensor.base_line + tensor.n_lines for tensor in trace.tensors)
    place, counts = np.full(n_lines, -1, np.int32), np.zeros(2, np.int64)
    for first in first_ids(gpu.xcds, gpu.dispatch_offset):
        lines = Lines(
            place, np.full(capacity, -1, np.int64), np.empty(capacity + 1, np.int32), np.empty(capacity + 1, np.int32)
        )
        _link(lines)
        _replay_plain(stream, lines, first, gpu.xcds, gpu.cus_per_xcd * workgroups_per_cu, counts)
        place[lines.held[lines.held >= 0]] = -1
    return counts


@njit(cache=True)
def _link(lines):
    """Chain all places behind each other."""
    n = lines.held.size
    for at in range(n + 1):
        lines.older[at] = (at + 1) % (n + 1)
        lines.newer[at] = (at + n) % (n + 1)


@njit(cache=True)
def _touch(lines, line, counts, column):
    """Bring a line to the front; count a miss."""
    end = lines.held.size
    at = lines.place[line]
    if at < 0:
        counts[column] += 1
        at = lines.newer[end]
        if lines.held[at] >= 0:
            lines.place[lines.held[at]] = -1
        lines.held[at], lines.place[line] = line, at
    lines.older[lines.newer[at]], lines.newer[lines.older[at]] = lines.older[at], lines.newer[at]
    lines.newer[at], lines.older[at] = end, lines.older[end]
    lines.newer[lines.older[end]] = at
    lines.older[end] = at


@njit(cache=True)
def _replay_plain(stream, lines, first, xcds, slots, counts):
    """One XCD: in each turn every slot issues an instruction. Checks nothing: ``replay_plain`` builds its input."""
    running = np.zeros((slots, 2), np.int64)
    waiting, busy = first, True
    while busy:
        busy = False
        for slot in range(slots):
            if running[slot, 0] == running[slot, 1]:
                if waiting >= stream.order.size:
                    continue
                tile = stream.order[waiting]
                running[slot] = stream.start[tile], stream.start[tile + 1]
                waiting += xcds
            at = running[slot, 0]
            running[slot, 0] += 1
            busy = True
            template, base = stream.template[at], stream.base[at]
            column = WRITE_MISSES if stream.is_write[template] else READ_MISSES
            for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
                _touch(lines, base + stream.rel[entry], counts, column)
