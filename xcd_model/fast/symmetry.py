"""Exact replay by tiles and symmetry: one cache set of each class that sees the same stream up to names.

    set s  sees  A0 A1 B0 . C0 A0 A1 ...        rename A0 -> D0, A1 -> D1, ... : the same hits, misses and victims,
    set t  sees  D0 D1 E0 . F0 D0 D1 ...        so simulate s and count it twice

A tile (see `xcd_model.trace.tiles`) is touched whole, in one order, but for the L1 sets that have their part of it.
The lines of an L2 set are numbered as the tiles, taken in any one order, first have them. If two sets get the lines of
every tile in the same arrangement (lines of the same numbers, of the same L1 sets, with the same dirty pieces, feeding
Infinity Cache sets that are arranged alike; in a partitioned L2 with the same points of coherence and read by as many
requests), then the renaming of lines of one number carries the stream of one set into that of the other, whatever the
order of workgroups. Replacement does not look at names: the counts are equal. Where no line belongs to two tiles, a
line's rank in its tile does for its number.

Arrangements are compared through sums of 64-bit hashes, so classes are found without knowing the index function; two
different arrangements are taken for equal with a chance below 1e-12 a plan.

Tiles of one template whose lines lie alike in the sets of L1 and L2 share one template of the lines that are left.

Tiles shorten the vector L1 too, where those that are read have either the same lines, maybe in other sectors, or none
in common; the counts are those of `xcd_model.replay.through_l1`. Elsewhere the L1 is replayed line by line, so it needs
all lines and no L2 set can stand for another. All lines of a tile in one set have one stack distance:

    distance of tile T in set s  =  distinct lines of s touched since T was, and T's own
    T is there in set s          <=>  distance <= ways
    touching T: its distance becomes its lines in s; the distances that were less than T's grow by as much

Source: Mattson et al., IBM Systems Journal 9(2), 1970 (LRU is a stack algorithm: a line is there while its stack
distance is at most the number of ways).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from xcd_model.cache.locate import DIRTY_BITS, MARK_BITS, _coherence_point, _locate_inlined
from xcd_model.cache.packed import BY_LINE, BY_TILE, Machine, Stream
from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import inlined
from xcd_model.compiled.numba_setup import uncounted
from xcd_model.compiled.splitmix import _mix
from xcd_model.trace.tiles import Tiles, _mark, bits_of, find_tiles, numbered
from xcd_model.trace.trace import Trace


@by_reference
class TileL1(NamedTuple):
    """State of all L1s of a GPU by tile, numbered ``xcd * cus + cu``."""

    resident: np.ndarray  # (n,) int64: tiles of each L1
    tiles: np.ndarray  # (n, depth) int32: their numbers
    # (n, depth, sets) int32: over the number of ways where the L1 has no line of the tile in that set
    distance: np.ndarray
    filler: np.ndarray  # (n, depth, sets) int32: instruction that filled those lines


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


@uncounted()
def _number_blocks(stream, first, marked, block):
    """Number the tiles that are read; those of the same lines in the same order alike. False if others share a line.

    marked : `xcd_model.trace.tiles.bits_of` all lines;  block : (n_tiles,) int32, output
    """
    other = np.int64(-1)
    for tile in range(first.size):
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        if stream.is_write[template]:
            continue
        begin, end = stream.rel_start[template], stream.rel_start[template + 1]
        shift = back = np.int64(0)
        if other >= 0:
            before = stream.template[first[other]]
            shift, back = base - stream.base[first[other]], stream.rel_start[before] - begin
        if other < 0 or stream.rel[begin] + shift != stream.rel[begin + back]:
            other = tile
            for entry in range(begin, end):
                if _mark(marked, base + stream.rel[entry]):
                    return False
        elif stream.rel_start[before + 1] - stream.rel_start[before] != end - begin:
            return False
        else:
            for entry in range(begin, end):
                if stream.rel[entry] + shift != stream.rel[entry + back]:
                    return False
                if stream.marks[entry] >> DIRTY_BITS != stream.marks[entry + back] >> DIRTY_BITS:
                    return False
        block[tile] = other
    return True


def blocks_of(stream: Stream, tiles: Tiles, highest_line: int) -> np.ndarray | None:
    """(n_tiles,) int32: one number for the tiles that have the same lines.

    None where two tiles that are read share some of their lines, or one has more than 16 bits count.
    """
    if int(np.diff(stream.rel_start).max()) * int(stream.pieces.max()) > np.iinfo(np.int16).max:
        return None
    block = np.zeros(tiles.first.size, np.int32)
    return block if _number_blocks(stream, tiles.first, bits_of(highest_line + 1), block) else None


@inlined
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


@inlined
def _touch_tile(lines_by_set, ways, l1, unit, block, instruction):
    """Touch a tile, of the lines of ``block``, in the L1 ``unit``; return (its place, the sets that miss, as bits)."""
    tiles, distance, filler = l1.tiles[unit], l1.distance[unit], l1.filler[unit]
    n_sets = lines_by_set.size
    count, mine, missing = l1.resident[unit], np.int64(0), np.int64(0)
    while mine < count and tiles[mine] != block:
        mine += 1
    if mine == count:
        tiles[mine] = block
        for at in range(n_sets):
            distance[mine, at] = ways + 1
        count += 1
    for at in range(n_sets):
        lines, since = lines_by_set[at], distance[mine, at]
        if lines:
            if since > ways:
                missing |= np.int64(1) << at
                filler[mine, at] = instruction
            for other in range(count):
                distance[other, at] += lines * np.int64(distance[other, at] < since)
            distance[mine, at] = lines  # over the ways if the L1 has no room for the tile itself
    l1.resident[unit], mine = _drop(tiles, distance, filler, count, mine, ways)
    return mine, missing


@inlined
def _read_tile(stream, machine, l1, unit, instruction, arrival):
    """Read a tile through its L1; return (sets that miss, as bits, -1 for all; L2 requests; lines that miss; arrival).

    arrival : (n_instructions,) int64 [fs], when the CU had what each instruction read; empty in lockstep
    """
    template, block = stream.template[instruction], stream.block[instruction]
    tile_lines, tile_requests = stream.tile_lines[template], stream.tile_requests[template]
    place, missing = _touch_tile(tile_lines, machine.l1_ways, l1, unit, block, instruction)
    requests = lines = has = wait = np.int64(0)
    for at in range(machine.l1.n_sets):
        has += tile_lines[at]
        is_missing = (missing >> at) & 1
        requests += is_missing * tile_requests[at]
        lines += is_missing * tile_lines[at]
    if arrival.size:
        filler = l1.filler[unit]
        for at in range(machine.l1.n_sets):
            if tile_lines[at] and not (missing >> at) & 1:
                wait = max(wait, arrival[filler[place, at]])
    return np.int64(-1) if lines == has else missing, requests, lines, wait


WORTHWHILE = 0.5  # classes a set, above which the plain replay is as good


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of L2 sets."""

    representative: np.ndarray = field(repr=False)  # (l2_sets,) bool: the one set of each class that is simulated
    # (l2_sets,) int64: sets that each representative stands for; 0 elsewhere
    set_weight: np.ndarray = field(repr=False)
    n_classes: int


@uncounted()
def _sign_groups(stream, machine, first, number, in_set, group_hash, group_set):
    """Sum, per Infinity Cache set (per L2 set without one), hashes of (tile, L1 set, rank in the L2 set, marks).

    Where tiles share lines, of a line's number in its L2 set; of a partitioned L2, of the point of coherence and read
    requests too.

    number     : (highest line + 1,) zeros; empty where tiles share no line
    in_set     : (2, l2_sets) int64, zeros: lines of the tile, and numbered ones, of each L2 set
    group_hash : (n_groups,) uint64, zeros; group_set : (n_groups,) int64, -1: L2 set that feeds the group.
    Returns False if a group is fed by two L2 sets.
    """
    rank, numbered = in_set[0], in_set[1]
    for tile in range(first.size):
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        tile_hash = _mix(tile)
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            line = base + stream.rel[entry]
            index = _locate_inlined(line, machine.l2)[0]
            group = _locate_inlined(line, machine.mall)[0] if machine.mall.n_sets else index
            if group_set[group] >= 0 and group_set[group] != index:
                return False
            group_set[group] = index
            part = _mix(tile_hash ^ np.uint64(_locate_inlined(line, machine.l1)[0])) if machine.l1.n_sets else tile_hash
            if number.size:
                if not number[line]:
                    numbered[index] += 1
                    number[line] = numbered[index]
                part = _mix(part ^ np.uint64(number[line]))
            if machine.coherence_mask:
                part = _mix(
                    part
                    ^ np.uint64((np.int64(stream.pieces[entry]) << 1) | _coherence_point(line, machine.coherence_mask))
                )
            group_hash[group] += _mix(part ^ np.uint64((rank[index] << MARK_BITS) | np.int64(stream.marks[entry])))
            rank[index] += 1
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            rank[_locate_inlined(base + stream.rel[entry], machine.l2)[0]] = 0
    return True


@uncounted()
def _sign_sets(group_hash, group_set, signature):
    """Add the scrambled hash of every group to the signature of the L2 set that feeds it."""
    for group in range(group_hash.size):
        if group_set[group] >= 0:
            signature[group_set[group]] += _mix(group_hash[group])


@uncounted()
def _sign_shapes(stream, machine, first, chosen, signature):
    """Sum hashes of what lies in which L1 set, and of the entries whose L2 sets are ``chosen``, for each tile."""
    l1 = machine.l1
    for tile in range(first.size):
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        shape = _mix(_mix(template) ^ np.uint64(base % l1.n_sets if l1.n_sets else 0))
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            line = base + stream.rel[entry]
            if l1.hash.size:  # else the base says where all of its lines lie
                shape += _mix(entry * l1.n_sets + _locate_inlined(line, l1)[0])
            if chosen[_locate_inlined(line, machine.l2)[0]]:
                shape += _mix(~entry)
        signature[tile] = shape


@uncounted()
def _select(stream, machine, first, chosen, rel_start, rel, marks, pieces):
    """Write the entries of each tile whose L2 sets are ``chosen``; with empty ``rel`` only count them."""
    at = 0
    for tile in range(first.size):
        rel_start[tile] = at
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            if chosen[_locate_inlined(base + stream.rel[entry], machine.l2)[0]]:
                if rel.size:
                    rel[at] = stream.rel[entry]
                    marks[at] = stream.marks[entry]
                    pieces[at] = stream.pieces[entry]
                at += 1
    rel_start[first.size] = at


@uncounted()
def _by_set(stream, first, index, lines, requests):
    """Count lines and L2 read requests of each tile by set of ``index``: both (n_tiles, n_sets), zeros."""
    for tile in range(first.size):
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            at = _locate_inlined(base + stream.rel[entry], index)[0]
            lines[tile, at] += 1
            requests[tile, at] += stream.pieces[entry]


def find_classes(stream: Stream, machine: Machine, tiles: Tiles, highest_line: int) -> Classes | None:
    """Group the L2 sets that see the same stream up to names; None where that is not exact or not worth it."""
    n_groups = machine.mall.n_sets or machine.l2.n_sets
    group_hash, group_set = np.zeros(n_groups, np.uint64), np.full(n_groups, -1, np.int64)
    most = np.uint16 if highest_line // machine.l2.n_sets < np.iinfo(np.uint16).max else np.int32  # lines of a set
    number = np.zeros(0 if tiles.disjoint else highest_line + 1, most)
    in_set = np.zeros((2, machine.l2.n_sets), np.int64)
    if not _sign_groups(stream, machine, tiles.first, number, in_set, group_hash, group_set):
        return None
    signature = np.zeros(machine.l2.n_sets, np.uint64)
    _sign_sets(group_hash, group_set, signature)
    _, representative, counts = np.unique(signature, return_index=True, return_counts=True)
    if representative.size > WORTHWHILE * machine.l2.n_sets:
        return None
    weight = np.zeros(machine.l2.n_sets, np.int64)
    weight[representative] = counts
    return Classes(weight > 0, weight, representative.size)


def with_shapes(stream: Stream, machine: Machine, tiles: Tiles, block: np.ndarray | None, chosen: np.ndarray) -> Stream:
    """Stream of the ``chosen`` L2 sets, whose templates know how many of their lines lie in each L1 set.

    Tiles of one template that lie alike in the sets become one template of those lines: two that do not are taken for
    alike with a chance below 1e-6 for a million tiles.
    """
    signature = np.empty(tiles.first.size, np.uint64)
    _sign_shapes(stream, machine, tiles.first, chosen, signature)
    shape, first = numbered(signature)
    first = tiles.first[first]
    rel_start, none = np.zeros(first.size + 1, np.int64), np.zeros(0, np.int32)
    _select(stream, machine, first, chosen, rel_start, none, *np.zeros((2, 0), np.uint8))
    n_entries = max(1, int(rel_start[-1]))
    rel, (marks, pieces) = np.zeros(n_entries, np.int32), np.zeros((2, n_entries), np.uint8)
    _select(stream, machine, first, chosen, rel_start, rel, marks, pieces)
    if block is not None:
        lines, requests = np.zeros((2, first.size, machine.l1.n_sets), np.int16)
        if machine.l1.n_sets:
            _by_set(stream, first, machine.l1, lines, requests)
        stream = stream._replace(block=block[tiles.of], tile_lines=lines, tile_requests=requests)
    template = stream.template[first]
    return stream._replace(
        template=shape[tiles.of],
        rel_start=rel_start,
        rel=rel,
        marks=marks,
        pieces=pieces,
        is_write=stream.is_write[template],
        requests=stream.requests[template],
        waves=stream.waves[template],
        passes=stream.passes[template],
        tensor=stream.tensor[template],
    )


def shorten(
    trace: Trace, stream: Stream, machine: Machine, *, by_tile: bool, by_class: bool
) -> tuple[Stream, Machine, float]:
    """Make a replay shorter without changing a count: L1s by tile, and one L2 set of each class."""
    tiles = find_tiles(trace) if by_tile or by_class else None
    if tiles is None:
        return stream, machine, 1.0
    block = blocks_of(stream, tiles, trace.highest_line) if by_tile else None
    if block is not None:
        machine = machine._replace(l1_mode=BY_TILE)
    by_class &= machine.l1_mode != BY_LINE
    classes = find_classes(stream, machine, tiles, trace.highest_line) if by_class else None
    if classes is None and block is None:
        return stream, machine, 1.0
    if classes is None:
        return with_shapes(stream, machine, tiles, block, np.ones(machine.l2.n_sets, np.bool_)), machine, 1.0
    stream = with_shapes(stream, machine, tiles, block, classes.representative)
    return stream._replace(set_weight=classes.set_weight), machine, classes.n_classes / machine.l2.n_sets
