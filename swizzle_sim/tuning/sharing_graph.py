"""The sharing graph of a trace: which workgroups touch which blocks of lines.

A *block* is a largest set of lines that the same workgroups touch: for GEMM a panel of A, a panel of B, a tile of C.
It is a hypergraph: workgroups are its vertices, blocks its edges, the lines of a block the weight of an edge. The
compulsory misses of an assignment to XCDs are its connectivity: lines times XCDs, summed over blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from xcd_model import Plan
from xcd_model.splitmix import _mix
from xcd_model.trace.tiles import find_tiles


@dataclass(frozen=True, eq=False)
class SharingGraph:
    """Blocks of lines and the workgroups that touch them.

    Parameters
    ----------
    start : (n_workgroups + 1,) int64
        Workgroup ``w`` touches blocks ``block[start[w] : start[w + 1]]``.
    block : (n_incidences,) int32
    lines : (n_blocks,) int64
        Lines of each block.
    """

    start: np.ndarray = field(repr=False)
    block: np.ndarray = field(repr=False)
    lines: np.ndarray = field(repr=False)

    @property
    def n_workgroups(self) -> int:
        """Workgroups."""
        return self.start.size - 1

    @property
    def n_blocks(self) -> int:
        """Blocks."""
        return self.lines.size

    def misses(self, part: np.ndarray, n_parts: int) -> int:
        """Lines times parts that touch them: the compulsory misses of an assignment.

        Parameters
        ----------
        part : (n_workgroups,) int array
            Such as the XCD of each workgroup.
        n_parts : int
        """
        return int(_misses(self.start, self.block, self.lines, part, np.zeros((self.n_blocks, n_parts), np.bool_)))


@njit(cache=True, nogil=True)
def _misses(start, block, lines, part, seen):
    """Sum the lines of each (block, part) once; ``seen`` is (n_blocks, n_parts) bool, False."""
    total = 0
    for w in range(start.size - 1):
        for i in range(start[w], start[w + 1]):
            if not seen[block[i], part[w]]:
                seen[block[i], part[w]] = True
                total += lines[block[i]]
    return total


@njit(cache=True, nogil=True)
def _sign(owner, start, unit, signature, latest):
    """Sum, per unit, the scrambled ids of the workgroups that touch it.

    owner : (n_instructions,) int64, workgroup; start, unit : instruction i touches unit[start[i] : start[i + 1]]
    signature : (n_units,) uint64, zeros; latest : (n_units,) int32, -1: the last workgroup that was counted
    """
    for i in range(owner.size):
        for entry in range(start[i], start[i + 1]):
            if latest[unit[entry]] != owner[i]:
                latest[unit[entry]] = owner[i]
                signature[unit[entry]] += _mix(owner[i])


@njit(cache=True, nogil=True)
def _sign_lines(owner, base, template, rel_start, rel, signature, latest):
    """As `_sign`, with lines for units."""
    for i in range(owner.size):
        for entry in range(rel_start[template[i]], rel_start[template[i] + 1]):
            line = base[i] + rel[entry]
            if latest[line] != owner[i]:
                latest[line] = owner[i]
                signature[line] += _mix(owner[i])


@njit(cache=True, nogil=True)
def _number(signature, latest, weight, block_of, table, lines):
    """Give each unit that was touched the number of its signature, by open addressing; return how many there are.

    weight : (n_units,) int64, or (1,) for all; table : (2^k,) int32, -1s, over twice the units; lines : output
    """
    mask, n = np.uint64(table.size - 1), 0
    kept = np.empty(lines.size, np.uint64)
    for u in range(signature.size):
        if latest[u] < 0:
            block_of[u] = -1
            continue
        place = (signature[u] ^ (signature[u] >> np.uint64(32))) & mask
        while table[place] >= 0 and kept[table[place]] != signature[u]:
            place = (place + np.uint64(1)) & mask
        if table[place] < 0:
            table[place], kept[n] = n, signature[u]
            n += 1
        block_of[u] = table[place]
        lines[table[place]] += weight[u if weight.size > 1 else 0]
    return n


@njit(cache=True, nogil=True)
def _incidences(owner, start, unit, block_of, latest, count, block):
    """Write the blocks of each workgroup; with empty ``block`` only ``count`` them.

    latest : (n_blocks,) int32, -1; count : (n_workgroups,) int64, zeros
    """
    n = 0
    for i in range(owner.size):
        for entry in range(start[i], start[i + 1]):
            found = block_of[unit[entry]]
            if latest[found] != owner[i]:
                latest[found] = owner[i]
                if block.size:
                    block[n] = found
                count[owner[i]] += 1
                n += 1


@njit(cache=True, nogil=True)
def _incidences_lines(owner, base, template, rel_start, rel, block_of, latest, count, block):
    """As `_incidences`, with lines for units."""
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

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    SharingGraph

    Notes
    -----
    Lines, or the tiles of a trace whose tiles share no line, are grouped by a 64-bit hash of the set of workgroups that
    touch them; two different sets are taken for equal with a chance below 1e-6 for a trace of a million blocks.
    """
    trace = plan.trace
    owner = np.repeat(np.arange(trace.n_workgroups, dtype=np.int64), np.diff(trace.start))
    tiles = find_tiles(trace)
    if tiles is not None and tiles.disjoint:
        units: tuple[np.ndarray, ...] = (np.arange(owner.size + 1), tiles.of)
        sign: Any = _sign
        list_blocks: Any = _incidences
        n_units = tiles.first.size
        weight = trace.entries_per_template[trace.template[tiles.first]]
    else:
        units = (trace.base, trace.template, trace.rel_start, trace.rel)
        sign, list_blocks, n_units, weight = _sign_lines, _incidences_lines, trace.highest_line, np.ones(1, np.int64)
    signature, latest = np.zeros(n_units, np.uint64), np.full(n_units, -1, np.int32)
    sign(owner, *units, signature, latest)
    touched = int((latest >= 0).sum())
    table, lines = np.full(1 << (2 * touched).bit_length(), -1, np.int32), np.zeros(touched, np.int64)
    block_of = np.empty(n_units, np.int32)
    n_blocks = _number(signature, latest, weight, block_of, table, lines)
    count, none = np.zeros(trace.n_workgroups, np.int64), np.zeros(0, np.int32)
    list_blocks(owner, *units, block_of, np.full(n_blocks, -1, np.int32), count, none)
    block = np.zeros(int(count.sum()), np.int32)
    list_blocks(owner, *units, block_of, np.full(n_blocks, -1, np.int32), np.zeros_like(count), block)
    return SharingGraph(np.concatenate([[0], np.cumsum(count)]), block, lines[:n_blocks].copy())
