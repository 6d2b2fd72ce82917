"""Softmax over rows: one row a workgroup, loaded once and stored once.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 32768 x 32768 in fp16.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder
from xcd_model.errors import SizeError

from .base import MAX_TILE_ITEMS, check_items, check_traceable, resources, row_grids

TRITON = Path(__file__).with_name("softmax_triton.py")
ITEM_BYTES = 2  # fp16
FLOPS_PER_ITEM = 5  # compare, subtract, exponential, add, divide
COMPILED = {
    ((512,), 4): (16, 16, 1088),
    ((2048,), 8): (32, 32, 1436),
    ((4096,), 16): (32, 64, 1472),
    ((8192,), 16): (24, 64, 2036),
    ((32768,), 16): (56, 64, 5544),
}

SHARING = """\
Workgroup r reads row r of X once and writes row r of Y once. No two workgroups share an item; rows share a line only
where the row length is no whole number of lines. Where it is one, every order of workgroups costs the same traffic, and
only the order of addresses in time differs."""


def softmax(*, M: int = 32768, N: int = 32768) -> Kernel:
    """Softmax over the rows of an M x N matrix in fp16.

    Raises
    ------
    SizeError
        If a row does not fit one workgroup, or the problem is too large to trace.
    """
    problem = {"M": M, "N": N}
    block = block_of(N)
    if block > MAX_TILE_ITEMS:
        raise SizeError(
            f"softmax: N = {N}: a workgroup holds a whole row, and Triton takes at most {MAX_TILE_ITEMS} items"
        )
    check_items("softmax", "X", M * N)
    check_traceable("softmax", workgroups=M, instructions=2 * M, touches=2 * M * (N * ITEM_BYTES / 128 + 1))
    return Kernel(
        name="softmax",
        summary="softmax over rows, fp16, one row a workgroup",
        problem=problem,
        dtype="fp32",
        grid=Grid((M,)),
        flops=float(FLOPS_PER_ITEM * M * N),
        issued_flops=float(FLOPS_PER_ITEM * M * block),
        resources=resources(COMPILED, (block,), num_warps=num_warps_of(block), in_flight=1),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("arXiv 2508.20258",),
        at_grids=lambda: row_grids(problem, "M"),
        make_launch=lambda: launch(problem),
    )


def block_of(n: int) -> int:
    """Power of two that holds a row."""
    return 1 << (n - 1).bit_length()


def num_warps_of(block: int) -> int:
    """Waves a workgroup, as measured."""
    return 16 if block >= 4096 else 8 if block >= 2048 else 4


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    m, n = problem["M"], problem["N"]
    block = block_of(n)
    return Launch(
        path=TRITON,
        function="softmax",
        arguments={
            "x_ptr": Array(shape=(m, n), dtype="fp16"),
            "y_ptr": Array(shape=(m, n), dtype="fp16", role="out"),
            "N": n,
        },
        constexprs={"BLOCK_SIZE_N": block},
        grid=(m,),
        num_warps=num_warps_of(block),
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: one load of a row, one store of a row."""
    m, n = problem["M"], problem["N"]
    build = TraceBuilder(n_workgroups=m, line_bytes=line_bytes)
    x, y = (build.array(name, rows=m, cols=n, item_bytes=ITEM_BYTES) for name in "xy")
    row = {"row": np.arange(m), "col": 0, "rows": 1, "cols": block_of(n)}
    build.step(build.read(x, **row), build.write(y, **row))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 X of unit scale."""
    draw = np.random.default_rng(seed)
    return {"x": draw.standard_normal((problem["M"], problem["N"]), np.float32).astype(np.float16)}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Y in fp16, computed in fp64."""
    x = inputs["x"].astype(np.float64)
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": (raised / raised.sum(axis=1, keepdims=True)).astype(np.float16)}
