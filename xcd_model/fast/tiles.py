"""Tiles: the distinct (base, template) pairs of a trace, and whether they share lines.

Where every line belongs to one tile only, a tile is touched whole or not at all. An LRU cache then treats its lines of
one set alike, which is what `xcd_model.cache.l1` and `xcd_model.fast.symmetry` build on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from xcd_model.cache.lru import _locate
from xcd_model.spec.index import Index
from xcd_model.trace.packed import Stream

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
    apart : bool
        No line belongs to two tiles.
    reads_apart : bool
        No line belongs to two tiles that are read.
    """

    of: np.ndarray = field(repr=False)
    first: np.ndarray = field(repr=False)
    apart: bool
    reads_apart: bool


@njit(cache=True, nogil=True)
def _are_apart(stream, first, reads_only, seen):
    """Mark the lines of each tile in ``seen``; False if a line belongs to two tiles."""
    for tile in range(first.size):
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        if reads_only and stream.is_write[template]:
            continue
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            line = base + stream.rel[entry]
            if seen[line]:
                return False
            seen[line] = True
    return True


@njit(cache=True, nogil=True)
def _by_set(stream, first, index, lines, requests):
    """Count lines and L2 read requests of each tile by set of ``index``: both (n_tiles, n_sets), zeros."""
    for tile in range(first.size):
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            at = _locate(base + stream.rel[entry], index)[0]
            lines[tile, at] += 1
            requests[tile, at] += stream.pieces[entry]


def find_tiles(stream: Stream, highest_line: int) -> Tiles | None:
    """Tiles of a trace; None where there are too many lines to look at."""
    key = stream.base * stream.requests.size + stream.template
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    lines = np.diff(stream.rel_start)[stream.template[first]]
    if lines.sum() > MAX_TILE_LINES or highest_line >= 2**31:
        return None
    first = first.astype(np.int64)
    apart = _are_apart(stream, first, False, np.zeros(highest_line + 1, np.bool_))
    reads_apart = apart or _are_apart(stream, first, True, np.zeros(highest_line + 1, np.bool_))
    return Tiles(of.reshape(-1).astype(np.int32), first, apart, reads_apart)


def with_tiles(stream: Stream, tiles: Tiles, l1: Index) -> Stream:
    """Add the tiles to a stream: which each instruction touches, and what they ask of each L1 set."""
    shape = (tiles.first.size, l1.n_sets)
    lines, requests = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    if l1.n_sets:
        _by_set(stream, tiles.first, l1, lines, requests)
    sets = ((lines > 0) << np.arange(l1.n_sets)).sum(axis=1).astype(np.int64)
    return stream._replace(tile=tiles.of, tile_lines=lines, tile_requests=requests, tile_sets=sets)
