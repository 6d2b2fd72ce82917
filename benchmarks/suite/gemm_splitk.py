"""Split-K GEMM with unified ids: one row of workgroups over output tiles and splits of K, partial products in fp32.

A swizzle orders the unified ids, so that it decides where the splits of a tile run as well as the tiles. Joining the
partial products is a second, small launch that is not part of it. The default is the last projection of Llama 3 70B's
MLP (K = 28672, N = 8192) at 256 tokens, in 4 splits.
Sources: ROCm/aiter (unified ids, partial products); some of its kernels remap the unified id, some the tile's only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder
from xcd_model.errors import SizeError

from .base import check_dot_block, check_items, check_traceable, lines_of, resources, tile_grids
from .gemm import make_inputs

NAME = "gemm_splitk"
NUM_WARPS = 4
NUM_STAGES = 2
BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
COMPILED = {((64, 128, 64), NUM_WARPS): (120, 24 * 1024)}  # (tile, waves): (VGPRs, LDS bytes)
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")

SHARING = """\
Workgroup u works on split u % SPLITS of tile u // SPLITS; tiles (m, n) are numbered row by row. It reads row panel m of
A and column panel n of B, both over the K of its split only, a BLOCK_K slice of each per step, and writes its partial
tile once. Workgroups of one split and one tile row share A's slices, those of one split and one tile column share B's;
workgroups of different splits share nothing, though they are neighbours. As a grid of two sides, rows are tile rows and
columns are (n, split) pairs: a column shares B, and every SPLITS-th column of a row shares A."""


def gemm_splitk(
    *,
    M: int = 256,
    N: int = 8192,
    K: int = 28672,
    SPLITS: int = 4,
    BLOCK_M: int = 64,
    BLOCK_N: int = 128,
    BLOCK_K: int = 64,
) -> Kernel:
    """Partial products of row-major fp16 matrices over splits of K.

    Parameters
    ----------
    M, N, K : int
        A is (M, K), B is (K, N), the partial products are (SPLITS, M, N).
    SPLITS : int
        Runs of whole BLOCK_K steps that K is cut into, at most as many as steps; the last may be empty.
    BLOCK_M, BLOCK_N, BLOCK_K : int
        Tile; powers of two from 16 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block is no power of two in range, there are more splits than steps of K, or the problem is too large to
        trace.
    """
    problem = {"M": M, "N": N, "K": K, "SPLITS": SPLITS, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    _check(problem)
    tiles = _tiles(problem)
    return Kernel(
        name=NAME,
        summary="partial products over splits of K, fp16, unified ids of tiles and splits",
        problem=problem,
        dtype="fp16",
        grid=_grid(problem),
        flops=2.0 * M * N * K,
        issued_flops=2.0 * tiles[0] * BLOCK_M * tiles[1] * BLOCK_N * (-(-K // BLOCK_K) * BLOCK_K),
        resources=resources(
            COMPILED, (BLOCK_M, BLOCK_N, BLOCK_K), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES, loads_per_step=2
        ),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(inputs, problem),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("ROCm/aiter, GEMMs with NUM_KSPLIT (unified ids)", "Llama 3, arXiv 2407.21783 (sizes)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def _tiles(problem: Mapping[str, int]) -> tuple[int, int]:
    """Tile rows and columns."""
    return -(-problem["M"] // problem["BLOCK_M"]), -(-problem["N"] // problem["BLOCK_N"])


def _grid(problem: Mapping[str, int]) -> Grid:
    """Tile rows, and (tile column, split) pairs."""
    rows, cols = _tiles(problem)
    return Grid((rows * cols * problem["SPLITS"],), (rows, cols * problem["SPLITS"]))


def _share(problem: Mapping[str, int]) -> int:
    """Columns of A in a split: whole steps."""
    return -(-_steps(problem) // problem["SPLITS"]) * problem["BLOCK_K"]


def _steps(problem: Mapping[str, int]) -> int:
    return -(-problem["K"] // problem["BLOCK_K"])


def _check(problem: Mapping[str, int]) -> None:
    check_dot_block(NAME, **{name: problem[name] for name in BLOCKS})
    m, n, k, splits = (problem[name] for name in ("M", "N", "K", "SPLITS"))
    if splits > _steps(problem):
        raise SizeError(
            f"{NAME}: SPLITS = {splits}, K = {k}: a split has a BLOCK_K step, and there are {_steps(problem)}"
        )
    for what, items in (("A", m * k), ("B", k * n), ("the partial products", splits * m * n)):
        check_items(NAME, what, items)
    tiles = _tiles(problem)
    steps = tiles[0] * tiles[1] * _steps(problem)
    lines = lines_of(problem["BLOCK_M"], problem["BLOCK_K"]) + lines_of(problem["BLOCK_K"], problem["BLOCK_N"])
    workgroups = tiles[0] * tiles[1] * splits
    check_traceable(NAME, workgroups=workgroups, instructions=2.0 * steps, touches=steps * lines)


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    m, n, k, splits = (problem[name] for name in ("M", "N", "K", "SPLITS"))
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "a_ptr": Array(shape=(m, k), dtype="fp16"),
            "b_ptr": Array(shape=(k, n), dtype="fp16"),
            "part_ptr": Array(shape=(splits, m, n), dtype="fp32", role="out"),
            **{"M": m, "N": n, "K": k},
        },
        constexprs={"SPLITS": splits, **{name: problem[name] for name in BLOCKS}},
        grid=_grid(problem).launch,
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: per step of the split one load of A, one of B; at the end one store of the partial tile."""
    m, n, k, splits = (problem[name] for name in ("M", "N", "K", "SPLITS"))
    block_m, block_n, block_k = (problem[name] for name in BLOCKS)
    tile, split = np.divmod(np.arange(_grid(problem).num_pids, dtype=np.int64), splits)
    pid_m, pid_n = np.divmod(tile, _tiles(problem)[1])
    build = TraceBuilder(n_workgroups=tile.size, line_bytes=line_bytes)
    a = build.place("A", shape=(m, k), item_bytes=2)
    b = build.place("B", shape=(k, n), item_bytes=2)
    part = build.place("part", shape=(splits, m, n), item_bytes=4)
    row, col, share = pid_m * block_m, pid_n * block_n, _share(problem)
    inner = (split * share)[:, None] + np.arange(0, share, block_k)[None, :]
    build.step(
        build.read_box(a, at=(row[:, None], inner), size=(block_m, block_k)),
        build.read_box(b, at=(inner, col[:, None]), size=(block_k, block_n)),
    )
    build.step(build.write_box(part, at=(split, row, col), size=(1, block_m, block_n)))
    return build.trace()


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Partial products in fp32, zeros for a split without steps; their sum over the splits is A B."""
    share = _share(problem)
    spans = (slice(split * share, (split + 1) * share) for split in range(problem["SPLITS"]))
    a, b = (inputs[name].astype(np.float32) for name in "ab")
    return {"part": np.stack([a[:, span] @ b[span] for span in spans])}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other tiles, each once exact and once ragged, in as many splits and in one more."""
    for _, sizes in tile_grids(problem, ("M", "N"), ("BLOCK_M", "BLOCK_N")):
        for splits in sorted({problem["SPLITS"], min(problem["SPLITS"] + 1, _steps(problem))}):
            other = {**problem, **sizes, "SPLITS": splits}
            yield _grid(other), other
