"""Layer norm over rows: one row a workgroup, read once for the moments and once more for the result.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 20480 x 20480 in fp16.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder

from .base import check_items, check_traceable, resources, row_grids

TRITON = Path(__file__).with_name("layer_norm_triton.py")
ITEM_BYTES = 2  # fp16
FLOPS_PER_ITEM = 7  # two sums and a square; subtract, scale, weigh, shift
EPS = 1e-5
NUM_WARPS = 4
IN_FLIGHT = 1  # the row is summed over the whole workgroup before anything else is loaded
FITTED = {"IN_FLIGHT": ("paper/layer_norm@*",)}  # 3 before those rows were looked at, decision 0017
MAX_BLOCK = 1 << 15  # 64 KiB of fp16 at a time
COMPILED = {
    ((512,), 4): (16, 16, 1372),
    ((2048,), 4): (32, 16, 1772),
    ((8192,), 4): (112, 16, 3812),
    ((32768,), 4): (408, 16, 15628),
}

SHARING = """\
Workgroup r reads row r of X twice, first for mean and variance and then for the result, and writes row r of Y. All
workgroups read the same weights W and shifts B, which are small and stay in the L2. Nothing else is shared. The second
pass finds the row in the L2 if the rows that are read beside it leave room in the same sets: rows a large power of two
of bytes apart push each other out, so which rows run together behind one L2 matters."""


def layer_norm(*, M: int = 20480, N: int = 20480) -> Kernel:
    """Layer norm over the rows of an M x N matrix in fp16.

    Raises
    ------
    SizeError
        If the problem is too large to trace.
    """
    problem = {"M": M, "N": N}
    block = block_of(N)
    trips = -(-N // block)
    check_items("layer_norm", "X", M * N)
    touches = 5 * M * (trips + N * ITEM_BYTES / 128)
    check_traceable("layer_norm", workgroups=M, instructions=5 * M * trips, touches=touches)
    return Kernel(
        name="layer_norm",
        summary="layer norm over rows, fp16, one row a workgroup",
        problem=problem,
        dtype="fp32",
        grid=Grid((M,)),
        flops=float(FLOPS_PER_ITEM * M * N),
        issued_flops=float(FLOPS_PER_ITEM * M * trips * block),
        resources=resources(COMPILED, (block,), num_warps=NUM_WARPS, in_flight=IN_FLIGHT),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("arXiv 2508.20258",),
        at_grids=lambda: row_grids(problem, "M"),
        make_launch=lambda: launch(problem),
        fitted=FITTED,
    )


def block_of(n: int) -> int:
    """Items of a row that a workgroup takes at a time."""
    return min(MAX_BLOCK, 1 << (n - 1).bit_length())


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    m, n = problem["M"], problem["N"]
    return Launch(
        path=TRITON,
        function="layer_norm",
        arguments={
            "x_ptr": Array(shape=(m, n), dtype="fp16"),
            "w_ptr": Array(shape=(n,), dtype="fp16"),
            "b_ptr": Array(shape=(n,), dtype="fp16"),
            "y_ptr": Array(shape=(m, n), dtype="fp16", role="out"),
            "N": n,
            "eps": EPS,
        },
        constexprs={"BLOCK_SIZE_N": block_of(n)},
        grid=(m,),
        num_warps=NUM_WARPS,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: loads of the row; then for each block loads of row, weights and shifts and a store."""
    m, n = problem["M"], problem["N"]
    block = block_of(n)
    build = TraceBuilder(n_workgroups=m, line_bytes=line_bytes)
    x = build.array("x", rows=m, cols=n, item_bytes=ITEM_BYTES)
    w, b = (build.place(name, shape=(n,), item_bytes=ITEM_BYTES) for name in "wb")
    y = build.array("y", rows=m, cols=n, item_bytes=ITEM_BYTES)
    col = np.arange(0, n, block)[None, :]
    row = {"row": np.arange(m)[:, None], "col": col, "rows": 1, "cols": block}
    build.step(build.read(x, **row))
    weights = (build.read_box(array, at=(np.broadcast_to(col, (m, col.size)),), size=(block,)) for array in (w, b))
    build.step(build.read(x, **row), *weights, build.write(y, **row))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 rows, weights and shifts of unit scale."""
    draw = np.random.default_rng(seed)
    shapes = {"x": (problem["M"], problem["N"]), "w": problem["N"], "b": problem["N"]}
    return {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Y in fp16, computed in fp64."""
    x, w, b = (inputs[name].astype(np.float64) for name in "xwb")
    centred = x - x.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPS)
    return {"y": (centred * scale * w + b).astype(np.float16)}
