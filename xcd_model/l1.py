"""The vector L1 of each CU: what it holds does not reach the L2.

Reads only: stores go past it (write-through, no allocation; taken neither to update nor to drop a line). A launch
starts with empty L1s. Two ways to replay it give the same counts:

*By tile*, where no line belongs to two tiles that are read. A tile is touched whole and in one order, so all its lines
of one set have the same stack distance: the lines of that set touched since, and its own. Each L1 keeps the distance
of the tiles it holds. Touching a tile adds its lines to the distances that were less than its own.

*By line* for all other traces: rows of words, most recent first.

Source: Mattson et al., IBM Systems Journal 9(2), 1970 (LRU is a stack algorithm: a line is held while its stack
distance is at most the number of ways).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .stream import BY_LINE, BY_TILE, Machine


class L1(NamedTuple):
    """State of all L1s of a GPU, numbered ``xcd * cus + cu``.

    By tile: ``count`` (n,) tiles held, which ``tiles`` (n, depth), and for each set ``distance`` (n, depth, sets),
    over the number of ways where it holds no line, and ``brought_by`` (n, depth, sets), an instruction.
    By line: ``words`` (n, sets * ways) and ``filler`` beside them.
    """

    count: np.ndarray
    tiles: np.ndarray
    distance: np.ndarray
    brought_by: np.ndarray
    words: np.ndarray
    filler: np.ndarray


def empty_l1(machine: Machine) -> L1:
    """Empty L1s."""
    n, sets, lines = machine.xcds * machine.cus, machine.l1.n_sets, machine.l1.n_sets * machine.l1_ways
    depth = lines + 2 if machine.l1_mode == BY_TILE else 0  # each tile held has a line, but for the latest
    n_words = lines if machine.l1_mode == BY_LINE else 0
    return L1(
        count=np.zeros(n, np.int64),
        tiles=np.zeros((n, depth), np.int32),
        distance=np.zeros((n, depth, sets), np.int32),
        brought_by=np.zeros((n, depth, sets), np.int32),
        words=np.zeros((n, n_words), np.uint32),
        filler=np.zeros((n, n_words), np.int32),
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
    count, mine, missing = l1.count[unit], np.int64(0), np.int64(0)
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
    l1.count[unit], mine = _drop(tiles, distance, brought_by, count, mine, ways)
    return mine, missing


@njit(inline="always")
def _read_line(words, filler, row, ways, word, instruction):
    """Touch a line in its row; return the instruction that brought it in, or -1 for a miss (then this one did)."""
    place = row
    while place < row + ways - 1 and words[place] != word:
        place += 1
    hit = words[place] == word
    by = filler[place] if hit else np.int32(instruction)
    for back in range(place - row):
        words[place - back] = words[place - back - 1]
        filler[place - back] = filler[place - back - 1]
    words[row] = word
    filler[row] = by
    return np.int64(by) if hit else np.int64(-1)
