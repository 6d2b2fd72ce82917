"""GEMM with plain tiles: C = A B in fp16, one output tile a workgroup, tiles numbered row-major.

Sources: shapes and tile of SwizzlePerf (arXiv 2508.20258, appendix A.2; measured there as Stream-K with 304
workgroups, which is another kernel); tile 256 x 256 x 64 is also what the ROCm gfx950 Gluon tutorials count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Resources, Trace, TraceBuilder
from xcd_model.errors import SizeError

from .base import MAX_TOUCHES, MAX_WORKGROUPS, TILES

TRITON = Path(__file__).with_name("gemm_triton.py")
ITEM_BYTES = 2  # fp16
MAX_STEPS = 5e6  # trips through the K loop, of all workgroups

# (BLOCK_M, BLOCK_N, BLOCK_K) -> (VGPRs, LDS bytes) for 8 waves, two stages.
# Compiled for gfx942 with Triton 3.9; other tiles are estimated by `_estimate`.
COMPILED = {(128, 128, 64): (128, 32 * 1024), (256, 256, 64): (248, 64 * 1024)}
THREADS = 512
NUM_STAGES = 2

SHARING = """\
Workgroup (m, n) reads row panel m of A and column panel n of B, a BLOCK_K slice of each per step, and writes tile
(m, n) of C once. Tiles of one tile row share the A panel, tiles of one tile column share the B panel, and nothing
else is shared. Tiles that run at the same time march through K together, so a slice is reused only while they are in
step."""


def gemm(
    *, M: int = 8192, N: int = 8192, K: int = 8192, BLOCK_M: int = 256, BLOCK_N: int = 256, BLOCK_K: int = 64
) -> Kernel:
    """GEMM of row-major fp16 matrices.

    Parameters
    ----------
    M, N, K : int
        A is (M, K), B is (K, N), C is (M, N).
    BLOCK_M, BLOCK_N, BLOCK_K : int
        Tile; powers of two from 16 to 1024, as Triton's ``tl.arange`` and ``tl.dot`` need.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block is no power of two in range, or the problem is too large to trace.
    """
    problem = {"M": M, "N": N, "K": K, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    _check(problem)
    tiles = (-(-M // BLOCK_M), -(-N // BLOCK_N))
    return Kernel(
        name="gemm",
        summary="C = A B, fp16, one output tile a workgroup",
        problem=problem,
        dtype="fp16",
        grid=Grid((tiles[0] * tiles[1],), tiles),
        flops=2.0 * M * N * K,
        issued_flops=2.0 * tiles[0] * BLOCK_M * tiles[1] * BLOCK_N * (-(-K // BLOCK_K) * BLOCK_K),
        resources=_resources(problem),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("arXiv 2508.20258, appendix A.2", "ROCm gfx950-gluon-tutorials, GEMM kernels"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    m, n, k = problem["M"], problem["N"], problem["K"]
    tiles = -(-m // problem["BLOCK_M"]) * -(-n // problem["BLOCK_N"])
    return Launch(
        path=TRITON,
        function="gemm",
        arguments={
            "a_ptr": Array(shape=(m, k), dtype="fp16"),
            "b_ptr": Array(shape=(k, n), dtype="fp16"),
            "c_ptr": Array(shape=(m, n), dtype="fp16", role="out"),
            **{"M": m, "N": n, "K": k, "stride_am": k, "stride_bk": n, "stride_cm": n},
        },
        constexprs={name: problem[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")},
        grid=(tiles,),
        num_warps=8,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def _check(problem: Mapping[str, int]) -> None:
    for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"):
        block = problem[name]
        if block & (block - 1) or not 16 <= block <= 1024:
            raise SizeError(f"gemm: {name} = {block}: a block is a power of two from 16 to 1024 (tl.dot and tl.arange)")
    steps = -(-problem["K"] // problem["BLOCK_K"])
    workgroups = -(-problem["M"] // problem["BLOCK_M"]) * -(-problem["N"] // problem["BLOCK_N"])
    rows = problem["BLOCK_M"] + problem["BLOCK_K"] * -(-problem["BLOCK_N"] * ITEM_BYTES // 128)
    if workgroups * steps * rows > MAX_TOUCHES or workgroups * steps > MAX_STEPS or workgroups > MAX_WORKGROUPS:
        raise SizeError(
            f"gemm: {problem['M']} x {problem['N']} x {problem['K']} in these tiles is {workgroups} workgroups and "
            f"{workgroups * steps:.1e} steps with about {workgroups * steps * rows:.1e} line touches; the limits are "
            f"{MAX_WORKGROUPS}, {MAX_STEPS:.0e} and {MAX_TOUCHES:.0e}: use larger tiles or a smaller problem"
        )


def _resources(problem: Mapping[str, int]) -> Resources:
    block = (problem["BLOCK_M"], problem["BLOCK_N"], problem["BLOCK_K"])
    if block in COMPILED:
        vgprs, lds = COMPILED[block]
        source = "compiled for gfx942 with Triton 3.9"
    else:
        vgprs, lds = _estimate(*block)
        source = "estimated: fp32 accumulators over 512 threads plus addresses, one stage of A and B in LDS"
    return Resources(
        threads=THREADS,
        vgprs=vgprs,
        lds_bytes=lds,
        instructions_in_flight=2 * NUM_STAGES,
        source=source,
        loads_per_step=2,
    )


def _estimate(block_m: int, block_n: int, block_k: int) -> tuple[int, int]:
    """VGPRs and LDS bytes of a tile nobody compiled: accumulators and as much again for operands and addresses."""
    vgprs = max(64, 2 * block_m * block_n // THREADS)
    return vgprs, (block_m + block_n) * block_k * ITEM_BYTES


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: per K step one load of A, one of B; at the end one store of C."""
    m, n, k = problem["M"], problem["N"], problem["K"]
    block_m, block_n, block_k = problem["BLOCK_M"], problem["BLOCK_N"], problem["BLOCK_K"]
    num_pid_n = -(-n // block_n)
    pid_m, pid_n = np.divmod(np.arange(-(-m // block_m) * num_pid_n, dtype=np.int64), num_pid_n)
    build = TraceBuilder(n_workgroups=pid_m.size, line_bytes=line_bytes)
    a = build.array("A", rows=m, cols=k, item_bytes=ITEM_BYTES)
    b = build.array("B", rows=k, cols=n, item_bytes=ITEM_BYTES)
    c = build.array("C", rows=m, cols=n, item_bytes=ITEM_BYTES)
    row, col = (pid_m * block_m)[:, None], (pid_n * block_n)[:, None]
    inner = np.arange(0, k, block_k, dtype=np.int64)[None, :]
    build.step(
        build.read(a, row=row, col=inner, rows=block_m, cols=block_k),
        build.read(b, row=inner, col=col, rows=block_k, cols=block_n),
    )
    build.step(build.write(c, row=row, col=col, rows=block_m, cols=block_n))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 A and B of unit scale."""
    draw = np.random.default_rng(seed)
    shapes = {"a": (problem["M"], problem["K"]), "b": (problem["K"], problem["N"])}
    return {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """C in fp16, accumulated in fp32."""
    return {"c": (inputs["a"].astype(np.float32) @ inputs["b"].astype(np.float32)).astype(np.float16)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """One-dimensional launches over other tile grids, each once exact and once ragged."""
    for tiles_m, tiles_n in TILES:
        for cut in (0, 1):
            m, n = tiles_m * problem["BLOCK_M"] - cut, tiles_n * problem["BLOCK_N"] - cut
            yield Grid((tiles_m * tiles_n,), (tiles_m, tiles_n)), {**problem, "M": m, "N": n}
