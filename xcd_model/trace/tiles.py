"""Tiles: the distinct (base, template) pairs of a trace, and whether they share lines.

Where every line belongs to one tile only, a tile is touched whole or not at all, and a cache treats its lines of one
set alike. `xcd_model.fast` and the sharing graph of the search build on that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from xcd_model.trace.trace import Trace

MAX_TILE_LINES = 1 << 26  # above this, looking at every line costs more than it saves


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles of a trace.

    Parameters
    ----------
    of : (n_instructions,) int32
        Tile of each instruction.
    first : (n_tiles,) int64
        An instruction that touches each tile.
    disjoint : bool
        No line belongs to two tiles.
    reads_disjoint : bool
        No line belongs to two tiles that are read.
    """

    of: np.ndarray = field(repr=False)
    first: np.ndarray = field(repr=False)
    disjoint: bool
    reads_disjoint: bool


@njit(cache=True, nogil=True)
def _are_disjoint(base, template, rel_start, rel, skip, first, seen):
    """Mark the lines of each tile in ``seen``; False if a line belongs to two tiles, templates to ``skip`` left out."""
    for tile in range(first.size):
        line, of = base[first[tile]], template[first[tile]]
        if skip[of]:
            continue
        for entry in range(rel_start[of], rel_start[of + 1]):
            if seen[line + rel[entry]]:
                return False
            seen[line + rel[entry]] = True
    return True


def find_tiles(trace: Trace) -> Tiles | None:
    """Tiles of a trace; None where there are too many lines to look at."""
    key = trace.base * trace.is_write.size + trace.template
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    lines, highest = trace.entries_per_template[trace.template[first]], trace.highest_line
    if lines.sum() > MAX_TILE_LINES or highest >= 2**31:
        return None
    first = first.astype(np.int64)

    def disjoint(skip: np.ndarray) -> bool:
        arrays = (trace.base, trace.template, trace.rel_start, trace.rel)
        return bool(_are_disjoint(*arrays, skip, first, np.zeros(highest + 1, np.bool_)))

    everything = disjoint(np.zeros_like(trace.is_write))
    return Tiles(of.reshape(-1).astype(np.int32), first, everything, everything or disjoint(trace.is_write))
