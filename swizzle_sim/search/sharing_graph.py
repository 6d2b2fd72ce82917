"""The sharing graph of a trace (which workgroups touch which blocks of lines), and its partitions over XCDs.

A *block* is a largest set of lines that the same workgroups touch: for GEMM a panel of A, a panel of B, a tile of C.
It is a hypergraph: workgroups are its vertices, blocks its edges, the lines of a block the weight of an edge. The
compulsory misses of an assignment to XCDs are its connectivity:

    misses = sum over blocks b of lines(b) * |{part(w) : w touches b}|

Partitions are improved by annealed swaps of two workgroups, which keep the sizes of the parts; the effect of a swap
follows from the number of workgroups of each part that touch a block.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from xcd_model import Plan
from xcd_model.compiled.numba_setup import njit
from xcd_model.compiled.splitmix import _mix
from xcd_model.errors import SearchError
from xcd_model.trace.tiles import find_tiles

SWAPS_A_WORKGROUP = 4000
MOST_SWAPS = 8_000_000
COOLING = 6.0  # the temperature ends at exp(-6) of its first value


@dataclass(frozen=True, eq=False)
class SharingGraph:
    """Blocks of lines and the workgroups that touch them."""

    # (n_workgroups + 1,) int64: workgroup ``w`` touches blocks ``block[start[w] : start[w + 1]]``
    start: np.ndarray = field(repr=False)
    block: np.ndarray = field(repr=False)  # (n_incidences,) int32
    lines: np.ndarray = field(repr=False)  # (n_blocks,) int64: lines of each block

    @property
    def n_workgroups(self) -> int:
        """Workgroups."""
        return self.start.size - 1

    @property
    def n_blocks(self) -> int:
        """Blocks."""
        return self.lines.size

    def misses(self, part: np.ndarray, n_parts: int) -> int:
        """Lines times parts that touch them: the compulsory misses of an assignment, such as to XCDs."""
        touched = np.zeros((self.n_blocks, n_parts), bool)
        touched[self.block, np.repeat(part, np.diff(self.start))] = True
        return int(self.lines @ touched.sum(axis=1))


class _Touches(NamedTuple):
    """Units (lines or tiles) that each instruction touches: ``base[i] + rel[rel_start[t] : rel_start[t + 1]]``.

    ``t`` is ``template[i]``, and ``owner[i]`` is the instruction's workgroup.
    """

    owner: np.ndarray
    base: np.ndarray
    template: np.ndarray
    rel_start: np.ndarray
    rel: np.ndarray


@njit(cache=True, nogil=True)
def _sign(touches, signature, latest):
    """Sum, per unit, the scrambled ids of the workgroups that touch it.

    signature : (n_units,) uint64, zeros; latest : (n_units,) int32, -1: the last workgroup that was counted
    """
    owner, base, template, rel_start, rel = touches
    for i in range(owner.size):
        for entry in range(rel_start[template[i]], rel_start[template[i] + 1]):
            unit = base[i] + rel[entry]
            if latest[unit] != owner[i]:
                latest[unit] = owner[i]
                signature[unit] += _mix(owner[i])


@njit(cache=True, nogil=True)
def _number(signature, latest, weight, block_of, table, lines):
    """Give each unit that was touched the number of its signature, by open addressing; return how many there are.

    weight : (n_units,) int64, or (1,) for all; table : (2^k,) int32, -1s, over twice the units; lines : output
    """
    mask, n = np.uint64(table.size - 1), 0
    known = np.empty(lines.size, np.uint64)
    for u in range(signature.size):
        if latest[u] < 0:
            block_of[u] = -1
            continue
        place = (signature[u] ^ (signature[u] >> np.uint64(32))) & mask
        while table[place] >= 0 and known[table[place]] != signature[u]:
            place = (place + np.uint64(1)) & mask
        if table[place] < 0:
            table[place], known[n] = n, signature[u]
            n += 1
        block_of[u] = table[place]
        lines[table[place]] += weight[u if weight.size > 1 else 0]
    return n


@njit(cache=True, nogil=True)
def _incidences(touches, block_of, latest, count, block):
    """Write the blocks of each workgroup; with empty ``block`` only ``count`` them.

    latest : (n_blocks,) int32, -1; count : (n_workgroups,) int64, zeros
    """
    owner, base, template, rel_start, rel = touches
    n = 0
    for i in range(owner.size):
        for entry in range(rel_start[template[i]], rel_start[template[i] + 1]):
            found = block_of[base[i] + rel[entry]]
            if latest[found] != owner[i]:
                latest[found] = owner[i]
                if block.size:
                    block[n] = found
                count[owner[i]] += 1
                n += 1


def sharing_graph(plan: Plan) -> SharingGraph:
    """Sharing graph of a plan's trace.

    Lines, or the tiles of a trace whose tiles share no line, are grouped by a 64-bit hash of the set of workgroups that
    touch them; two different sets are taken for equal with a chance below 1e-6 for a trace of a million blocks.
    """
    trace = plan.trace
    owner = np.repeat(np.arange(trace.n_workgroups, dtype=np.int64), np.diff(trace.start))
    tiles = find_tiles(trace)
    if tiles is not None and tiles.disjoint:  # each instruction touches one tile
        one = np.zeros(1, trace.rel.dtype)
        touches = _Touches(owner, tiles.of, np.zeros(owner.size, np.int32), np.array([0, 1]), one)
        n_units, weight = tiles.first.size, trace.entries_per_template[trace.template[tiles.first]]
    else:
        touches = _Touches(owner, trace.base, trace.template, trace.rel_start, trace.rel)
        n_units, weight = trace.highest_line, np.ones(1, np.int64)
    signature, latest = np.zeros(n_units, np.uint64), np.full(n_units, -1, np.int32)
    _sign(touches, signature, latest)
    touched = int((latest >= 0).sum())
    table, lines = np.full(1 << (2 * touched).bit_length(), -1, np.int32), np.zeros(touched, np.int64)
    block_of = np.empty(n_units, np.int32)
    n_blocks = _number(signature, latest, weight, block_of, table, lines)
    count, none = np.zeros(trace.n_workgroups, np.int64), np.zeros(0, np.int32)
    _incidences(touches, block_of, np.full(n_blocks, -1, np.int32), count, none)
    block = np.zeros(int(count.sum()), np.int32)
    _incidences(touches, block_of, np.full(n_blocks, -1, np.int32), np.zeros_like(count), block)
    return SharingGraph(np.concatenate([[0], np.cumsum(count)]), block, lines[:n_blocks].copy())


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
    """Improve a partition, the part of each workgroup, by swaps, which keep the sizes of its parts; it gets no worse.

    ``heat`` [lines] is the first temperature of the annealing, by default a third of the mean weight of the blocks that
    workgroups share; 0 only descends.

    Source: swaps as in Kernighan and Lin, Bell System Technical Journal 49, 1970; the cost is the connectivity of a
    hypergraph as in Catalyurek and Aykanat, IEEE TPDS 10(7), 1999.
    """
    part = np.array(part, np.int64)
    if part.shape != (graph.n_workgroups,) or (part.size and not 0 <= part.min() <= part.max() < n_parts):
        raise SearchError(f"a partition of {graph.n_workgroups} workgroups into {n_parts} parts has shape {part.shape}")
    if n_parts < 2 or part.size < 2:
        return part
    if heat is None:
        shared = np.bincount(graph.block, minlength=graph.n_blocks) > 1
        heat = float(graph.lines[shared].mean()) / 3 if shared.any() else 0.0
    swaps = swaps or min(SWAPS_A_WORKGROUP * part.size, MOST_SWAPS)
    count = np.zeros((graph.n_blocks, n_parts), np.int32)
    np.add.at(count, (graph.block, np.repeat(part, np.diff(graph.start))), 1)
    _anneal(graph.start, graph.block, graph.lines, count, part, swaps, heat, seed)
    return part


def subgraph(graph: SharingGraph, workgroups: np.ndarray) -> SharingGraph:
    """Sharing graph of some of the workgroups, in the order given, without blocks that none of them touches."""
    spans = [np.arange(graph.start[w], graph.start[w + 1]) for w in workgroups]
    block = graph.block[np.concatenate(spans)] if spans else graph.block[:0]
    blocks, renamed = np.unique(block, return_inverse=True)
    start = np.concatenate([[0], np.cumsum([span.size for span in spans])]).astype(np.int64)
    return SharingGraph(start, renamed.reshape(-1).astype(np.int32), graph.lines[blocks])


def in_waves(graph: SharingGraph, workgroups: np.ndarray, slots: int, *, seed: int = 0) -> np.ndarray:
    """Order the workgroups of one XCD so that those that share run in one wave, next to the most similar wave."""
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
