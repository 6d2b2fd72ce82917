"""An L2 of two sides, each of which keeps what the CUs on it read and what is at home there.

Each line has a home on one side, the parity of some bits of its address. A read looks on the side of its CU first; what
that does not hold it asks of the line's home, if that is the other side, and keeps a copy. A store goes to the home,
and leaves a copy where it came from. Each side forgets for itself what was used least recently, so a line that is
read from its copy is forgotten at home. Copies are clean: only homes are written back.

Source: latencies and memory reads by side of the SM and home of the line, on one H200
(docs/decisions/0026-two-sides-of-the-l2.md).
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(inline="always")
def _home(line, mask):
    """Side where a line is at home: the parity of its masked bits."""
    bits = np.uint64(line & mask)
    for shift in (32, 16, 8, 4, 2, 1):
        bits ^= bits >> np.uint64(shift)
    return np.int64(bits & np.uint64(1))
