"""A cache with room for all that reaches it: nothing is evicted, and a line hits from its second touch on.

    no set is the place of more lines than it has ways   =>   hit = touched before, one bit a line

256 MiB of an Infinity Cache hold all that most kernels read. Its words are 8 MiB on the host; a bit for each line is a
thirty-second of that, and stays in the host's L2.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from xcd_model.numba_inline import inlined
from xcd_model.spec.caches import Index

BITS = 32  # of a word


def has_room(index: Index, ways: int, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether every set has a way for each line of some spans that lies in it.

    Parameters
    ----------
    index : Index
        With a hash that covers the tags of all lines.
    ways : int
    spans : iterable of (int, int)
        First line and the one after the last, of spans that share none.
    """
    sets = index.n_sets
    spans = list(spans)
    if sum(end - first for first, end in spans) > sets * ways:
        return False
    lines = np.zeros(sets, np.int64)
    for first, end in spans:
        for tag in range(first // sets, -(-end // sets)):
            low = np.arange(max(first, tag * sets), min(end, (tag + 1) * sets)) - tag * sets
            lines[low ^ index.hash[tag] if index.hash.size else low] += 1  # each set once
    return bool(lines.max(initial=0) <= ways)


def bits_of(spans: Iterable[tuple[int, int]]) -> np.ndarray:
    """Words of a bit for each line up to the end of the last span: none touched yet."""
    return np.zeros(-(-max(end for _, end in spans) // BITS), np.uint32)


@inlined
def _touch_bit(bits, line):
    """Touch a line; return 1 if it was touched before, else 0."""
    at, bit = np.uint64(line) // np.uint64(BITS), np.uint32(np.uint64(line) % np.uint64(BITS))
    there = bits[at]
    bits[at] = there | (np.uint32(1) << bit)
    return np.int64((there >> bit) & np.uint32(1))
