"""Smith-Waterman as measured for the paper: the scores of all pairs of symbols, each tile written once.

The recurrence that gives the algorithm its name is not in it: tiles do not depend on each other.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 8192 x 8192 symbols.
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

TRITON = Path(__file__).with_name("smith_waterman_triton.py")
SYMBOL_BYTES, SCORE_BYTES = 1, 4  # int8, int32
OPERATIONS_PER_ITEM = 2  # compare, choose
ALPHABET = 4
MATCH, MISMATCH = 2, -1
NUM_WARPS = 4
COMPILED = {((32, 32), 4): (16, 0, 560), ((64, 64), 4): (32, 0, 1032)}

SHARING = """\
Workgroup (m, n) reads BLOCK_SIZE_M symbols of the first sequence and BLOCK_SIZE_N of the second and writes tile (m, n)
of the scores. Tiles of one tile row share the first piece, tiles of one tile column the second; both sequences are
small and stay in the L2. Nearly all traffic is the scores, written once."""


def smith_waterman(*, M: int = 8192, N: int = 8192, BLOCK_SIZE_M: int = 32, BLOCK_SIZE_N: int = 32) -> Kernel:
    """Scores of two sequences of M and N symbols.

    Raises
    ------
    SizeError
        If a block is no power of two, or the problem is too large to trace.
    """
    problem = {"M": M, "N": N, "BLOCK_SIZE_M": BLOCK_SIZE_M, "BLOCK_SIZE_N": BLOCK_SIZE_N}
    check_block("smith_waterman", BLOCK_SIZE_M=BLOCK_SIZE_M, BLOCK_SIZE_N=BLOCK_SIZE_N)
    check_items("smith_waterman", "the score matrix", M * N)
    tiles = (-(-M // BLOCK_SIZE_M), -(-N // BLOCK_SIZE_N))
    workgroups = tiles[0] * tiles[1]
    touches = workgroups * (2 + BLOCK_SIZE_M * (1 + BLOCK_SIZE_N * SCORE_BYTES / 128))
    check_traceable("smith_waterman", workgroups=workgroups, instructions=3 * workgroups, touches=touches)
    return Kernel(
        name="smith_waterman",
        summary="scores of all pairs of symbols, int8 to int32, one tile a workgroup",
        problem=problem,
        dtype="fp32",
        grid=Grid(tiles),
        flops=float(OPERATIONS_PER_ITEM * M * N),
        issued_flops=float(OPERATIONS_PER_ITEM * workgroups * BLOCK_SIZE_M * BLOCK_SIZE_N),
        resources=resources(COMPILED, (BLOCK_SIZE_M, BLOCK_SIZE_N), num_warps=NUM_WARPS, in_flight=2),
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
        function="smith_waterman",
        arguments={
            "seq1_ptr": Array(shape=(m,), dtype="int8"),
            "seq2_ptr": Array(shape=(n,), dtype="int8"),
            "score_ptr": Array(shape=(m, n), dtype="int32", role="out"),
            **{"M": m, "N": n, "match": MATCH, "mismatch": MISMATCH},
        },
        constexprs=blocks,
        grid=(-(-m // blocks["BLOCK_SIZE_M"]), -(-n // blocks["BLOCK_SIZE_N"])),
        num_warps=NUM_WARPS,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: a piece of each sequence, a tile of scores."""
    m, n = problem["M"], problem["N"]
    block_m, block_n = problem["BLOCK_SIZE_M"], problem["BLOCK_SIZE_N"]
    pid_n, pid_m = np.divmod(np.arange(-(-m // block_m) * -(-n // block_n)), -(-m // block_m))
    build = TraceBuilder(n_workgroups=pid_m.size, line_bytes=line_bytes)
    seq1 = build.place("seq1", shape=(m,), item_bytes=SYMBOL_BYTES)
    seq2 = build.place("seq2", shape=(n,), item_bytes=SYMBOL_BYTES)
    score = build.array("score", rows=m, cols=n, item_bytes=SCORE_BYTES)
    build.step(
        build.read_box(seq1, at=(pid_m * block_m,), size=(block_m,)),
        build.read_box(seq2, at=(pid_n * block_n,), size=(block_n,)),
        build.write(score, row=pid_m * block_m, col=pid_n * block_n, rows=block_m, cols=block_n),
    )
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random sequences over four symbols."""
    draw = np.random.default_rng(seed)
    return {name: draw.integers(0, ALPHABET, problem[size], np.int8) for name, size in (("seq1", "M"), ("seq2", "N"))}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Scores in int32."""
    same = np.equal.outer(inputs["seq1"], inputs["seq2"])
    return {"score": np.where(same, MATCH, MISMATCH).astype(np.int32)}
