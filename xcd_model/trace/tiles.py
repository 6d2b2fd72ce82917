"""Tiles of a trace, the distinct pairs of a base and a template; and how lines are marked and equal things numbered.

Where every line belongs to one tile only, a tile is touched whole or not at all, and a cache treats its lines of one
set alike: `xcd_model.fast` and the sharing graph build on that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from xcd_model.compiled.numba_inline import inlined
from xcd_model.compiled.numba_setup import uncounted
from xcd_model.compiled.splitmix import _mix
from xcd_model.trace.trace import Trace

MAX_TILE_LINES = 1 << 26  # above this, looking at every line costs more than it saves
FEW = 1 << 10  # a sixteenth of the numbers that the first table has room for
_KEPT: WeakKeyDictionary[Trace, Tiles | None] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles of a trace."""

    of: np.ndarray = field(repr=False)  # (n_instructions,) int32: tile of each instruction
    first: np.ndarray = field(repr=False)  # (n_tiles,) int32: the first instruction that touches each tile
    disjoint: bool  # no line belongs to two tiles


def room(n: int) -> int:
    """Places of a hash table for ``n`` entries: a power of two, at most half of it full."""
    return 1 << int(2 * n - 1).bit_length()


@uncounted()
def _number(hashes, table, of, first):
    """`numbered`, into ``of`` and ``first``; ``table`` is (n,) int32, -1s. Returns how many numbers there are.

    -1 where they are more than ``first`` has room for.
    """
    mask, count = np.uint64(table.size - 1), 0
    for i in range(hashes.size):
        at = hashes[i] & mask
        while table[at] >= 0 and hashes[first[table[at]]] != hashes[i]:
            at = (at + np.uint64(1)) & mask
        if table[at] < 0:
            if count == first.size:
                return -1
            table[at], first[count] = count, i
            count += 1
        of[i] = table[at]
    return count


def numbered(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number what has one of (n,) uint64 hashes, whose low bits are scrambled, alike.

    Returns (n,) int32, the number of each, in order of appearance, and (n_numbers,) int32, the first that has each.
    """
    of, most, count = np.empty(hashes.size, np.int32), FEW, -1
    while count < 0:  # as a rule far fewer numbers than hashes: a small table stays in the host's caches
        most = min(most * 16, hashes.size)
        first = np.empty(most, np.int32)
        count = _number(hashes, np.full(room(most), -1, np.int32), of, first)
    return of, first[:count].copy()


def bits_of(n_lines: int) -> np.ndarray:
    """A bit for each line, none marked, as (n,) uint64."""
    return np.zeros(n_lines // 64 + 1, np.uint64)


@inlined
def _mark(marked, line):
    """Mark a line; whether it was."""
    word, bit = np.uint64(line) >> np.uint64(6), np.uint64(1) << (np.uint64(line) & np.uint64(63))
    was = (marked[word] & bit) != 0
    marked[word] |= bit
    return was


@uncounted()
def _are_disjoint(base, template, rel_start, rel, first, seen):
    """Mark the lines of each tile in ``seen``, see `bits_of`; False if a line belongs to two tiles."""
    for tile in range(first.size):
        line, of = base[first[tile]], template[first[tile]]
        for entry in range(rel_start[of], rel_start[of + 1]):
            if _mark(seen, line + rel[entry]):
                return False
    return True


@uncounted()
def _mark_lines(base, template, rel_start, rel, marked, most):
    """Mark the lines of instructions; returns how many were not marked, and stops where they are more than ``most``."""
    count = np.int64(0)
    for i in range(base.size):
        for entry in range(rel_start[template[i]], rel_start[template[i] + 1]):
            count += not _mark(marked, base[i] + rel[entry])
        if count > most:
            break
    return count


@uncounted()
def _scramble(base, template, n_templates, scrambled):
    """Scramble each (base, template) into 64 bits, no two alike."""
    for i in range(base.size):
        scrambled[i] = _mix(base[i] * n_templates + template[i])


def find_tiles(trace: Trace) -> Tiles | None:
    """Tiles of a trace, by the first line of each: who looks at them in turn goes through memory once.

    None where there are too many lines to look at. They are kept as long as the trace, which is prepared for one GPU
    after another where constants are drawn.
    """
    if trace not in _KEPT:
        _KEPT[trace] = _tiles_of(trace)
    return _KEPT[trace]


def touch_more(trace: Trace, first: np.ndarray, most: int) -> bool:
    """Whether instructions ``first`` touch more than ``most`` distinct lines."""
    marked, template = bits_of(trace.highest_line + 1), trace.template[first]
    return bool(_mark_lines(trace.base[first], template, trace.rel_start, trace.rel, marked, most) > most)


def tile_numbers(trace: Trace) -> np.ndarray:
    """Tile of each instruction, (n_instructions,) int32, also where there are too many lines to look at."""
    tiles = find_tiles(trace)
    return tiles.of if tiles else _numbered_tiles(trace)[0]


def _numbered_tiles(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    scrambled = np.empty(trace.n_instructions, np.uint64)
    _scramble(trace.base, trace.template, trace.is_write.size, scrambled)
    return numbered(scrambled)


def _tiles_of(trace: Trace) -> Tiles | None:
    of, first = _numbered_tiles(trace)
    lines, highest = trace.entries_per_template[trace.template[first]], trace.highest_line
    if lines.sum() > MAX_TILE_LINES or highest >= 2**31:
        return None
    first_line = trace.base[first] + trace.rel[trace.rel_start[:-1]][trace.template[first]]
    by_line = np.argsort(first_line, kind="stable")
    number = np.empty(first.size, np.int32)
    number[by_line] = np.arange(first.size, dtype=np.int32)
    of, first = number[of], first[by_line]
    arrays = (trace.base, trace.template, trace.rel_start, trace.rel)
    disjoint = bool(_are_disjoint(*arrays, first, bits_of(highest + 1)))
    return Tiles(of, first, disjoint)
