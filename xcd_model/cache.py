"""Set-associative LRU caches, as arrays of 32-bit words.

A set is a row of ``ways`` words, most recent first. A word is ``(tag + 1) << 4 | dirty``, where the four low bits are
the dirty request-sized pieces of the line and 0 is an empty way.

Source: Mattson et al., IBM Systems Journal 9(2), 1970 (LRU is a stack algorithm: the position of a hit in a
recency-ordered row is its stack distance, so moving to the front is all the bookkeeping there is).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .errors import TraceError
from .gpu import Cache

DIRTY_BITS = 4
MAX_TAG = (1 << (32 - DIRTY_BITS)) - 2


@njit(inline="always")
def _touch(words, row, ways, word):
    """Look ``word`` up in the set that starts at ``words[row]``, and make it the most recent.

    Returns 1, which is no line's word, for a hit; else the word that fell out of the last way (0 if that was empty).
    On a hit the line keeps its dirty pieces and adds the new ones.
    """
    carry = word
    for way in range(row, row + ways):
        held = words[way]
        words[way] = np.uint32(carry)
        if (held ^ word) < 16:
            words[row] = np.uint32(word | (held & 15))
            return np.int64(1)
        carry = held
    return np.int64(carry)


class Index(NamedTuple):
    """How a line finds its set, as the compiled code reads it.

    ``mask`` and ``shift`` do the work of modulo and division where the number of sets is a power of two, else -1.
    With ``fold_bits`` over 0 the channel is an XOR fold of the address above ``interleave_bits`` [bits of a line].
    """

    n_sets: int
    mask: int
    shift: int
    fold_bits: int
    interleave_bits: int
    channel_shift: int


@njit(cache=True)
def _locate(line, index):
    """(set, tag) of a line; together they determine the line."""
    if index.fold_bits:
        channels = (1 << index.fold_bits) - 1
        within = (1 << index.interleave_bits) - 1
        upper = line >> index.interleave_bits
        channel = upper & channels
        upper >>= index.fold_bits
        rest = (upper << index.interleave_bits) | (line & within)
        while upper:
            channel ^= upper & channels
            upper >>= index.fold_bits
        in_channel = rest & ((1 << index.channel_shift) - 1)
        return (channel << index.channel_shift) | in_channel, rest >> index.channel_shift
    if index.mask >= 0:
        return line & index.mask, line >> index.shift
    return line % index.n_sets, line // index.n_sets


@njit(cache=True)
def _popcount4(dirty):
    """Dirty pieces of a word's four low bits."""
    return (dirty & 1) + ((dirty >> 1) & 1) + ((dirty >> 2) & 1) + ((dirty >> 3) & 1)


@njit(cache=True, nogil=True)
def _replay_lru(lines, index, ways, hit):
    """Fill ``hit`` for one cold cache. Checks nothing: `replay_lru` has.

    lines : (n,) int64, cache lines in order of arrival
    hit   : (n,) bool, output
    """
    words = np.zeros(index.n_sets * ways, np.uint32)
    for i in range(lines.size):
        at, tag = _locate(lines[i], index)
        hit[i] = _touch(words, at * ways, ways, (tag + 1) << 4) == 1


def index_of(cache: Cache | None) -> Index:
    """Index function of a cache; no sets at all where there is none."""
    if cache is None:
        return Index(0, 0, 0, 0, 0, 0)
    n_sets = cache.sets
    power = n_sets & (n_sets - 1) == 0
    mask, shift = (n_sets - 1, n_sets.bit_length() - 1) if power else (-1, -1)
    if cache.index_channels is None or cache.index_interleave_bytes is None:
        return Index(n_sets, mask, shift, 0, 0, 0)
    fold_bits = cache.index_channels.bit_length() - 1
    interleave_bits = (cache.index_interleave_bytes // cache.line_bytes).bit_length() - 1
    return Index(n_sets, mask, shift, fold_bits, interleave_bits, (n_sets >> fold_bits).bit_length() - 1)


def check_tags(highest_line: int, cache: Cache, name: str) -> None:
    """Refuse a trace whose tags would not fit a word.

    Raises
    ------
    TraceError
        If ``highest_line // cache.sets`` is over 2**28 - 2.
    """
    if highest_line // cache.sets > MAX_TAG:
        limit = MAX_TAG * cache.sets * cache.line_bytes
        raise TraceError(f"line {highest_line} does not fit the tags of {name}: the model addresses {limit} B there")


def replay_lru(lines: np.ndarray, cache: Cache) -> np.ndarray:
    """Hit mask of a stream of cache lines sent through one cold LRU cache.

    Parameters
    ----------
    lines : (n,) int array
        Cache line of each request, in order of arrival, each >= 0.
    cache : Cache

    Returns
    -------
    hit : (n,) bool array

    Raises
    ------
    TraceError
        If ``lines`` is not one-dimensional, not integer, negative somewhere, or over the tag width.

    Source: Mattson et al., IBM Systems Journal 9(2), 1970.
    """
    lines = np.asarray(lines)
    if lines.ndim != 1 or not np.issubdtype(lines.dtype, np.integer):
        raise TraceError(f"lines has shape {lines.shape} and type {lines.dtype}: one dimension of integers")
    if lines.size and lines.min() < 0:
        raise TraceError(f"lines[{int(np.argmin(lines))}] = {lines.min()}: a cache line is at least 0")
    check_tags(int(lines.max()) if lines.size else 0, cache, "this cache")
    hit = np.empty(lines.size, bool)
    _replay_lru(lines.astype(np.int64), index_of(cache), cache.ways, hit)
    return hit
