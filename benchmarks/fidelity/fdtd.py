"""FDTD in two dimensions as it was measured on MI300X: two of its three stores go out item by item.

    python -m benchmarks.fidelity.fdtd

The kernel that the rows are of leaves out the last row and column of hz and the first column of ex. A mask that may end
within a vector keeps Triton from storing vectors, so that a tile is stored by four instructions, each of which asks the
L2 for all its lines. The command compiles a kernel with such masks for gfx942, without a GPU, and counts its stores.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from dataclasses import replace

from benchmarks.fidelity.compiled import compiled
from benchmarks.fidelity.rows import Row
from benchmarks.fidelity.workload import Workload
from benchmarks.suite.fdtd_2d import trace
from swizzle_sim.kernels import kernel

FITTED = {"STORES": ("paper/fdtd_2d@*",)}  # looked for since those rows were 13 points off, decision 0031
STORES = (4, 4, 1)  # instructions of the stores of hz, ex and ey: single items, single items, vectors of four items


def make(row: Row) -> Workload:
    """Workload of a row: the suite's kernel with the stores of the one measured."""
    found = kernel("fdtd_2d", **row.problem)
    measured = replace(found, build_trace=lambda line_bytes: trace(row.problem, line_bytes, STORES), fitted=FITTED)
    return Workload.of_kernel(measured)


def compiled_stores() -> Counter[str]:
    """Store instructions of the kernel as Triton compiles it for an MI300X, by opcode."""
    kernels = importlib.import_module("benchmarks.fidelity.fdtd_triton")
    pointers, sizes = ("ex_ptr", "ey_ptr", "hz_ptr"), ("Nx", "Ny", "pitch")
    arguments = dict.fromkeys(pointers, "*fp32") | dict.fromkeys(sizes, "i32")
    made = compiled(kernels.fdtd_borders, arguments, {"BLOCK_X": 32, "BLOCK_Y": 32}, "gfx942")
    return Counter(re.findall(r"^\s+(global_store_\w+)", made.asm["amdgcn"], re.MULTILINE))


def main() -> None:
    """Print how many store instructions there are of each kind; exit with a line where Triton is missing."""
    if importlib.util.find_spec("triton") is None:
        sys.exit("Triton is not installed: pip install 'swizzle-sim[triton]'")
    for opcode, times in compiled_stores().items():
        print(f"{times} {opcode}")


if __name__ == "__main__":
    main()
