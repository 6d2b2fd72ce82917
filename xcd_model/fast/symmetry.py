"""Exact replay by symmetry: one cache set of each class that sees the same stream up to names.

    set s  sees  A0 A1 B0 . C0 A0 A1 ...        rename A0 -> D0, A1 -> D1, ... : the same hits, misses and victims,
    set t  sees  D0 D1 E0 . F0 D0 D1 ...        so simulate s and count it twice

A tile (see `xcd_model.trace.tiles`) is touched whole, in one order, but for the L1 sets that have their part of it. If
every line belongs to one tile only, and two L2 sets get the lines of every tile in the same arrangement (as many, of
the same L1 sets, with the same dirty pieces, feeding Infinity Cache sets that are arranged alike; in a partitioned L2
with the same points of coherence and read by as many requests), then a renaming of lines carries the stream of one set
into that of the other, whatever the order of workgroups. Replacement does not look at names: the counts are equal.

Arrangements are compared through sums of 64-bit hashes, so classes are found without knowing the index function; two
different arrangements are taken for equal with a chance below 1e-12 a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from xcd_model.cache.locate import _coherence_point, _locate
from xcd_model.cache.packed import BY_TILE, NO_L1, Machine, Stream
from xcd_model.cache.words import MARK_BITS
from xcd_model.fast.l1_tiles import with_tiles
from xcd_model.splitmix import _mix
from xcd_model.trace.tiles import Tiles, find_tiles
from xcd_model.trace.trace import Trace

WORTHWHILE = 0.5  # classes a set, above which the plain replay is as good


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of L2 sets.

    Parameters
    ----------
    representative : (l2_sets,) bool
        The one set of each class that is simulated.
    set_weight : (l2_sets,) int64
        Sets that each representative stands for; 0 elsewhere.
    n_classes : int
    """

    representative: np.ndarray = field(repr=False)
    set_weight: np.ndarray = field(repr=False)
    n_classes: int


@njit(cache=True, nogil=True)
def _sign_groups(stream, machine, first, group_hash, group_set):
    """Sum, per Infinity Cache set (per L2 set without one), hashes of (tile, L1 set, rank in the L2 set, marks).

    Of a partitioned L2, of the point of coherence and read requests too.

    group_hash : (n_groups,) uint64, zeros; group_set : (n_groups,) int64, -1: L2 set that feeds the group.
    Returns False if a group is fed by two L2 sets.
    """
    rank = np.zeros(machine.l2.n_sets, np.int64)
    for tile in range(first.size):
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        tile_hash = _mix(tile)
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            line = base + stream.rel[entry]
            index = _locate(line, machine.l2)[0]
            group = _locate(line, machine.mall)[0] if machine.mall.n_sets else index
            if group_set[group] >= 0 and group_set[group] != index:
                return False
            group_set[group] = index
            part = _mix(tile_hash ^ np.uint64(_locate(line, machine.l1)[0])) if machine.l1.n_sets else tile_hash
            if machine.coherence_mask:
                part = _mix(
                    part
                    ^ np.uint64((np.int64(stream.pieces[entry]) << 1) | _coherence_point(line, machine.coherence_mask))
                )
            group_hash[group] += _mix(part ^ np.uint64((rank[index] << MARK_BITS) | np.int64(stream.marks[entry])))
            rank[index] += 1
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            rank[_locate(base + stream.rel[entry], machine.l2)[0]] = 0
    return True


@njit(cache=True, nogil=True)
def _sign_sets(group_hash, group_set, signature):
    """Add the scrambled hash of every group to the signature of the L2 set that feeds it."""
    for group in range(group_hash.size):
        if group_set[group] >= 0:
            signature[group_set[group]] += _mix(group_hash[group])


@njit(cache=True, nogil=True)
def _select(stream, machine, first, representative, rel_start, rel, marks, pieces):
    """Write the lines of each tile that lie in representative sets; with empty ``rel`` only count them."""
    at = 0
    for tile in range(first.size):
        rel_start[tile] = at
        base, template = stream.base[first[tile]], stream.template[first[tile]]
        for entry in range(stream.rel_start[template], stream.rel_start[template + 1]):
            line = base + stream.rel[entry]
            if representative[_locate(line, machine.l2)[0]]:
                if rel.size:
                    rel[at] = line
                    marks[at] = stream.marks[entry]
                    pieces[at] = stream.pieces[entry]
                at += 1
    rel_start[first.size] = at


def find_classes(stream: Stream, machine: Machine, tiles: Tiles) -> Classes | None:
    """Group the L2 sets that see the same stream up to names; None where that is not exact or not worth it."""
    if not tiles.disjoint:
        return None
    n_groups = machine.mall.n_sets or machine.l2.n_sets
    group_hash, group_set = np.zeros(n_groups, np.uint64), np.full(n_groups, -1, np.int64)
    if not _sign_groups(stream, machine, tiles.first, group_hash, group_set):
        return None
    signature = np.zeros(machine.l2.n_sets, np.uint64)
    _sign_sets(group_hash, group_set, signature)
    _, representative, counts = np.unique(signature, return_index=True, return_counts=True)
    if representative.size > WORTHWHILE * machine.l2.n_sets:
        return None
    weight = np.zeros(machine.l2.n_sets, np.int64)
    weight[representative] = counts
    return Classes(weight > 0, weight, representative.size)


def select_lines(stream: Stream, machine: Machine, tiles: Tiles, classes: Classes) -> Stream:
    """Stream of the representative sets: every tile becomes a template of absolute lines."""
    rel_start = np.zeros(tiles.first.size + 1, np.int64)
    none = np.zeros(0, np.int32)
    _select(stream, machine, tiles.first, classes.representative, rel_start, none, *np.zeros((2, 0), np.uint8))
    n_entries = max(1, int(rel_start[-1]))
    rel, (marks, pieces) = np.zeros(n_entries, np.int32), np.zeros((2, n_entries), np.uint8)
    _select(stream, machine, tiles.first, classes.representative, rel_start, rel, marks, pieces)
    template = stream.template[tiles.first]
    return stream._replace(
        base=np.zeros_like(stream.base),
        template=tiles.of,
        rel_start=rel_start,
        rel=rel,
        marks=marks,
        pieces=pieces,
        is_write=stream.is_write[template],
        requests=stream.requests[template],
        waves=stream.waves[template],
        tensor=stream.tensor[template],
        set_weight=classes.set_weight,
    )


def shorten(
    trace: Trace, stream: Stream, machine: Machine, *, by_tile: bool, by_class: bool
) -> tuple[Stream, Machine, float]:
    """Make a replay shorter without changing a count: L1s by tile, and one L2 set of each class.

    Parameters
    ----------
    trace, stream, machine
        A trace, whole, and the arrays made of it.
    by_tile, by_class : bool
        Whether there are L1s to replay by tile, and whether one set may stand for its class.

    Returns
    -------
    stream, machine
        The same ones where a line belongs to two tiles.
    simulated_fraction : float
        L2 sets looked up one by one, of all.
    """
    tiles = find_tiles(trace) if by_tile or by_class else None
    if tiles is None:
        return stream, machine, 1.0
    if tiles.reads_disjoint:
        stream = with_tiles(stream, tiles, machine)
        machine = machine._replace(l1_mode=BY_TILE if by_tile else NO_L1)
    classes = find_classes(stream, machine, tiles) if by_class else None
    if classes is None:
        return stream, machine, 1.0
    return select_lines(stream, machine, tiles, classes), machine, classes.n_classes / machine.l2.n_sets
