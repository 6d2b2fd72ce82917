"""Exact replay by symmetry: one cache set of each class that sees the same stream up to names.

A tile (see `xcd_model.fast.tiles`) is touched whole, in one order, but for the L1 sets that hold their part of it. If
every line belongs to one tile only, and two L2 sets hold the lines of every tile in the same arrangement (as many, of
the same L1 sets, with the same dirty pieces, feeding Infinity Cache sets that are arranged alike; where an L2 has two
sides, at home on the same ones and read by as many requests), then a renaming of lines carries the stream of one set
into that of the other, whatever the order of workgroups. LRU does not look at names: the counts are equal.

Arrangements are compared through sums of 64-bit hashes, so classes are found without knowing the index function; two
different arrangements are taken for equal with a chance below 1e-12 a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from xcd_model.cache.lru import MARK_BITS, _locate
from xcd_model.fast.tiles import Tiles
from xcd_model.nvidia.l2_partitions import _home
from xcd_model.splitmix import _mix
from xcd_model.trace.packed import Machine, Stream

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

    Where an L2 has two sides, of home and read requests too.

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
            if machine.home_mask:
                part = _mix(part ^ np.uint64((np.int64(stream.pieces[entry]) << 1) | _home(line, machine.home_mask)))
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


def find_classes(stream: Stream, machine: Machine, tiles: Tiles | None) -> Classes | None:
    """Group the L2 sets that see the same stream up to names; None where that is not exact or not worth it."""
    if tiles is None or not tiles.apart:
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
