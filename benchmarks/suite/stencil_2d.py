"""5-point stencil in two dimensions: one tile a workgroup, the neighbours by four more loads, shifted by one item.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 8192 x 8192 in fp16, tiles 32 x 32.
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

TRITON = Path(__file__).with_name("stencil_2d_triton.py")
ITEM_BYTES = 2  # fp16
FLOPS_PER_ITEM = 6
NUM_WARPS = 4
COMPILED = {((32, 32), 4): (32, 0, 1204), ((64, 64), 4): (72, 0, 2952)}
NEIGHBOURS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))  # in the order loaded: centre, up, down, left, right

SHARING = """\
Workgroup (m, n) reads tile (m, n) of X five times, once in place and once shifted by an item to each side, and writes
tile (m, n) of Y. The shifted loads overlap each other within the workgroup; with tiles (m - 1, n) and (m + 1, n) it
shares a row of items, with (m, n - 1) and (m, n + 1) a column. Where a tile row is less than a line, side neighbours
share all lines of the tile, of X as of Y. Rows a power of two long map to few cache sets."""


def stencil_2d(*, M: int = 8192, N: int = 8192, BLOCK_SIZE_M: int = 32, BLOCK_SIZE_N: int = 32) -> Kernel:
    """One sweep of a 5-point stencil over an M x N matrix in fp16, zeros around it.

    Raises
    ------
    SizeError
        If a block is no power of two, or the problem is too large to trace.
    """
    problem = {"M": M, "N": N, "BLOCK_SIZE_M": BLOCK_SIZE_M, "BLOCK_SIZE_N": BLOCK_SIZE_N}
    check_block("stencil_2d", BLOCK_SIZE_M=BLOCK_SIZE_M, BLOCK_SIZE_N=BLOCK_SIZE_N)
    check_items("stencil_2d", "X", M * N)
    tiles = (-(-M // BLOCK_SIZE_M), -(-N // BLOCK_SIZE_N))
    workgroups = tiles[0] * tiles[1]
    touches = 6 * workgroups * BLOCK_SIZE_M * (1 + BLOCK_SIZE_N * ITEM_BYTES / 128)
    check_traceable("stencil_2d", workgroups=workgroups, instructions=6 * workgroups, touches=touches)
    return Kernel(
        name="stencil_2d",
        summary="5-point stencil, fp16, one tile a workgroup",
        problem=problem,
        dtype="fp32",
        grid=Grid(tiles),
        flops=float(FLOPS_PER_ITEM * M * N),
        issued_flops=float(FLOPS_PER_ITEM * workgroups * BLOCK_SIZE_M * BLOCK_SIZE_N),
        resources=resources(COMPILED, (BLOCK_SIZE_M, BLOCK_SIZE_N), num_warps=NUM_WARPS, in_flight=5),
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
        function="stencil_2d",
        arguments={
            "x_ptr": Array(shape=(m, n), dtype="fp16"),
            "y_ptr": Array(shape=(m, n), dtype="fp16", role="out"),
            **{"M": m, "N": n},
        },
        constexprs=blocks,
        grid=(-(-m // blocks["BLOCK_SIZE_M"]), -(-n // blocks["BLOCK_SIZE_N"])),
        num_warps=NUM_WARPS,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: five loads of the tile, a store of it."""
    m, n = problem["M"], problem["N"]
    block_m, block_n = problem["BLOCK_SIZE_M"], problem["BLOCK_SIZE_N"]
    pid_n, pid_m = np.divmod(np.arange(-(-m // block_m) * -(-n // block_n)), -(-m // block_m))
    build = TraceBuilder(n_workgroups=pid_m.size, line_bytes=line_bytes)
    x, y = (build.array(name, rows=m, cols=n, item_bytes=ITEM_BYTES) for name in "xy")
    row, col, tile = pid_m * block_m, pid_n * block_n, {"rows": block_m, "cols": block_n}
    build.step(
        *(build.read(x, row=row + down, col=col + right, **tile) for down, right in NEIGHBOURS),
        build.write(y, row=row, col=col, **tile),
    )
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 X of unit scale."""
    draw = np.random.default_rng(seed)
    return {"x": draw.standard_normal((problem["M"], problem["N"]), np.float32).astype(np.float16)}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Y in fp16, computed in fp64."""
    x = np.pad(inputs["x"].astype(np.float64), 1)
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return {"y": (0.5 * x[1:-1, 1:-1] + 0.125 * around).astype(np.float16)}
