"""Row activation in the HBM: a row miss costs a minimum time regardless of its size (modelled for NVIDIA's H200).

    interleave block  b = line // lines a block          span  n = b // blocks a span
    place             p = (b + hash(n)) mod blocks a span
    row               r = (n // blocks a row) * blocks a span + p          bank = hash(r) mod open rows
    cost of an access that misses the row of its bank = max(0, least time - service time)

A row is cut into blocks that lie far apart in memory, so that a large contiguous piece keeps many banks busy; where
they lie, and which bank a row is in, are hashes, so that no distance is worse than another. What leaves an L2 line by
line hits open rows where whole spans were written at about the same time, and misses them where they were not.

Source: that writes by tiles a line wide take up to 37 % longer in some orders than in others, and reads do not, was
measured on one H200 (docs/decisions/0022-l1-beside-lds-and-rows-of-memory.md); how far apart the blocks lie on two more
(0027-how-far-a-row-of-memory-reaches.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numba import njit

from xcd_model.spec.rules import at_most, check_types
from xcd_model.splitmix import _mix


@dataclass(frozen=True, kw_only=True)
class HbmRows:
    """The rows of all banks of a GPU's memory.

    Parameters
    ----------
    block_bytes : int [bytes]
        What lies side by side in a row; a whole number of cache lines.
    blocks : int
        Blocks of a row.
    stretch_blocks : int
        Memory is cut into stretches of so many blocks; rows have one block in each of ``blocks`` stretches that follow
        each other, in the next at another place.
    open_rows : int
        Banks, each of which has one row open.
    read_ps, write_ps : float [ps]
        Least time that memory as a whole takes for a read or a write that opens a row.
    """

    block_bytes: int
    blocks: int
    stretch_blocks: int
    open_rows: int
    read_ps: float
    write_ps: float

    def __post_init__(self):
        check_types(self)
        at_most("open_rows", self.open_rows, "a million", 1_000_000)

    def shared_by(self, domains: int) -> HbmRows:
        """Rows of one of so many memories that the whole is cut into."""
        return replace(
            self,
            open_rows=max(1, self.open_rows // domains),
            read_ps=self.read_ps * domains,
            write_ps=self.write_ps * domains,
        )


class Rows(NamedTuple):
    """Rows as the compiled replay reads them; ``open`` (banks,) int64 is the row that each bank has open.

    Without banks nothing is modelled. ``block_lines`` is the interleave in lines, ``span`` and ``blocks`` are in blocks.
    """

    open: np.ndarray
    block_lines: int
    span: int
    blocks: int


def closed_rows(rows: HbmRows | None, line_bytes: int) -> Rows:
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
