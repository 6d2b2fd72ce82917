"""Row activation in the HBM: a row miss costs a minimum time regardless of its size (modelled for NVIDIA's H200).

    interleave block  b = line // lines a block          span  n = b // blocks a span
    place             p = (b + hash(n)) mod blocks a span
    row               r = (n // blocks a row) * blocks a span + p          bank = hash(r) mod open rows
    cost of an access that misses the row of its bank = max(0, least time - service time)

A row is cut into blocks that lie far apart in memory, so that a large contiguous piece keeps many banks busy; where
they lie, and which bank a row is in, are hashes, so that no distance is worse than another. What leaves an L2 line by
line hits open rows where whole spans were written at about the same time, and misses them where they were not.

Source: that writes by tiles a line wide take up to 37 % longer in some orders than in others, and reads do not, was
measured on one H200 (docs/decisions/0022-the-h200-beside-the-mi300x.md); how far apart the blocks lie on two more
(0027-how-far-a-row-of-memory-reaches.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.by_reference import by_reference
from xcd_model.numba_setup import njit
from xcd_model.spec.nvidia import HbmBanks
from xcd_model.splitmix import _mix


@by_reference
class Rows(NamedTuple):
    """Rows as the compiled replay reads them; ``open`` (banks,) int64 is the row that each bank has open.

    Without banks nothing is modelled. ``block_lines`` is the interleave; ``span`` and ``blocks`` are in blocks.
    """

    open: np.ndarray
    block_lines: int
    span: int
    blocks: int


def closed_rows(rows: HbmBanks | None, line_bytes: int) -> Rows:
    """No bank has a row open."""
    if rows is None:
        return Rows(np.zeros(0, np.int64), 1, 1, 1)
    return Rows(np.full(rows.open_rows, -1, np.int64), rows.block_bytes // line_bytes, rows.stretch_blocks, rows.blocks)


@njit(inline="always")
def _activation(rows, line, service_fs, least_fs):
    """Time that an access of ``service_fs`` to a line takes beyond that: 0 on a row hit; opens the row [fs]."""
    block = line // rows.block_lines
    number = block // rows.span
    place = (block + np.int64(_mix(np.uint64(number)) % np.uint64(rows.span))) % rows.span
    row = number // rows.blocks * rows.span + place
    bank = np.int64(_mix(np.uint64(row)) % np.uint64(rows.open.size))
    if rows.open[bank] == row:
        return np.int64(0)
    rows.open[bank] = row
    return max(np.int64(0), least_fs - service_fs)
