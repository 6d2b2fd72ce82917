"""The vector L1 by tile, where no line belongs to two tiles that are read: the counts of `xcd_model.cache.l1`.

A tile is touched whole and in one order, so all its lines of one set have one stack distance:

    distance of tile T in set s  =  distinct lines of s touched since T was, and T's own
    T is there in set s          <=>  distance <= ways
    touching T: its distance becomes its lines in s; the distances that were less than T's grow by as much

Source: Mattson et al., IBM Systems Journal 9(2), 1970 (LRU is a stack algorithm: a line is there while its stack
distance is at most the number of ways).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.cache.locate import _locate
from xcd_model.cache.packed import BY_TILE, Machine, Stream
from xcd_model.trace.tiles import Tiles


class TileL1(NamedTuple):
    """State of all L1s of a GPU by tile, numbered ``xcd * cus + cu``.

    Parameters
    ----------
    resident : (n,) int64
        Tiles of each L1.
    tiles : (n, depth) int32
        Their numbers.
    distance : (n, depth, sets) int32
        Over the number of ways where the L1 has no line of the tile in that set.
    filler : (n, depth, sets) int32
        Instruction that filled those lines.
    """

    resident: np.ndarray
    tiles: np.ndarray
    distance: np.ndarray
    filler: np.ndarray


def empty_tile_l1(machine: Machine) -> TileL1:
    """Empty L1s."""
    n, sets = machine.xcds * machine.cus, machine.l1.n_sets
    depth = sets * machine.l1_ways + 2 if machine.l1_mode == BY_TILE else 0  # each tile has a line, but for the latest
    return TileL1(
        resident=np.zeros(n, np.int64),
        tiles=np.zeros((n, depth), np.int32),
        distance=np.zeros((n, depth, sets), np.int32),
        filler=np.zeros((n, depth, sets), np.int32),
    )


@njit(cache=True, nogil=True)
def _by_set(stream, first, index, lines, requests):
    """Count lines and L2 read requests of each tile by set of ``index``: both (n_tiles, n_sets), zeros."""
    for tile in range(first.size):
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            at = _locate(base + stream.rel[entry], index)[0]
            lines[tile, at] += 1
            requests[tile, at] += stream.pieces[entry]


def with_tiles(stream: Stream, tiles: Tiles, machine: Machine) -> Stream:
    """Add the tiles to a stream: which one each instruction touches, and their lines and requests by L1 set."""
    n_sets = machine.l1.n_sets
    lines, requests = np.zeros((2, tiles.first.size, n_sets), np.int32)
    if n_sets:
        _by_set(stream, tiles.first, machine.l1, lines, requests)
    sets = ((lines > 0) << np.arange(n_sets)).sum(axis=1).astype(np.int64)
    return stream._replace(tile=tiles.of, tile_lines=lines, tile_requests=requests, tile_sets=sets)


@njit(inline="always")
def _drop(tiles, distance, filler, count, mine, ways):
    """Drop the tiles of which no set has a line, but for ``mine``; return (how many stay, where mine is)."""
    place = np.int64(0)
    while place < count:
        stays = place == mine
        for at in range(distance.shape[1]):
            stays |= distance[place, at] <= ways
        if stays:
            place += 1
            continue
        count -= 1
        tiles[place] = tiles[count]
        for at in range(distance.shape[1]):
            distance[place, at], filler[place, at] = distance[count, at], filler[count, at]
        mine = place if mine == count else mine
    return count, mine


@njit(inline="always")
def _touch_tile(tile_lines, ways, l1, unit, tile, instruction):
    """Touch a tile in the L1 of ``unit``; return (its place there, the sets where it is missing, as bits)."""
    tiles, distance, filler = l1.tiles[unit], l1.distance[unit], l1.filler[unit]
    n_sets = tile_lines.shape[1]
    count, mine, missing = l1.resident[unit], np.int64(0), np.int64(0)
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
                filler[mine, at] = instruction
            for other in range(count):
                distance[other, at] += lines * np.int64(distance[other, at] < since)
            distance[mine, at] = lines  # over the ways if the L1 has no room for the tile itself
    l1.resident[unit], mine = _drop(tiles, distance, filler, count, mine, ways)
    return mine, missing


@njit(inline="always")
def _read_tile(stream, machine, l1, unit, instruction, arrival):
    """Read a tile through its L1; return (sets that miss, as bits; L2 requests; lines that miss; latest arrival).

    arrival : (n_instructions,) int64 [fs], when the CU had what each instruction read; empty in lockstep
    """
    tile, tile_lines, tile_requests = stream.tile[instruction], stream.tile_lines, stream.tile_requests
    place, missing = _touch_tile(tile_lines, machine.l1_ways, l1, unit, tile, instruction)
    requests = lines = wait = np.int64(0)
    for at in range(machine.l1.n_sets):
        is_missing = (missing >> at) & 1
        requests += is_missing * tile_requests[tile, at]
        lines += is_missing * tile_lines[tile, at]
    if arrival.size:
        filler = l1.filler[unit]
        for at in range(machine.l1.n_sets):
            if tile_lines[tile, at] and not (missing >> at) & 1:
                wait = max(wait, arrival[filler[place, at]])
    return missing, requests, lines, wait
