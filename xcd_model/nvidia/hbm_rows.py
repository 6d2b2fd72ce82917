"""Rows of the HBM: an access to another row than its bank has open takes a while, however few bytes it moves.

A row is cut into blocks that lie far apart in memory, so that a large contiguous piece keeps many banks busy, and where
they lie is a hash, so that no distance is worse than another. A row stays open until another of the same bank is asked
for; which bank a row is in is a hash too. What leaves an L2 line by line finds its rows open where whole stretches were
written at about the same time, and closed where they were not: the same bytes take longer.

Source: that writes by tiles a line wide take up to 37 % longer in some orders than in others, and reads do not, was
measured on one H200 (docs/decisions/0022-l1-beside-lds-and-rows-of-memory.md); how far apart the blocks lie on two more
(0027-how-far-a-row-of-memory-reaches.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.spec.nvidia import HbmBanks
from xcd_model.splitmix import _mix


class Rows(NamedTuple):
    """Rows as the compiled replay reads them; ``held`` (banks,) int64 is the row that each bank has open.

    Without banks nothing is modelled. Blocks are counted in lines.
    """

    held: np.ndarray
    lines: int
    stretch: int
    blocks: int


def closed_rows(rows: HbmBanks | None, line_bytes: int) -> Rows:
    """No bank has a row open."""
    if rows is None:
        return Rows(np.zeros(0, np.int64), 1, 1, 1)
    return Rows(np.full(rows.open_rows, -1, np.int64), rows.block_bytes // line_bytes, rows.stretch_blocks, rows.blocks)


@njit(inline="always")
def _opening(rows, line, service_fs, least_fs):
    """What an access of ``service_fs`` to a line takes beyond that: nothing where the row is open, which it then is."""
    block = line // rows.lines
    number = block // rows.stretch
    place = (block + np.int64(_mix(np.uint64(number)) % np.uint64(rows.stretch))) % rows.stretch
    row = number // rows.blocks * rows.stretch + place
    bank = np.int64(_mix(np.uint64(row)) % np.uint64(rows.held.size))
    if rows.held[bank] == row:
        return np.int64(0)
    rows.held[bank] = row
    return max(np.int64(0), least_fs - service_fs)
