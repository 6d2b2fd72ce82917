"""Transpose: one tile a workgroup, read along rows of X and written along rows of Y.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 32768 x 32768 in fp16, tiles 32 x 32.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder

from .base import check_block, check_items, check_traceable, resources, tile_grids

TRITON = Path(__file__).with_name("transpose_triton.py")
ITEM_BYTES = 2  # fp16
NUM_WARPS = 4
COMPILED = {((32, 32), 4): (16, 2048, 740), ((64, 64), 4): (24, 8192, 1188)}

SHARING = """\
Workgroup (m, n) reads tile (m, n) of X and writes tile (n, m) of Y, each item once. A tile row is BLOCK_SIZE_N items of
a row of X: where that is less than a line, tiles (m, n) and (m, n + 1) share the lines of X between them, and tiles
(m, n) and (m + 1, n) those of Y. A line is used once only if the tiles that share it run behind one L2, close in time;
half-written lines that leave the L2 early cost a write each time. Rows a power of two long map to few cache sets."""


def transpose(*, M: int = 32768, N: int = 32768, BLOCK_SIZE_M: int = 32, BLOCK_SIZE_N: int = 32) -> Kernel:
    """Transpose of an M x N matrix in fp16.

    Raises
    ------
    SizeError
        If a block is no power of two, or the problem is too large to trace.
    """
    problem = {"M": M, "N": N, "BLOCK_SIZE_M": BLOCK_SIZE_M, "BLOCK_SIZE_N": BLOCK_SIZE_N}
    check_block("transpose", BLOCK_SIZE_M=BLOCK_SIZE_M, BLOCK_SIZE_N=BLOCK_SIZE_N)
    check_items("transpose", "X", M * N)
    tiles = (-(-M // BLOCK_SIZE_M), -(-N // BLOCK_SIZE_N))
    workgroups = tiles[0] * tiles[1]
    touches = workgroups * (BLOCK_SIZE_M + BLOCK_SIZE_N + 2 * BLOCK_SIZE_M * BLOCK_SIZE_N * ITEM_BYTES / 128)
    check_traceable("transpose", workgroups=workgroups, instructions=2 * workgroups, touches=touches)
    return Kernel(
        name="transpose",
        summary="transpose, fp16, one tile a workgroup",
        problem=problem,
        dtype="fp32",
        grid=Grid(tiles),
        flops=0.0,
        issued_flops=0.0,
        resources=resources(COMPILED, (BLOCK_SIZE_M, BLOCK_SIZE_N), num_warps=NUM_WARPS, in_flight=1),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("arXiv 2508.20258",),
        at_grids=lambda: tile_grids(problem, ("M", "N"), ("BLOCK_SIZE_M", "BLOCK_SIZE_N")),
        make_launch=lambda: launch(problem),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    m, n = problem["M"], problem["N"]
    blocks = {name: problem[name] for name in ("BLOCK_SIZE_M", "BLOCK_SIZE_N")}
    return Launch(
        path=TRITON,
        function="transpose",
        arguments={
            "x_ptr": Array(shape=(m, n), dtype="fp16"),
            "y_ptr": Array(shape=(n, m), dtype="fp16", role="out"),
            **{"M": m, "N": n},
        },
        constexprs=blocks,
        grid=(-(-m // blocks["BLOCK_SIZE_M"]), -(-n // blocks["BLOCK_SIZE_N"])),
        num_warps=NUM_WARPS,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: a load of tile (m, n), a store of tile (n, m)."""
    m, n = problem["M"], problem["N"]
    block_m, block_n = problem["BLOCK_SIZE_M"], problem["BLOCK_SIZE_N"]
    pid_n, pid_m = np.divmod(np.arange(-(-m // block_m) * -(-n // block_n)), -(-m // block_m))
    build = TraceBuilder(n_workgroups=pid_m.size, line_bytes=line_bytes)
    x = build.array("x", rows=m, cols=n, item_bytes=ITEM_BYTES)
    y = build.array("y", rows=n, cols=m, item_bytes=ITEM_BYTES)
    build.step(
        build.read(x, row=pid_m * block_m, col=pid_n * block_n, rows=block_m, cols=block_n),
        build.write(y, row=pid_n * block_n, col=pid_m * block_m, rows=block_n, cols=block_m),
    )
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 X of unit scale."""
    draw = np.random.default_rng(seed)
    return {"x": draw.standard_normal((problem["M"], problem["N"]), np.float32).astype(np.float16)}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Y, item for item."""
    return {"y": np.ascontiguousarray(inputs["x"].T)}
