"""Where a line lies: its set, its tag, its 32-bit word, and in a partitioned L2 its point of coherence.

    2^n sets:      set = (line mod 2^n) ^ hash[tag],   tag = line >> n,    line = tag << n | (set ^ hash[tag])
    any number S:  set = line mod S,                   tag = line // S,    line = tag * S + set
    point of coherence = parity(line & mask)

`xcd_model.spec.caches` says why one XOR with the tag covers every linear hash of address bits. The rule stands here in
two compiled forms: for one line, and for a chunk of lines, whose loop LLVM vectorises.

A cache is an array of words; set ``s`` of ``w`` ways is the row of words from ``_spread(s) * w`` on, and a word is one
line:

    bit  31 ............ 6   5 4     3 2 1 0
         |   tag + 1     | valid  |  dirty  |        0 is an empty way

``dirty``: request-sized pieces of the line that were stored to. ``valid``: pieces that are there, of a cache that
fetches half lines; else the lower bit stands for the whole line. The dirty pieces and those that a touch wants are its
``marks``.
"""

from __future__ import annotations

import numpy as np

from xcd_model.compiled.numba_inline import inlined, inlined_twin
from xcd_model.compiled.numba_setup import njit

DIRTY_BITS = 4
FILL_BITS = 2  # most pieces in which a line is fetched
MARK_BITS = DIRTY_BITS + FILL_BITS
DIRTY = (1 << DIRTY_BITS) - 1
VALID = ((1 << FILL_BITS) - 1) << DIRTY_BITS
WHOLE = 1 << DIRTY_BITS  # marks of a clean line that is fetched whole
MARKS = (1 << MARK_BITS) - 1
WORD = (1 << 32) - 1
HOST_SETS = 64  # of a cache of the host, or a multiple: rows of words are padded to as many
HIT, PARTLY = 1, 16  # no line's word: what a look-up returns of a line that is there, with all that is wanted or not


@njit(cache=True)
def _popcount4(dirty):
    """Dirty pieces of a word: ones among its four low bits."""
    return (dirty & 1) + ((dirty >> 1) & 1) + ((dirty >> 2) & 1) + ((dirty >> 3) & 1)


@njit(inline="always")
def _fetched(victim, marks):
    """Pieces that a miss fetches: the one that lacked of a line partly there, else all that the touch wants."""
    wanted = np.int64(marks) >> DIRTY_BITS
    return np.int64(1) if victim == PARTLY else (wanted & 1) + (wanted >> 1)


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
def _spread(at):
    """Place of a set among the rows of words, and set of a place: bits 6 to 17 by XOR on the lowest six.

    The rows of a tile lie in sets whose numbers differ by powers of two, which share a set of the host's caches.
    """
    return at ^ (((at >> 6) ^ (at >> 12)) & (HOST_SETS - 1))


@njit(inline="always")
def _line_of(at, tag, index):
    """Line of a set and a tag."""
    if index.mask < 0:
        return tag * index.n_sets + at
    if index.hash.size:
        at ^= index.hash[tag]
    return (tag << index.shift) | at


_locate_inlined, _line_of_inlined, _fetched_inlined = (inlined_twin(one) for one in (_locate, _line_of, _fetched))
_spread_inlined = inlined_twin(_spread)


@inlined
def _locate_all(line, n, index, at, row, word):
    """`_locate` of ``n`` lines, unsigned and one step a loop.

    line : (n,) int64; at, row, word : (n,) uint64, output: set, first of its words, and tag as a word without marks
    """
    one, mark_bits = np.uint64(1), np.uint64(MARK_BITS)
    n_sets, mask = np.uint64(index.n_sets), np.uint64(np.int64(index.mask))  # 2^64 - 1 where there is no mask
    shift, table = np.uint64(max(0, index.shift)), index.hash
    if index.mask < 0:
        for i in range(np.uint64(n)):
            at[i] = np.uint64(line[i]) % n_sets
            word[i] = ((np.uint64(line[i]) // n_sets) + one) << mark_bits
    else:
        for i in range(np.uint64(n)):
            at[i] = np.uint64(line[i]) & mask
            word[i] = ((np.uint64(line[i]) >> shift) + one) << mark_bits
    if table.size:
        for i in range(np.uint64(n)):
            at[i] ^= np.uint64(table[np.uint64(line[i]) >> shift])
    for i in range(np.uint64(n)):
        row[i] = _spread_inlined(np.int64(at[i]))


@njit(inline="always")
def _coherence_point(line, mask):
    """L2 partition that is the point of coherence of a line: the parity of its masked bits."""
    bits = np.uint64(line & mask)
    for shift in (32, 16, 8, 4, 2, 1):
        bits ^= bits >> np.uint64(shift)
    return np.int64(bits & np.uint64(1))
