"""An L2 of two sides, each of which keeps what the CUs on it read and what is at home there.

Each line has a home on one side, the parity of some bits of its address. A read looks on the side of its CU first; what
that does not hold it asks of the line's home, if that is the other side, and keeps a copy. A store goes to the home,
and leaves a copy where it came from. Each side forgets for itself what was used least recently, so a line that is
read from its copy is forgotten at home. Copies are clean: only homes are written back.

Source: latencies and memory reads by side of the SM and home of the line, on one H200
(docs/decisions/0026-two-sides-of-the-l2.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from xcd_model.spec.rules import at_most, check_types


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The two sides of an L2, each as large as the GPU's ``l2`` says.

    Parameters
    ----------
    home_bits : int
        A line's home is the parity of the address bits [bytes] that are set here.
    cu_groups : int
        CUs in the order in which workgroups are dealt to them, cut into so many groups as even as can be, one
        side and the other in turn.
    far_ns : float [ns]
        What a read waits longer for a line that its home on the other side holds.
    """

    home_bits: int
    cu_groups: int
    far_ns: float

    def __post_init__(self):
        check_types(self)
        at_most("home_bits", self.home_bits, "2**63 - 1", 2**63 - 1)

    def side_of(self, cus: int) -> np.ndarray:
        """(cus,) int64: side of each CU."""
        ends = np.rint(np.arange(1, self.cu_groups + 1) * cus / self.cu_groups)
        return np.searchsorted(ends, np.arange(cus), side="right") % 2


@njit(inline="always")
def _home(line, mask):
    """Side where a line is at home: the parity of its masked bits."""
    bits = np.uint64(line & mask)
    for shift in (32, 16, 8, 4, 2, 1):
        bits ^= bits >> np.uint64(shift)
    return np.int64(bits & np.uint64(1))
