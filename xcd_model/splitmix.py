"""Scrambling integers: draws that are the same on every machine, hashes, and numbers for what has one hash."""

from __future__ import annotations

import numpy as np

from xcd_model.numba_inline import inlined
from xcd_model.numba_setup import uncounted


@inlined
def _mix(x):
    """Scramble 64 bits. Source: Steele, Lea and Flood, OOPSLA 2014 (SplitMix64)."""
    x = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def room(n: int) -> int:
    """Places of a hash table for ``n`` entries: a power of two, at most half of it full."""
    return 1 << int(2 * n - 1).bit_length()


@uncounted()
def _number(hashes, table, of, first):
    """`numbered`, into ``of`` and ``first``; ``table`` is (n,) int32, -1s. Returns how many numbers there are."""
    mask, count = np.uint64(table.size - 1), 0
    for i in range(hashes.size):
        at = hashes[i] & mask
        while table[at] >= 0 and hashes[first[table[at]]] != hashes[i]:
            at = (at + np.uint64(1)) & mask
        if table[at] < 0:
            table[at], first[count] = count, i
            count += 1
        of[i] = table[at]
    return count


def numbered(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number what has one hash alike.

    Parameters
    ----------
    hashes : (n,) uint64 array
        Scrambled: their low bits find places of a table.

    Returns
    -------
    of : (n,) int32 array
        Number of each, in order of appearance.
    first : (n_numbers,) int32 array
        The first that has each number.
    """
    of, first = np.empty((2, hashes.size), np.int32)
    count = _number(hashes, np.full(room(hashes.size), -1, np.int32), of, first)
    return of, first[:count].copy()
