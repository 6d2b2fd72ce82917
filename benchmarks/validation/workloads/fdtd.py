"""FDTD in two dimensions as it was measured on MI300X: two of its three stores go out item by item.

The kernel that the rows are of leaves out the last row and column of hz and the first column of ex. A mask that may end
within a vector keeps Triton from storing vectors, so that a tile is stored by four instructions, each of which requests
all its lines from the L2. ``python -m swizzle_benchmarks.lab fdtd-stores`` counts the stores of such a kernel.
"""

from __future__ import annotations

from dataclasses import replace

from swizzle_sim.workload.kernels import kernel

from ...suite.fdtd_2d import fdtd_2d
from ..rows import Row
from .workload import Workload

STORES = (4, 4, 1)  # instructions of the stores of hz, ex and ey: single items, single items, vectors of four items
FITTED = {"STORES": ("paper/fdtd_2d@*",)}  # sought because those rows were 13 points off, decision 0003


def make(row: Row) -> Workload:
    """Workload of a row: the suite's kernel with the stores of the one measured."""
    found = kernel("fdtd_2d", **row.problem)
    measured = replace(found, build_trace=fdtd_2d.tracer(row.problem, stores=STORES), fitted=FITTED)
    return Workload.of_kernel(measured)
