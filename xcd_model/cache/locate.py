"""Where a line lies: its set, its tag, and in a partitioned L2 its point of coherence.

    2^n sets:      set = (line mod 2^n) ^ hash[tag],   tag = line >> n,    line = tag << n | (set ^ hash[tag])
    any number S:  set = line mod S,                   tag = line // S,    line = tag * S + set
    point of coherence = parity(line & mask)

`xcd_model.spec.index` says why one XOR with the tag covers every linear hash of address bits. The rule stands here in
two compiled forms: for one line, and for a chunk of lines, whose loop LLVM vectorises.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xcd_model.cache.words import MARK_BITS
from xcd_model.spec.gpu import Cache
from xcd_model.spec.index import Index, hash_table


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


@njit(inline="always")
def _locate_all(line, n, index, at, word):
    """`_locate` of ``n`` lines, unsigned and one step a loop; ``word`` is the tag as a word without marks.

    line : (n,) int64; at, word : (n,) uint64, output
    """
    one, mark_bits = np.uint64(1), np.uint64(MARK_BITS)
    n_sets, mask = np.uint64(index.n_sets), np.uint64(np.int64(index.mask))  # 2^64 - 1 where there is no mask
    shift, table = np.uint64(max(0, index.shift)), index.hash
    if index.mask < 0:
        for i in range(np.uint64(n)):
            at[i] = np.uint64(line[i]) % n_sets
            word[i] = ((np.uint64(line[i]) // n_sets) + one) << mark_bits
        return
    for i in range(np.uint64(n)):
        at[i] = np.uint64(line[i]) & mask
        word[i] = ((np.uint64(line[i]) >> shift) + one) << mark_bits
    if table.size:
        for i in range(np.uint64(n)):
            at[i] ^= np.uint64(table[np.uint64(line[i]) >> shift])


@njit(inline="always")
def _coherence_point(line, mask):
    """L2 partition that is the point of coherence of a line: the parity of its masked bits."""
    bits = np.uint64(line & mask)
    for shift in (32, 16, 8, 4, 2, 1):
        bits ^= bits >> np.uint64(shift)
    return np.int64(bits & np.uint64(1))
