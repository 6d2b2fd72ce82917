"""The vector L1 of each CU: what it holds does not reach the L2.

Reads only: stores go past it (write-through, no allocation; taken neither to update nor to drop a line). A launch
starts with empty L1s. Two ways to replay it give the same counts:

*By tile*, where no line belongs to two tiles that are read. A tile is touched whole and in one order, so all its lines
of one set have the same stack distance: the lines of that set touched since, and its own. Each L1 keeps the distance
of the tiles it holds. Touching a tile adds its lines to the distances that were less than its own.

*By line* for all other traces: each set is a ring of ways, from the newest to the oldest, so that a miss turns the ring
by one. Searching 64 ways is a loop that LLVM vectorises; moving them up on each miss would not be one.

Source: Mattson et al., IBM Systems Journal 9(2), 1970 (LRU is a stack algorithm: a line is held while its stack
distance is at most the number of ways).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.cache.lru import FILL_BITS
from xcd_model.trace.packed import BY_LINE, BY_TILE, Machine

PIECES = np.uint32(1 << FILL_BITS)


class L1(NamedTuple):
    """State of all L1s of a GPU, numbered ``xcd * cus + cu``.

    By tile: how many are ``held`` (n,), which ``tiles`` (n, depth), and for each set ``distance`` (n, depth, sets),
    over the number of ways where it holds no line, and ``brought_by`` (n, depth, sets), an instruction.
    By line, each (n, sets * ways): ``words``, ``(tag + 1) << 2 | there`` with the pieces that the L2 gave, ``filler``,
    the instruction that brought the line in, and in the ring of each set the ``older`` and ``newer`` neighbour of each
    way; ``newest`` is (n, sets).
    """

    held: np.ndarray
    tiles: np.ndarray
    distance: np.ndarray
    brought_by: np.ndarray
    words: np.ndarray
    filler: np.ndarray
    older: np.ndarray
    newer: np.ndarray
    newest: np.ndarray


def empty_l1(machine: Machine) -> L1:
    """Empty L1s."""
    n, sets, lines = machine.xcds * machine.cus, machine.l1.n_sets, machine.l1.n_sets * machine.l1_ways
    depth = lines + 2 if machine.l1_mode == BY_TILE else 0  # each tile held has a line, but for the latest
    ways = np.arange(machine.l1_ways, dtype=np.int16)
    n_words = lines if machine.l1_mode == BY_LINE else 0
    return L1(
        held=np.zeros(n, np.int64),
        tiles=np.zeros((n, depth), np.int32),
        distance=np.zeros((n, depth, sets), np.int32),
        brought_by=np.zeros((n, depth, sets), np.int32),
        words=np.zeros((n, n_words), np.uint32),
        filler=np.zeros((n, n_words), np.int32),
        older=np.broadcast_to(np.tile((ways + 1) % machine.l1_ways, sets), (n, lines))[:, :n_words].copy(),
        newer=np.broadcast_to(np.tile((ways - 1) % machine.l1_ways, sets), (n, lines))[:, :n_words].copy(),
        newest=np.zeros((n, sets), np.int64),
    )


@njit(inline="always")
def _drop(tiles, distance, brought_by, count, mine, ways):
    """Drop the tiles of which no set holds a line, but for ``mine``; return (how many stay, where mine is)."""
    place = np.int64(0)
    while place < count:
        held = place == mine
        for at in range(distance.shape[1]):
            held |= distance[place, at] <= ways
        if held:
            place += 1
            continue
        count -= 1
        tiles[place] = tiles[count]
        for at in range(distance.shape[1]):
            distance[place, at], brought_by[place, at] = distance[count, at], brought_by[count, at]
        mine = place if mine == count else mine
    return count, mine


@njit(inline="always")
def _read_tile(tile_lines, ways, l1, unit, tile, instruction):
    """Touch a tile in the L1 of ``unit``; return (its place there, the sets where it is missing, as bits)."""
    tiles, distance, brought_by = l1.tiles[unit], l1.distance[unit], l1.brought_by[unit]
    n_sets = tile_lines.shape[1]
    count, mine, missing = l1.held[unit], np.int64(0), np.int64(0)
    while mine < count and tiles[mine] != tile:
        mine += 1
    if mine == count:
        tiles[mine] = tile
        for at in range(n_sets):
            distance[mine, at] = ways + 1
        count += 1
    for at in range(n_sets):
        lines, since = tile_lines[tile, at], distance[mine, at]
        if lines:
            if since > ways:
                missing |= np.int64(1) << at
                brought_by[mine, at] = instruction
            for other in range(count):
                distance[other, at] += lines * np.int64(distance[other, at] < since)
            distance[mine, at] = lines  # over the ways if the tile does not even hold itself
    l1.held[unit], mine = _drop(tiles, distance, brought_by, count, mine, ways)
    return mine, missing


@njit(inline="always")
def _read_line(words, filler, older, newer, newest, at, ways, word, instruction):
    """Touch a line in set ``at``; return the instruction that brought it in, or -1 for a miss (then this one did).

    ``word`` has the pieces that are wanted; a line that is held without one of them is a miss that drives none out.
    """
    row, top = at * ways, newest[at]
    if words[row + top] == word:
        return np.int64(filler[row + top])
    way = np.int64(-1)
    for place in range(ways):
        way = max(way, place if (words[row + place] ^ word) < PIECES else np.int64(-1))
    oldest = np.int64(newer[row + top])
    by = np.int64(-1)
    if way < 0:
        way = oldest
        words[row + way] = word
        filler[row + way] = instruction
    else:
        held = words[row + way]
        if held | word == held:
            by = np.int64(filler[row + way])
        else:
            words[row + way] = held | word
            filler[row + way] = instruction
        if way not in (oldest, top):
            before, after = newer[row + way], older[row + way]
            older[row + before], newer[row + after] = after, before
            older[row + oldest], newer[row + way] = way, oldest
            older[row + way], newer[row + top] = top, way
    newest[at] = way
    return by
