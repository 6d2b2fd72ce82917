"""Grouped GEMM of a mixture of experts: token rows sorted by expert, each expert's rows against its own matrix.

The default is the first projection of Mixtral 8x7B (arXiv 2401.04088: 8 experts, 2 for each token, 4096 x 14336) at
4096 tokens, on one GPU of four that share the columns. Loads are uneven, as routers make them: they fall linearly, the
first expert gets nearly three times the last.
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

from .base import check_dot_block, check_items, check_traceable, lines_of, resources

NAME = "grouped_gemm"
NUM_WARPS = 8
NUM_STAGES = 2
COMPILED = {((128, 128, 64), NUM_WARPS): (120, 32 * 1024)}  # (tile, waves): (VGPRs, LDS bytes)
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")

SHARING = """\
Rows are tokens sorted by expert, cut into tiles of BLOCK_M that never span two experts. Workgroup (m, n) reads three
table entries of tile m, row tile m of A and column panel n of its expert's matrix in B, a BLOCK_K slice of each per
step, and writes tile (m, n) of C once. Tiles of one row share the A panel; tiles of one column share a B panel only if
they belong to the same expert. Experts have different numbers of row tiles, so a band of rows may span two of them."""


def grouped_gemm(
    *,
    TOKENS: int = 4096,
    EXPERTS: int = 8,
    TOPK: int = 2,
    N: int = 3584,
    K: int = 4096,
    BLOCK_M: int = 128,
    BLOCK_N: int = 128,
    BLOCK_K: int = 64,
) -> Kernel:
    """Grouped GEMM in fp16.

    Parameters
    ----------
    TOKENS, EXPERTS, TOPK : int
        Every token goes to TOPK of EXPERTS: A has TOKENS * TOPK rows. TOPK is at most EXPERTS.
    N, K : int
        A is (rows, K), B is (EXPERTS, K, N), C is (rows, N).
    BLOCK_M, BLOCK_N, BLOCK_K : int
        Tile; powers of two from 16 to 1024.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a token would go to an expert twice, a block is no power of two in range, or the problem is too large to
        trace.
    """
    problem = {"TOKENS": TOKENS, "EXPERTS": EXPERTS, "TOPK": TOPK, "N": N, "K": K}
    problem |= {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    _check(problem)
    tiles = tiles_of(problem)
    return Kernel(
        name=NAME,
        summary="rows sorted by expert times their expert's matrix, fp16, one output tile a workgroup",
        problem=problem,
        dtype="fp16",
        grid=Grid((tiles[0] * tiles[1],), tiles),
        flops=2.0 * TOKENS * TOPK * N * K,
        issued_flops=2.0 * tiles[0] * BLOCK_M * tiles[1] * BLOCK_N * (-(-K // BLOCK_K) * BLOCK_K),
        resources=resources(
            COMPILED, (BLOCK_M, BLOCK_N, BLOCK_K), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES, loads_per_step=2
        ),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(inputs, problem),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("MegaBlocks, arXiv 2211.15841 (grouped form)", "Mixtral, arXiv 2401.04088 (sizes)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def offsets_of(problem: Mapping[str, int]) -> np.ndarray:
    """(EXPERTS + 1,) int64: first row of each expert, and the number of rows."""
    experts, rows = problem["EXPERTS"], problem["TOKENS"] * problem["TOPK"]
    load = np.cumsum([0, *(3 * experts - 2 * e for e in range(experts))], dtype=np.int64)
    return rows * load // load[-1]


def tables(problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Expert, first row and row behind the last of each row tile, (tiles,) int32 each."""
    offsets, block = offsets_of(problem), problem["BLOCK_M"]
    count = -(-np.diff(offsets) // block)
    expert = np.repeat(np.arange(problem["EXPERTS"]), count)
    within = np.arange(expert.size) - np.repeat(np.cumsum(count) - count, count)
    columns = {"expert": expert, "first_row": offsets[expert] + within * block, "end_row": offsets[expert + 1]}
    return {name: values.astype(np.int32) for name, values in columns.items()}


def tiles_of(problem: Mapping[str, int]) -> tuple[int, int]:
    """Row tiles of all experts, and column tiles."""
    row_tiles = -(-np.diff(offsets_of(problem)) // problem["BLOCK_M"])
    return int(row_tiles.sum()), -(-problem["N"] // problem["BLOCK_N"])


def _check(problem: Mapping[str, int]) -> None:
    blocks = {name: problem[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")}
    check_dot_block(NAME, **blocks)
    if problem["TOPK"] > problem["EXPERTS"]:
        raise SizeError(
            f"{NAME}: TOPK = {problem['TOPK']}, EXPERTS = {problem['EXPERTS']}: a token goes to an expert at most once"
        )
    if problem["EXPERTS"] > 1 << 16:
        raise SizeError(f"{NAME}: EXPERTS = {problem['EXPERTS']}: at most {1 << 16}")
    rows = problem["TOKENS"] * problem["TOPK"]
    check_items(NAME, "A or C", rows * max(problem["K"], problem["N"]))
    row_tiles = rows / blocks["BLOCK_M"] + problem["EXPERTS"]
    workgroups = int(row_tiles * -(-problem["N"] // blocks["BLOCK_N"]))
    steps = workgroups * -(-problem["K"] // blocks["BLOCK_K"])
    lines = lines_of(blocks["BLOCK_M"], blocks["BLOCK_K"]) + lines_of(blocks["BLOCK_K"], blocks["BLOCK_N"])
    check_traceable(NAME, workgroups=workgroups, instructions=2.0 * steps, touches=steps * lines)


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    rows, experts, n, k = problem["TOKENS"] * problem["TOPK"], problem["EXPERTS"], problem["N"], problem["K"]
    tiles = tiles_of(problem)
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "a_ptr": Array(shape=(rows, k), dtype="fp16"),
            "b_ptr": Array(shape=(experts, k, n), dtype="fp16"),
            "c_ptr": Array(shape=(rows, n), dtype="fp16", role="out"),
            **{
                f"{name}_ptr": Array(shape=(tiles[0],), dtype="int32", is_index=True)
                for name in ("expert", "first_row", "end_row")
            },
            **{"N": n, "K": k},
        },
        constexprs={name: problem[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")},
        grid=(tiles[0] * tiles[1],),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: three table entries; per K step one load of A, one of B; at the end one store of C."""
    n, k, rows = problem["N"], problem["K"], problem["TOKENS"] * problem["TOPK"]
    block_m, block_n, block_k = problem["BLOCK_M"], problem["BLOCK_N"], problem["BLOCK_K"]
    row_tiles, num_pid_n = tiles_of(problem)
    tile, pid_n = np.divmod(np.arange(row_tiles * num_pid_n, dtype=np.int64), num_pid_n)
    columns = tables(problem)
    build = TraceBuilder(n_workgroups=tile.size, line_bytes=line_bytes)
    a = build.place("A", shape=(rows, k), item_bytes=2)
    b = build.place("B", shape=(problem["EXPERTS"], k, n), item_bytes=2)
    c = build.place("C", shape=(rows, n), item_bytes=2)
    placed = [build.place(name, shape=(row_tiles,), item_bytes=4) for name in columns]
    build.step(*(build.read_box(table, at=(tile,), size=(1,)) for table in placed))
    expert, first, end = (values[tile].astype(np.int64) for values in columns.values())
    high, col, inner = np.minimum(block_m, end - first), pid_n * block_n, np.arange(0, k, block_k)[None, :]
    build.step(
        build.read_box(a, at=(first[:, None], inner), size=(high[:, None], block_k)),
        build.read_box(b, at=(expert[:, None], inner, col[:, None]), size=(1, block_k, block_n)),
    )
    build.step(build.write_box(c, at=(first, col), size=(high, block_n)))
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 A and B of unit scale, and the tile tables, which the seed does not change."""
    draw = np.random.default_rng(seed)
    rows, experts, n, k = problem["TOKENS"] * problem["TOPK"], problem["EXPERTS"], problem["N"], problem["K"]
    shapes = {"a": (rows, k), "b": (experts, k, n)}
    values = {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}
    return values | tables(problem)


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """C in fp16, accumulated in fp32, expert by expert."""
    offsets = offsets_of(problem)
    a, b = inputs["a"].astype(np.float32), inputs["b"]
    parts = [a[offsets[e] : offsets[e + 1]] @ b[e].astype(np.float32) for e in range(problem["EXPERTS"])]
    return {"c": np.concatenate(parts).astype(np.float16)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other token counts, experts and widths: experts without tokens, with one tile and with many."""
    for tokens in (1, 37, 200, 1000, 1531):
        for experts, topk in ((1, 1), (3, 2), (8, 2), (16, 1)):
            for width in (1, 5, 8):
                n = width * problem["BLOCK_N"] - tokens % 2
                sizes = {**problem, "TOKENS": tokens, "EXPERTS": experts, "TOPK": topk, "N": n}
                tiles = tiles_of(sizes)
                yield Grid((tiles[0] * tiles[1],), tiles), sizes
