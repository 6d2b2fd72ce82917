"""The one place that imports `xcd_model.fast`, with what the replays use where that folder is missing.

    _touch, _prefetch                               an LRU row of up to 16 ways as one vector; else `cache.replacement`
    _touch_whole                                    the same of a word that the row has as it is or not at all
    _way_of                                         a line among many ways, 64 at a time; else one by one
    empty_tile_l1, _read_tile                       the L1 by tile; else every L1 by line
    shorten                                         one L2 set of each class of equal ones; else all sets

Deleting the folder changes no count and no time (tests/unit/test_plain_model.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xcd_model.cache import replacement
from xcd_model.cache.packed import Machine, Stream
from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import inlined, inlined_twin
from xcd_model.compiled.numba_setup import njit
from xcd_model.trace.trace import Trace

_touch_plain = inlined_twin(replacement._touch)


@by_reference
class _NoTiles(NamedTuple):
    """State of L1s by tile where there is none."""

    resident: np.ndarray


def _no_tiles(machine: Machine) -> _NoTiles:
    return _NoTiles(np.zeros(0, np.int64))


@njit(inline="always")
def _read_no_tile(stream, machine, l1, unit, instruction, arrival):
    """Never run, since no replay is by tile; it gives the compiler its types."""
    return np.int64(-1), np.int64(0), np.int64(0), np.int64(0)


@inlined
def _way_of_plain(words, row, ways, word, within):
    """Way of the set at ``words[row]`` whose word differs from ``word`` by less than ``within``, or -1."""
    way = np.int64(-1)
    for place in range(ways):
        way = max(way, place if (words[row + place] ^ word) < within else np.int64(-1))
    return way


@njit(inline="always")
def _prefetch_nothing(words, at):
    pass


def _whole(
    trace: Trace, stream: Stream, machine: Machine, *, by_tile: bool, by_class: bool
) -> tuple[Stream, Machine, float]:
    return stream, machine, 1.0


try:
    from xcd_model.fast import lru_simd, symmetry
except ModuleNotFoundError as missing:
    if missing.name != "xcd_model.fast":  # the folder is there and broken: not a reason to be slow in silence
        raise
    _touch: Any = _touch_plain
    _touch_whole: Any = _touch_plain
    _way_of: Any = _way_of_plain
    _prefetch: Any = _prefetch_nothing
    empty_tile_l1: Any = _no_tiles
    _read_tile: Any = _read_no_tile
    shorten: Any = _whole
else:
    _touch_row, _touch_row_whole, WAYS = lru_simd._touch_row, lru_simd._touch_row_whole, lru_simd.WAYS
    _lanes_of, _lowest_bit, LANES = lru_simd._lanes_of, lru_simd._lowest_bit, lru_simd.LANES

    @inlined
    def _touch_vector(words, filler, row, ways, word, by):
        """`_touch`, by the vector of a row where that has the ways."""
        if ways <= WAYS:
            return _touch_row(words, filler, row, word, np.int64(1) << (ways - 1), by)
        return _touch_plain(words, filler, row, ways, word, by)

    @inlined
    def _touch_whole_vector(words, filler, row, ways, word, by):
        """`_touch_vector` of a word that the row has as it is or not at all."""
        if ways <= WAYS:
            return _touch_row_whole(words, filler, row, word, np.int64(1) << (ways - 1), by)
        return _touch_plain(words, filler, row, ways, word, by)

    @inlined
    def _way_of_vector(words, row, ways, word, within):
        """`_way_of_plain`, by vectors; behind the last set there is a vector of slack."""
        for place in range(0, ways, LANES):
            found = _lanes_of(words, row + place, np.int64(word), np.int64(within))
            way = place + _lowest_bit(found)
            if found and way < ways:
                return way
        return np.int64(-1)

    by_vector = lru_simd.POLICY == replacement.POLICY
    _touch = _touch_vector if by_vector else _touch_plain
    _touch_whole = _touch_whole_vector if by_vector else _touch_plain
    _way_of = _way_of_vector
    _prefetch = lru_simd._prefetch
    empty_tile_l1, _read_tile = symmetry.empty_tile_l1, symmetry._read_tile
    shorten = symmetry.shorten
