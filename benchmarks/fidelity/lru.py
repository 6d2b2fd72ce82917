"""Ablation: each L2 as one fully associative LRU cache of its capacity, fed in lockstep, without L1.

What the full model adds to this is sets and channels, drift, the L1, and the second side of an L2 that has two (the
capacity is that of one). A line in flight counts as held.

Source: Mattson et al., IBM Systems Journal 9(2), 1970.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model import Gpu, Trace

READ_MISSES, WRITE_MISSES = range(2)


class Stream(NamedTuple):
    """A trace and the order of its workgroups, as the compiled loop reads them."""

    start: np.ndarray
    base: np.ndarray
    template: np.ndarray
    rel_start: np.ndarray
    rel: np.ndarray
    is_write: np.ndarray
    order: np.ndarray


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
    trace : Trace
    gpu : Gpu
    order : (n_workgroups,) int array
    workgroups_per_cu : int

    Returns
    -------
    counts : (2,) int64
        Read misses and write misses.
    """
    stream = Stream(
        trace.start, trace.base, trace.template, trace.rel_start, trace.rel, trace.is_write, np.asarray(order, np.int64)
    )
    capacity = gpu.l2.size_bytes // gpu.l2.line_bytes
    n_lines = max(tensor.base_line + tensor.n_lines for tensor in trace.tensors)
    place, counts = np.full(n_lines, -1, np.int32), np.zeros(2, np.int64)
    for xcd in range(gpu.xcds):
        lines = Lines(
            place, np.full(capacity, -1, np.int64), np.empty(capacity + 1, np.int32), np.empty(capacity + 1, np.int32)
        )
        _link(lines)
        first = (xcd - gpu.dispatch_offset) % gpu.xcds
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
