"""Persistent GEMM whose programs claim tiles from atomic counters: one for all, or one an XCD and one for the rest.

Programs whose pool is empty may claim from the other pools before that (STEAL).

A tile is its counter's value, so that a swizzle orders what the counters hand out.
Sources: ROCm/tritonBLAS PR 64 (work-stealing persistent GEMM; its per-XCD, global and hierarchical modes) and PR 86
(stealing from other pools), with that library's 8192^3, tile 256 x 256 x 64, eight waves, 304 programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Claims, Trace, TraceBuilder
from xcd_model.errors import SizeError

from .base import check_dot_block, check_items, check_traceable, lines_of, resources, tile_grids
from .gemm import make_inputs, reference

NAME = "gemm_dynamic"
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")
NUM_WARPS = 8
NUM_STAGES = 2
BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
# (tile, waves): (VGPRs, LDS bytes); at 256 x 256 the compiler spills 24 registers a lane, which a trace does not show.
COMPILED = {((128, 128, 64), NUM_WARPS): (144, 32 * 1024), ((256, 256, 64), NUM_WARPS): (256, 64 * 1024)}
HUNDREDTHS = 100  # of the tiles, in LOCAL

SHARING = """\
Workgroups are PROGRAMS programs that stay; one that has ended a tile claims the next: program p from pool p % POOLS,
which hands out tiles p % POOLS, p % POOLS + POOLS, ... below LOCAL hundredths of all; where that is empty, if STEAL is
1 from the next pools in turn, and then from the tiles after them, which are for all. Tile (m, n), numbered row by row,
reads row panel m of A and column panel n of B, a BLOCK_K slice of each per step, and writes tile (m, n) of C once."""


def gemm_dynamic(
    *,
    M: int = 8192,
    N: int = 8192,
    K: int = 8192,
    BLOCK_M: int = 256,
    BLOCK_N: int = 256,
    BLOCK_K: int = 64,
    PROGRAMS: int = 304,
    POOLS: int = 8,
    LOCAL: int = 75,
    STEAL: bool = False,
) -> Kernel:
    """Product of row-major fp16 matrices by programs that claim tiles.

    Parameters
    ----------
    M, N, K : int
        A is (M, K), B is (K, N), C is (M, N).
    BLOCK_M, BLOCK_N, BLOCK_K : int
        Tile; powers of two from 16 to 1024.
    PROGRAMS : int
        Programs launched, at least one for each pool unless they steal; more than tiles are as many as tiles.
    POOLS : int
        Counters of their own that programs ask first; 1 with LOCAL = 100 is a single counter.
    LOCAL : int
        Tiles in pools, in hundredths of all; the others are for all programs.
    STEAL : bool
        Whether a program whose pool is empty claims from the next pools in turn.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block is no power of two in range, a pool has no program, LOCAL is above 100, or the problem is too large
        to trace.
    """
    problem = {"M": M, "N": N, "K": K, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    problem |= {"PROGRAMS": PROGRAMS, "POOLS": POOLS, "LOCAL": LOCAL, "STEAL": int(STEAL)}
    _check(problem)
    tiles = _tiles(problem)
    n_tiles = tiles[0] * tiles[1]
    return Kernel(
        name=NAME,
        summary="C = A B, fp16, persistent programs claim output tiles from atomic counters",
        problem=problem,
        dtype="fp16",
        grid=Grid((n_tiles,), tiles),
        flops=2.0 * M * N * K,
        issued_flops=2.0 * n_tiles * BLOCK_M * BLOCK_N * (-(-K // BLOCK_K) * BLOCK_K),
        resources=resources(
            COMPILED, (BLOCK_M, BLOCK_N, BLOCK_K), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES, loads_per_step=2
        ),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("ROCm/tritonBLAS PR 64", "AMD-AGI/Primus-Turbo PR 353"),
        at_grids=lambda: _at_grids(problem),
        programs=min(PROGRAMS, n_tiles),
        claims=Claims(pools=POOLS, local=_local(problem), steals=bool(STEAL)),
        make_launch=lambda: launch(problem),
    )


def _tiles(problem: Mapping[str, int]) -> tuple[int, int]:
    """Tile rows and columns."""
    return -(-problem["M"] // problem["BLOCK_M"]), -(-problem["N"] // problem["BLOCK_N"])


def _local(problem: Mapping[str, int]) -> int:
    """Tiles in pools."""
    tiles = _tiles(problem)
    return tiles[0] * tiles[1] * problem["LOCAL"] // HUNDREDTHS


def _check(problem: Mapping[str, int]) -> None:
    check_dot_block(NAME, **{name: problem[name] for name in BLOCKS})
    tiles, pools = _tiles(problem), problem["POOLS"]
    workgroups = tiles[0] * tiles[1]
    if problem["LOCAL"] > HUNDREDTHS:
        raise SizeError(f"{NAME}: LOCAL = {problem['LOCAL']}: hundredths of the tiles, at most {HUNDREDTHS}")
    if not problem["STEAL"] and problem["PROGRAMS"] < min(pools, _local(problem)):
        raise SizeError(
            f"{NAME}: PROGRAMS = {problem['PROGRAMS']}, POOLS = {pools}: a pool without a program is never emptied"
        )
    for what, items in (("A", "MK"), ("B", "KN"), ("C", "MN")):
        check_items(NAME, what, problem[items[0]] * problem[items[1]])
    steps = workgroups * -(-problem["K"] // problem["BLOCK_K"])
    lines = lines_of(problem["BLOCK_M"], problem["BLOCK_K"]) + lines_of(problem["BLOCK_K"], problem["BLOCK_N"])
    check_traceable(NAME, workgroups=workgroups, instructions=2.0 * steps, touches=steps * lines)


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size, all counters at 0."""
    m, n, k, pools = (problem[name] for name in ("M", "N", "K", "POOLS"))
    tiles = _tiles(problem)
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "a_ptr": Array(shape=(m, k), dtype="fp16"),
            "b_ptr": Array(shape=(k, n), dtype="fp16"),
            "c_ptr": Array(shape=(m, n), dtype="fp16", role="out"),
            "counter_ptr": Array(shape=(pools + 1,), dtype="int32", role="inout", is_counter=True),
            **{"M": m, "N": n, "K": k},
        },
        constexprs={"LOCAL": _local(problem), "POOLS": pools, "STEAL": bool(problem["STEAL"])}
        | {name: problem[name] for name in BLOCKS},
        grid=(min(problem["PROGRAMS"], tiles[0] * tiles[1]),),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {
            **{f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
            "counter_ptr": np.zeros(pools + 1, np.int32),
        },
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: per K step one load of A, one of B; at the end one store of C. A claim is left out."""
    m, n, k = problem["M"], problem["N"], problem["K"]
    block_m, block_n, block_k = (problem[name] for name in BLOCKS)
    tiles = _tiles(problem)
    pid_m, pid_n = np.divmod(np.arange(tiles[0] * tiles[1], dtype=np.int64), tiles[1])
    build = TraceBuilder(n_workgroups=pid_m.size, line_bytes=line_bytes)
    a = build.array("A", rows=m, cols=k, item_bytes=2)
    b = build.array("B", rows=k, cols=n, item_bytes=2)
    c = build.array("C", rows=m, cols=n, item_bytes=2)
    build.place("counter", shape=(problem["POOLS"] + 1,), item_bytes=4)
    row, col = (pid_m * block_m)[:, None], (pid_n * block_n)[:, None]
    inner = np.arange(0, k, block_k, dtype=np.int64)[None, :]
    build.step(
        build.read(a, row=row, col=inner, rows=block_m, cols=block_k),
        build.read(b, row=inner, col=col, rows=block_k, cols=block_n),
    )
    build.step(build.write(c, row=row, col=col, rows=block_m, cols=block_n))
    return build.trace()


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """One-dimensional grids of tiles, each once exact and once ragged."""
    for grid, sizes in tile_grids(problem, ("M", "N"), ("BLOCK_M", "BLOCK_N")):
        yield Grid((grid.num_pids,), grid.launch), sizes
