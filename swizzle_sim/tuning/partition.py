"""Partitions of the sharing graph into parts of given sizes, with few lines that several parts fetch.

Local search by annealed swaps: each swap keeps the sizes, and its effect follows from how many workgroups of each part
touch a block.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from swizzle_sim.tuning.sharing_graph import SharingGraph
from xcd_model.errors import SearchError

SWAPS_A_WORKGROUP = 4000
MOST_SWAPS = 8_000_000
COOLING = 6.0  # the temperature ends at exp(-6) of its first value


@njit(cache=True, nogil=True)
def _count(start, block, part, count):
    """Workgroups of each part that touch each block; ``count`` is (n_blocks, n_parts) int32, zeros."""
    for w in range(part.size):
        for i in range(start[w], start[w + 1]):
            count[block[i], part[w]] += 1


@njit(inline="always")
def _move(start, block, lines, count, w, here, there):
    """Move a workgroup to another part; return by how many lines the cost rises."""
    delta = np.int64(0)
    for i in range(start[w], start[w + 1]):
        b = block[i]
        count[b, here] -= 1
        if count[b, here] == 0:
            delta -= lines[b]
        if count[b, there] == 0:
            delta += lines[b]
        count[b, there] += 1
    return delta


@njit(cache=True, nogil=True)
def _anneal(start, block, lines, count, part, swaps, heat, seed):
    """Swap workgroups of different parts; return the lines saved at the best moment, which ``part`` is left at.

    count : (n_blocks, n_parts) int32; part : (n_workgroups,) int64, changed; heat : first temperature [lines]
    """
    np.random.seed(seed)
    n = part.size
    cost = least = np.int64(0)
    best = part.copy()
    for step in range(swaps):
        u, v = np.random.randint(n), np.random.randint(n)
        p, q = part[u], part[v]
        if p == q:
            continue
        delta = _move(start, block, lines, count, u, p, q) + _move(start, block, lines, count, v, q, p)
        warmth = heat * np.exp(-COOLING * step / swaps)
        if delta <= 0 or (warmth > 0 and np.random.random() < np.exp(-delta / warmth)):
            part[u], part[v] = q, p
            cost += delta
            if cost < least:
                least = cost
                best[:] = part
        else:
            _move(start, block, lines, count, u, q, p)
            _move(start, block, lines, count, v, p, q)
    part[:] = best
    return -least


def improve_partition(
    graph: SharingGraph, part: np.ndarray, n_parts: int, *, seed: int = 0, heat: float | None = None, swaps: int = 0
) -> np.ndarray:
    """Make a partition cheaper by swaps; the sizes of its parts stay.

    Parameters
    ----------
    graph : SharingGraph
    part : (n_workgroups,) int array
        Part of each workgroup, 0 to ``n_parts`` - 1.
    n_parts : int
    seed : int
    heat : float [lines], optional
        Rise in cost that is accepted at first now and then; by default a third of the mean weight of the blocks that
        workgroups share. 0 only descends.
    swaps : int
        Tried; by default `SWAPS_A_WORKGROUP` a workgroup, up to `MOST_SWAPS`.

    Returns
    -------
    part : (n_workgroups,) int64 array
        Never dearer than what was given.

    Raises
    ------
    SearchError
        If ``part`` does not fit the graph.

    Source: swaps as in Kernighan and Lin, Bell System Technical Journal 49, 1970; the cost is the connectivity of a
    hypergraph as in Catalyurek and Aykanat, IEEE TPDS 10(7), 1999.
    """
    part = np.array(part, np.int64)
    if part.shape != (graph.n_workgroups,) or (part.size and not 0 <= part.min() <= part.max() < n_parts):
        raise SearchError(f"a partition of {graph.n_workgroups} workgroups into {n_parts} parts has shape {part.shape}")
    if n_parts < 2 or part.size < 2:
        return part
    count = np.zeros((graph.n_blocks, n_parts), np.int32)
    _count(graph.start, graph.block, part, count)
    if heat is None:
        shared = np.bincount(graph.block, minlength=graph.n_blocks) > 1
        heat = float(graph.lines[shared].mean()) / 3 if shared.any() else 0.0
    swaps = swaps or min(SWAPS_A_WORKGROUP * part.size, MOST_SWAPS)
    _anneal(graph.start, graph.block, graph.lines, count, part, swaps, heat, seed)
    return part


def subgraph(graph: SharingGraph, workgroups: np.ndarray) -> SharingGraph:
    """Sharing graph of some of the workgroups, in the order given; blocks that none of them touches are left out."""
    spans = [np.arange(graph.start[w], graph.start[w + 1]) for w in workgroups]
    block = graph.block[np.concatenate(spans)] if spans else graph.block[:0]
    kept, renamed = np.unique(block, return_inverse=True)
    start = np.concatenate([[0], np.cumsum([span.size for span in spans])]).astype(np.int64)
    return SharingGraph(start, renamed.reshape(-1).astype(np.int32), graph.lines[kept])


def in_waves(graph: SharingGraph, workgroups: np.ndarray, slots: int, *, seed: int = 0) -> np.ndarray:
    """Order the workgroups of one XCD: those that share run in one wave, and each wave follows the one most like it.

    Parameters
    ----------
    graph : SharingGraph
    workgroups : (n,) int array
        Of one XCD, in the order in which they run now.
    slots : int
        Workgroups that run at once.

    Returns
    -------
    workgroups : (n,) int64 array
    """
    n_waves = -(-workgroups.size // slots)
    if n_waves < 2:
        return workgroups.astype(np.int64)
    inner = subgraph(graph, workgroups)
    wave = improve_partition(inner, np.arange(workgroups.size) // slots, n_waves, seed=seed)
    touched = np.zeros((n_waves, inner.n_blocks), bool)
    touched[np.repeat(wave, np.diff(inner.start)), inner.block] = True
    full = [w for w in range(n_waves) if (wave == w).sum() == slots]
    order = [full[0]] if full else [0]
    while len(order) < n_waves:
        left = [w for w in range(n_waves) if w not in order]
        left = [w for w in left if (wave == w).sum() == slots] or left  # a wave that is not full comes last
        shared = [int(inner.lines[touched[order[-1]] & touched[w]].sum()) for w in left]
        order.append(left[int(np.argmax(shared))])
    return np.concatenate([workgroups[wave == w] for w in order]).astype(np.int64)
