"""Batched GEMM: C[z] = A[z] B[z] in fp16, one output tile a workgroup on a launch of (column, row, product).

The default is 32 products of 2048^3 in 128 x 128 x 64 tiles: A and B of one product are 16 MiB, four times an L2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder

from .base import check_dot_block, check_traceable, lines_of, resources

NAME = "batched_gemm"
ITEM_BYTES = 2  # fp16
NUM_WARPS = 8
NUM_STAGES = 2

# (tile, waves): (VGPRs, LDS bytes)
COMPILED = {((128, 128, 64), NUM_WARPS): (120, 32 * 1024), ((256, 256, 64), NUM_WARPS): (248, 64 * 1024)}
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")

SHARING = """\
Workgroup (x, y, z) reads row panel y of A[z] and column panel x of B[z], a BLOCK_K slice of each per step, and writes
tile (y, x) of C[z] once. Tiles of one row of one product share an A panel, tiles of one column a B panel; two products
share nothing. The launch runs along a row first, then down, then to the next product."""


def batched_gemm(
    *,
    BATCH: int = 32,
    M: int = 2048,
    N: int = 2048,
    K: int = 2048,
    BLOCK_M: int = 128,
    BLOCK_N: int = 128,
    BLOCK_K: int = 64,
) -> Kernel:
    """Batch of GEMMs of row-major fp16 matrices.

    Parameters
    ----------
    BATCH, M, N, K : int
        A is (BATCH, M, K), B is (BATCH, K, N), C is (BATCH, M, N).
    BLOCK_M, BLOCK_N, BLOCK_K : int
        Tile; powers of two from 16 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block is no power of two in range, or the problem is too large to trace.
    """
    problem = {"BATCH": BATCH, "M": M, "N": N, "K": K, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    _check(problem)
    grid = grid_of(problem)
    return Kernel(
        name=NAME,
        summary="C[z] = A[z] B[z], fp16, one output tile a workgroup, 3-D launch",
        problem=problem,
        dtype="fp16",
        grid=Grid(grid),
        flops=2.0 * BATCH * M * N * K,
        issued_flops=2.0 * grid[0] * BLOCK_N * grid[1] * BLOCK_M * BATCH * (-(-K // BLOCK_K) * BLOCK_K),
        resources=resources(
            COMPILED, (BLOCK_M, BLOCK_N, BLOCK_K), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES, loads_per_step=2
        ),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("Triton tutorial 03-matrix-multiplication (tiles)", "rocBLAS gemm_strided_batched (the operation)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def grid_of(problem: Mapping[str, int]) -> tuple[int, int, int]:
    """Tile columns (x, fastest), tile rows (y), products (z)."""
    return -(-problem["N"] // problem["BLOCK_N"]), -(-problem["M"] // problem["BLOCK_M"]), problem["BATCH"]


def _check(problem: Mapping[str, int]) -> None:
    blocks = {name: problem[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")}
    check_dot_block(NAME, **blocks)
    cols, rows, batch = grid_of(problem)
    steps = cols * rows * batch * -(-problem["K"] // blocks["BLOCK_K"])
    lines = lines_of(blocks["BLOCK_M"], blocks["BLOCK_K"]) + lines_of(blocks["BLOCK_K"], blocks["BLOCK_N"])
    check_traceable(NAME, workgroups=cols * rows * batch, instructions=2.0 * steps, touches=steps * lines)


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    batch, m, n, k = (problem[name] for name in ("BATCH", "M", "N", "K"))
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "a_ptr": Array(shape=(batch, m, k), dtype="fp16"),
            "b_ptr": Array(shape=(batch, k, n), dtype="fp16"),
            "c_ptr": Array(shape=(batch, m, n), dtype="fp16", role="out"),
            **{"M": m, "N": n, "K": k},
        },
        constexprs={name: problem[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")},
        grid=grid_of(problem),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: per K step one load of A, one of B; at the end one store of C."""
    batch, m, n, k = (problem[name] for name in ("BATCH", "M", "N", "K"))
    block_m, block_n, block_k = problem["BLOCK_M"], problem["BLOCK_N"], problem["BLOCK_K"]
    cols, rows, _ = grid_of(problem)
    w = np.arange(cols * rows * batch, dtype=np.int64)
    col, row, z = w % cols * block_n, w // cols % rows * block_m, w // (cols * rows)
    build = TraceBuilder(n_workgroups=w.size, line_bytes=line_bytes)
    a = build.place("A", shape=(batch, m, k), item_bytes=ITEM_BYTES)
    b = build.place("B", shape=(batch, k, n), item_bytes=ITEM_BYTES)
    c = build.place("C", shape=(batch, m, n), item_bytes=ITEM_BYTES)
    inner = np.arange(0, k, block_k, dtype=np.int64)[None, :]
    build.step(
        build.read_box(a, at=(z[:, None], row[:, None], inner), size=(1, block_m, block_k)),
        build.read_box(b, at=(z[:, None], inner, col[:, None]), size=(1, block_k, block_n)),
    )
    build.step(build.write_box(c, at=(z, row, col), size=(1, block_m, block_n)))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 A and B of unit scale."""
    draw = np.random.default_rng(seed)
    batch, m, n, k = (problem[name] for name in ("BATCH", "M", "N", "K"))
    shapes = {"a": (batch, m, k), "b": (batch, k, n)}
    return {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """C in fp16, accumulated in fp32."""
    return {"c": (inputs["a"].astype(np.float32) @ inputs["b"].astype(np.float32)).astype(np.float16)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other tile grids and batches: square, skinny, prime, smaller than the XCD count; each exact and ragged."""
    shapes = [(1, 1, 1), (1, 5, 2), (3, 1, 8), (2, 2, 2), (4, 8, 3), (7, 5, 1), (8, 8, 4), (5, 16, 2), (11, 3, 8)]
    for cols, rows, batch in shapes:
        for cut in (0, 1):
            m, n = rows * problem["BLOCK_M"] - cut, cols * problem["BLOCK_N"] - cut
            yield Grid((cols, rows, batch)), {**problem, "BATCH": batch, "M": m, "N": n}
