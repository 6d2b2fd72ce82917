"""Ablation: the analytic reuse formula, which knows who runs beside whom and nothing of time or capacity.

For a GEMM window of ``rows`` x ``cols`` tiles that run at once on an XCD, with ``a`` and ``b`` bytes a K step of each,
reuse is ``1 - (rows a + cols b) / (rows cols (a + b))``: the distinct lines over the lines asked. That is counted here
for the window that an order really makes, so that it holds for any kernel; the correction factors that the published
form multiplies it with are fitted to other hardware and left out.

Source: the L2 model of origami and hipBLASLt, as described in their repositories.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xcd_model import Gpu, Trace


def reuse_counts(trace: Trace, gpu: Gpu, order: np.ndarray, *, workgroups_per_cu: int) -> np.ndarray:
    """Read and write misses, scaled from the first, middle and last window of each XCD to the launch.

    Parameters
    ----------
    trace : Trace
    gpu : Gpu
    order : (n_workgroups,) int array
    workgroups_per_cu : int

    Returns
    -------
    misses : (2,) float
        Of reads, of writes; a line read and written counts as read.
    """
    slots = gpu.cus_per_xcd * workgroups_per_cu
    seen = np.zeros(max(tensor.base_line + tensor.n_lines for tensor in trace.tensors), np.int16)
    counts, stamp = np.zeros((2, 2), np.int64), 0
    for xcd in range(gpu.xcds):
        queue = np.asarray(order, np.int64)[(xcd - gpu.dispatch_offset) % gpu.xcds :: gpu.xcds]
        windows = -(-queue.size // slots)
        for at in sorted({0, windows // 2, windows - 1} & set(range(windows))):
            stamp += 1
            _window(
                trace.start, trace.base, trace.template, trace.rel_start, trace.rel, trace.is_write,
                queue[at * slots : (at + 1) * slots], seen, stamp, counts,
            )  # fmt: skip
    write = trace.is_write[trace.template]
    lines = trace.entries_per_template[trace.template]
    total = np.array([lines[~write].sum(), lines[write].sum()], float)
    distinct, asked = counts
    return np.divide(distinct * total, asked, out=np.zeros(2), where=asked > 0)


@njit(cache=True)
def _window(start, base, template, rel_start, rel, is_write, workgroups, seen, stamp, counts):
    """Add distinct and touched lines of the workgroups' reads, then of their writes; ``counts`` (2, 2) int64."""
    for kind in range(2):
        for tile in workgroups:
            for at in range(start[tile], start[tile + 1]):
                shape = template[at]
                if is_write[shape] != (kind == 1):
                    continue
                for entry in range(rel_start[shape], rel_start[shape + 1]):
                    line = base[at] + rel[entry]
                    counts[0, kind] += seen[line] != stamp
                    counts[1, kind] += 1
                    seen[line] = stamp
