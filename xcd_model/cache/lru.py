"""Set-associative LRU caches, as arrays of 32-bit words.

A set is a row of ``ways`` words, most recent first. A word is ``(tag + 1) << 6 | there << 4 | dirty``, where the four
low bits are the dirty request-sized pieces of the line, the two above them its pieces that are there (of a cache that
fetches half lines; else the lower stands for the line), and 0 is an empty way. Dirty pieces and those that a touch
wants are its ``marks``.

Source: Mattson et al., IBM Systems Journal 9(2), 1970 (LRU is a stack algorithm: the position of a hit in a
recency-ordered row is its stack distance, so moving to the front is all the bookkeeping there is).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xcd_model.errors import TraceError
from xcd_model.spec.gpu import Cache
from xcd_model.spec.index import Index, hash_table

DIRTY_BITS = 4
FILL_BITS = 2  # most pieces in which a line is fetched
MARK_BITS = DIRTY_BITS + FILL_BITS
THERE = ((1 << FILL_BITS) - 1) << DIRTY_BITS  # bits of a word that say which pieces of the line are there
MARKS = (1 << MARK_BITS) - 1
HIT, PARTLY = 1, 16  # no line's word: what a look-up returns where the line was held, with all that is wanted or not


@njit(inline="always")
def _touch(words, row, ways, word):
    """Look ``word`` up in the set that starts at ``words[row]``, and make it the most recent.

    Returns `HIT`, or `PARTLY` where the line is held without a piece that is wanted; else the word that fell out of the
    last way (0 if that was empty). A line that is held keeps its marks and adds the new ones.
    """
    carry = word
    for way in range(row, row + ways):
        held = words[way]
        words[way] = np.uint32(carry)
        if (held ^ word) <= MARKS:
            words[row] = np.uint32(word | (held & MARKS))
            return np.int64(HIT if word & ~np.int64(held) & THERE == 0 else PARTLY)
        carry = held
    return np.int64(carry)


@njit(inline="always")
def _locate(line, index):
    """(set, tag) of a line; together they determine the line, see `_line_of`."""
    if index.mask < 0:
        return line % index.n_sets, line // index.n_sets
    tag = line >> index.shift
    if index.hash.size:
        return (line & index.mask) ^ index.hash[tag], tag
    return line & index.mask, tag


@njit(inline="always")
def _line_of(at, tag, index):
    """Line of a set and a tag."""
    if index.mask < 0:
        return tag * index.n_sets + at
    if index.hash.size:
        at ^= index.hash[tag]
    return (tag << index.shift) | at


@njit(cache=True)
def _popcount4(dirty):
    """Dirty pieces of a word's four low bits."""
    return (dirty & 1) + ((dirty >> 1) & 1) + ((dirty >> 2) & 1) + ((dirty >> 3) & 1)


@njit(inline="always")
def _fetched(gone, marks):
    """Pieces of a line that a miss fetches, given what the look-up returned and the marks of the touch."""
    wanted = np.int64(marks) >> DIRTY_BITS
    return np.int64(1) if gone == PARTLY else (wanted & 1) + (wanted >> 1)


@njit(cache=True, nogil=True)
def _replay_lru(lines, index, ways, hit):
    """Fill ``hit`` for one cold cache. Checks nothing: `replay_lru` has.

    lines : (n,) int64, cache lines in order of arrival
    hit   : (n,) bool, output
    """
    words = np.zeros(index.n_sets * ways, np.uint32)
    for i in range(lines.size):
        at, tag = _locate(lines[i], index)
        hit[i] = _touch(words, at * ways, ways, (tag + 1) << MARK_BITS) == HIT


def index_of(cache: Cache | None, highest_line: int) -> Index:
    """Index function of a cache for lines up to ``highest_line``; no sets at all where there is no cache."""
    none = np.zeros(0, np.int64)
    if cache is None:
        return Index(0, 0, 0, none)
    n_sets = cache.sets
    if n_sets & (n_sets - 1):
        return Index(n_sets, -1, -1, none)
    shift = n_sets.bit_length() - 1
    rows = cache.line_rows()
    return Index(n_sets, n_sets - 1, shift, hash_table(rows, (highest_line >> shift) + 1) if rows else none)


def check_tags(highest_line: int, cache: Cache, name: str, *, mark_bits: int = MARK_BITS) -> None:
    """Refuse a trace whose tags would not fit a word.

    Raises
    ------
    TraceError
        If ``highest_line // cache.sets`` is over 2**(32 - mark_bits) - 2.
    """
    max_tag = (1 << (32 - mark_bits)) - 2
    if highest_line // cache.sets > max_tag:
        limit = max_tag * cache.sets * cache.line_bytes
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
    highest = int(lines.max()) if lines.size else 0
    check_tags(highest, cache, "this cache")
    hit = np.empty(lines.size, bool)
    _replay_lru(lines.astype(np.int64), index_of(cache, highest), cache.ways, hit)
    return hit
