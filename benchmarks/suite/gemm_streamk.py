"""Stream-K GEMM: a fixed number of workgroups, whole tiles first, the rest dealt out in equal shares of K steps.

This is the GEMM that SwizzlePerf measured: 304 workgroups, one for each CU of an MI300X.

Sources: SwizzlePerf (arXiv 2508.20258, appendix A.2), 8192^3 in fp16, tiles 256 x 256 x 64 in groups of 8 tile rows;
Stream-K (arXiv 2301.03598) for the decomposition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model.errors import SizeError

from .base import check_block, check_items, check_traceable, resources, row_grids
from .streamk_trace import trace

TRITON = Path(__file__).with_name("gemm_streamk_triton.py")
NUM_WARPS = 4  # what the measured runs used; the wrapper of the kernel did not pass on the 8 it was given
NUM_STAGES = 2
BLOCKS = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K")
# The measured tile does not fit 256 threads: the compiler spills 1334 registers a lane, which a trace does not show.
COMPILED = {((128, 128, 64), 4): (264, 32 * 1024), ((256, 256, 64), 4): (512, 64 * 1024)}

SHARING = """\
Workgroup p computes whole tiles p, p + PROGRAMS, ... and then the p-th share of the K steps of the tiles that are left
over. Tiles are numbered in groups of GROUP_M tile rows, column by column: GROUP_M workgroups in a row share a column
panel of B, every GROUP_M-th one a row panel of A. Whole tiles that run at the same time march through K together and
reuse each other's slices while they are in step; shares begin at different K, so workgroups that split a tile touch
different slices. Who begins a tile reads the fp32 partial sums of those who continue it, written just before."""


def gemm_streamk(
    *,
    M: int = 8192,
    N: int = 8192,
    K: int = 8192,
    BLOCK_SIZE_M: int = 256,
    BLOCK_SIZE_N: int = 256,
    BLOCK_SIZE_K: int = 64,
    GROUP_M: int = 8,
    PROGRAMS: int = 304,
) -> Kernel:
    """Stream-K product of row-major fp16 matrices.

    Parameters
    ----------
    M, N, K : int
        A is (M, K), B is (K, N), C is (M, N).
    BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K : int
        Tile; powers of two, at least 16 as ``tl.dot`` needs.
    GROUP_M : int
        Tile rows in a group.
    PROGRAMS : int
        Workgroups launched.

    Raises
    ------
    SizeError
        If a block is no power of two, a workgroup would have nothing to do, or the problem is too large to trace.
    """
    problem = {
        **{"M": M, "N": N, "K": K, "BLOCK_SIZE_M": BLOCK_SIZE_M, "BLOCK_SIZE_N": BLOCK_SIZE_N},
        **{"BLOCK_SIZE_K": BLOCK_SIZE_K, "GROUP_M": GROUP_M, "PROGRAMS": PROGRAMS},
    }
    _check(problem)
    tiles, steps = -(-M // BLOCK_SIZE_M) * -(-N // BLOCK_SIZE_N), -(-K // BLOCK_SIZE_K)
    return Kernel(
        name="gemm_streamk",
        summary="C = A B, fp16, Stream-K on a fixed number of workgroups",
        problem=problem,
        dtype="fp16",
        grid=Grid((PROGRAMS,)),
        flops=2.0 * M * N * K,
        issued_flops=2.0 * tiles * BLOCK_SIZE_M * BLOCK_SIZE_N * steps * BLOCK_SIZE_K,
        resources=resources(
            COMPILED,
            (BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K),
            num_warps=NUM_WARPS,
            in_flight=2 * NUM_STAGES,
            loads_per_step=2,
        ),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("arXiv 2508.20258, appendix A.2", "arXiv 2301.03598"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def _check(problem: Mapping[str, int]) -> None:
    for name in BLOCKS:
        check_block("gemm_streamk", most=1024, **{name: problem[name]})
        if problem[name] < 16:
            raise SizeError(f"gemm_streamk: {name} = {problem[name]}: tl.dot takes blocks of at least 16")
    block_m, block_n, block_k = (problem[name] for name in BLOCKS)
    programs = problem["PROGRAMS"]
    tiles = -(-problem["M"] // block_m) * -(-problem["N"] // block_n)
    steps = -(-problem["K"] // block_k)
    if tiles * steps < programs:
        raise SizeError(
            f"gemm_streamk: PROGRAMS = {programs}: {tiles} tiles of {steps} K steps are not a step for each workgroup; "
            f"at most {tiles * steps}"
        )
    for what, items in (("A", "MK"), ("B", "KN"), ("C", "MN")):
        check_items("gemm_streamk", what, problem[items[0]] * problem[items[1]])
    check_items("gemm_streamk", "the array of partial sums", programs * block_m * block_n)
    rows = block_m + block_k * -(-block_n * 2 // 128)
    check_traceable(
        "gemm_streamk", workgroups=programs, instructions=2 * tiles * steps, touches=float(tiles * steps * rows)
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size, as every one but the first: all locks are set.

    The kernel never takes a lock back, so from the second launch on nobody waits and ``partial_ptr`` holds sums.
    """
    m, n, k, programs = (problem[name] for name in ("M", "N", "K", "PROGRAMS"))
    tile = problem["BLOCK_SIZE_M"], problem["BLOCK_SIZE_N"]
    return Launch(
        path=TRITON,
        function="gemm_streamk",
        arguments={
            "a_ptr": Array(shape=(m, k), dtype="fp16"),
            "b_ptr": Array(shape=(k, n), dtype="fp16"),
            "c_ptr": Array(shape=(m, n), dtype="fp16", role="out"),
            "partial_ptr": Array(shape=(programs, *tile), dtype="fp32", role="inout"),
            "lock_ptr": Array(shape=(programs,), dtype="int32", role="inout", is_index=True),
            **{"M": m, "N": n, "K": k},
        },
        constexprs={name: problem[name] for name in (*BLOCKS, "GROUP_M", "PROGRAMS")},
        grid=(programs,),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {
            **{f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
            "partial_ptr": np.zeros((programs, *tile), np.float32),
            "lock_ptr": np.ones(programs, np.int32),
        },
    )


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 A and B of unit scale."""
    draw = np.random.default_rng(seed)
    shapes = {"a": (problem["M"], problem["K"]), "b": (problem["K"], problem["N"])}
    return {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """C in fp16, accumulated in fp32."""
    return {"c": (inputs["a"].astype(np.float32) @ inputs["b"].astype(np.float32)).astype(np.float16)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other numbers of workgroups at the same product, as far as there is a step for each."""
    tiles = -(-problem["M"] // problem["BLOCK_SIZE_M"]) * -(-problem["N"] // problem["BLOCK_SIZE_N"])
    steps = -(-problem["K"] // problem["BLOCK_SIZE_K"])
    for grid, sizes in row_grids(problem, "PROGRAMS"):
        if grid.num_pids <= tiles * steps:
            yield grid, sizes
