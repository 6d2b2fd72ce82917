"""Passes that loads of waves take through an L1 whose data lies in banks, as NVIDIA's does.

    lanes served together   as many as load 128 bytes, at most 32: 32 lanes of 4 B or less, 16 of 8 B, 8 of 16 B
    passes of those         max(words that lie on one bank, ceil(lines / `LINES_A_PASS`))   32 banks of a word of 4 B

Lanes that read the same word share it. Eight rows of 64 B that lie a multiple of 128 B apart are on one half of the
banks, and take eight passes; an odd multiple of 64 B apart they take four.

Source: one H200, 3806 patterns of lanes (`benchmarks/validation/data/machine/h200_l1_passes.csv`). It finds four lines
at once at best, and three in the mean, since which of its four tag stages a line is looked up in is a hash that is not
known.
"""

from __future__ import annotations

import numpy as np

from xcd_model.spec.caches import PASS_BYTES

BANK_BYTES, WARP, LINES_A_PASS = 4, 32, 3
ITEM_BYTES = (1, 2, 4, 8, 16)  # that a lane loads in one instruction


def passes_of(
    row: np.ndarray, item: np.ndarray, address: np.ndarray, items: np.ndarray, together: np.ndarray, item_bytes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Passes of loads.

    Parameters
    ----------
    row : (n,) int array
        Load that each item is of, in rising order.
    item : (n,) int array
        Its place in the order of lanes.
    address : (n,) int array [bytes]
    items, together : (n,) int arrays
        Items of a lane of its load, and those that the lane loads at once.
    item_bytes : int [bytes]

    Returns
    -------
    rows, passes : (n_rows,) int64
        Loads that have items, and the passes of each; 0, which is unknown, for items that no instruction loads.
    """
    if item_bytes not in ITEM_BYTES:
        rows = np.unique(row)
        return rows, np.zeros(rows.size, np.int64)
    unit = np.clip(together * item_bytes, BANK_BYTES, PASS_BYTES)  # aligned: no two lanes share a part of it
    lanes = np.minimum(PASS_BYTES // unit, WARP)
    each = items // together
    group = item // items // lanes * each + item % items // together
    group += row * (int(group.max()) + 1)
    order = np.lexsort((address // unit, group))
    of = np.cumsum(np.diff(group[order], prepend=group[order[:1]]) != 0)  # number of each group
    unit, place = unit[order], (address // unit)[order]
    new = np.ones(of.size, np.bool_)
    new[1:] = (of[1:] != of[:-1]) | (place[1:] != place[:-1])
    of, unit, place, row = of[new], unit[new], place[new], row[order][new]
    bank = of * WARP + place % (PASS_BYTES // unit)
    most = np.bincount(bank, minlength=(int(of[-1]) + 1) * WARP).reshape(-1, WARP).max(axis=1)
    line = place * unit // PASS_BYTES
    other = np.ones(of.size, np.bool_)
    other[1:] = (of[1:] != of[:-1]) | (line[1:] != line[:-1])
    lines = np.bincount(of[other])
    passes = np.maximum(most, -(-lines // LINES_A_PASS))
    rows, at = np.unique(row[np.flatnonzero(np.diff(of, prepend=-1))], return_inverse=True)
    return rows, np.bincount(at, weights=passes).astype(np.int64)
