"""Least recently used: a set is a row of words, most recent first.

    hit at way p:   words 0 .. p-1 move up one, the line goes to the front      (p is its stack distance)
    miss:           all words move up one, the last falls out: the victim

Source: Mattson et al., IBM Systems Journal 9(2), 1970 (LRU is a stack algorithm: the position of a hit in a
recency-ordered row is its stack distance, so moving to the front is all the bookkeeping there is).
"""

from __future__ import annotations

import numpy as np

from xcd_model.cache.locate import HIT, MARK_BITS, MARKS, PARTLY, VALID, _locate
from xcd_model.cache.packed import check_tags, index_of
from xcd_model.compiled.numba_setup import njit
from xcd_model.errors import TraceError
from xcd_model.spec.gpu import Cache

POLICY = "lru"


@njit(inline="always")
def _touch(words, filler, row, ways, word, by):
    """Look ``word`` up in the set that starts at ``words[row]``, and make it the most recent.

    Returns `HIT`, or `PARTLY` where the line is there without a piece that is wanted; else the victim: the word that
    fell out of the last way (0 if that was empty). A line that is there keeps its marks and adds the new ones.

    ``filler``, where it is not None, has the instruction that filled each line, and ``by`` fills what missed; then the
    filler of a line that hit is in the high 32 bits of what is returned.
    """
    place = row
    while place < row + ways - 1 and (words[place] ^ word) > MARKS:
        place += 1
    there = np.int64(words[place])
    hit = (there ^ word) <= MARKS
    found = np.int64(HIT) if word & ~there & VALID == 0 else np.int64(PARTLY)
    for back in range(place, row, -1):
        words[back] = words[back - 1]
    words[row] = np.uint32(word | (there & MARKS)) if hit else np.uint32(word)
    if filler is None:
        return found if hit else there
    filled_by = np.int64(filler[place])
    for back in range(place, row, -1):
        filler[back] = filler[back - 1]
    filler[row] = np.int32(filled_by) if hit and found == HIT else np.int32(by)
    return (found if hit else there) | (filled_by << 32)


@njit(cache=True, nogil=True)
def _replay_lru(lines, index, ways, hit):
    """Fill ``hit`` for one cold cache. Checks nothing: `replay_lru` has.

    lines : (n,) int64, cache lines in order of arrival
    hit   : (n,) bool, output
    """
    words = np.zeros(index.n_sets * ways, np.uint32)
    for i in range(lines.size):
        at, tag = _locate(lines[i], index)
        hit[i] = _touch(words, None, at * ways, ways, (tag + 1) << MARK_BITS, 0) == HIT


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
        raise TraceError(
            f"lines has shape {lines.shape} and type {lines.dtype}: pass one dimension of integers, the byte addresses "
            f"over {cache.line_bytes}"
        )
    if lines.size and lines.min() < 0:
        raise TraceError(f"lines[{int(np.argmin(lines))}] = {lines.min()}: a cache line is at least 0")
    highest = int(lines.max()) if lines.size else 0
    check_tags(highest, cache, "this cache")
    hit = np.empty(lines.size, bool)
    _replay_lru(lines.astype(np.int64), index_of(cache, highest), cache.ways, hit)
    return hit
