"""Fused MoE GEMM: sorted token slots gathered by expert, with a bound on the valid blocks that the device reads.

The grid is sized for the worst routing, since the host does not know the lengths: workgroups beyond the bound read it
and leave. The default is the first projection of Qwen3-30B-A3B (128 experts, 8 a token, 2048 x 1536) at 512 tokens.
Lengths are drawn: every token draws TOPK experts without repetition, with Zipf weights over a drawn ranking of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder
from xcd_model.errors import SizeError
from xcd_model.trace.builder import Access, PlacedArray

from .base import check_dot_block, check_items, check_traceable, lines_of, resources

NAME = "moe_gemm"
NUM_WARPS = 4
NUM_STAGES = 2
COMPILED = {((64, 128, 64), NUM_WARPS): (120, 24 * 1024)}  # (tile, waves): (VGPRs, LDS bytes)
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")
HUNDREDTHS = 100  # of the Zipf exponent

SHARING = """\
Rows are slots, (token, choice) pairs sorted by expert and padded to blocks of BLOCK_M. Workgroup (m, n) of a valid
block reads its slots and its expert, the rows of A that its slots name, a BLOCK_K slice per step, and column panel n
of the expert's matrix; it writes its slots' rows of C. Workgroups of one block share rows of A; those of one column
share a panel of B where their blocks have the same expert; a token's row of A is read for each of its TOPK experts.
Blocks beyond the bound, which lie last, read the bound and leave: the launch order ends in workgroups with nothing to
do."""


def moe_gemm(
    *,
    TOKENS: int = 512,
    EXPERTS: int = 128,
    TOPK: int = 8,
    N: int = 1536,
    K: int = 2048,
    SEED: int = 1,
    ZIPF: int = 50,
    BLOCK_M: int = 64,
    BLOCK_N: int = 128,
    BLOCK_K: int = 64,
) -> Kernel:
    """Fused MoE GEMM in fp16.

    Parameters
    ----------
    TOKENS, EXPERTS, TOPK : int
        Every token goes to TOPK of EXPERTS, at most all of them.
    N, K : int
        A is (TOKENS, K), B is (EXPERTS, K, N), C is (TOKENS * TOPK, N).
    SEED : int
        Of the routing; another seed is another draw of the lengths.
    ZIPF : int
        Exponent of the experts' weights, in hundredths: 1 is as good as uniform, 100 halves the second.
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
    problem = {"TOKENS": TOKENS, "EXPERTS": EXPERTS, "TOPK": TOPK, "N": N, "K": K, "SEED": SEED, "ZIPF": ZIPF}
    problem |= {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    _check(problem)
    tiles, valid = tiles_of(problem), valid_tiles(problem)
    return Kernel(
        name=NAME,
        summary="rows gathered by expert, blocks beyond a bound leave at once, fp16, lengths drawn by SEED",
        problem=problem,
        dtype="fp16",
        grid=Grid((tiles[0] * tiles[1],), tiles),
        flops=2.0 * TOKENS * TOPK * N * K,
        issued_flops=2.0 * valid * BLOCK_M * tiles[1] * BLOCK_N * (-(-K // BLOCK_K) * BLOCK_K),
        resources=resources(
            COMPILED, (BLOCK_M, BLOCK_N, BLOCK_K), num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES, loads_per_step=2
        ),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(inputs, problem),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("vLLM, fused_moe.py (layout, early exit)", "Qwen3 technical report, arXiv 2505.09388 (sizes)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def lengths_of(problem: Mapping[str, int]) -> np.ndarray:
    """(EXPERTS,) int64: slots of each expert, as drawn."""
    return np.bincount(_routed(problem).ravel(), minlength=problem["EXPERTS"])


def _routed(problem: Mapping[str, int]) -> np.ndarray:
    return _draw(*(problem[name] for name in ("TOKENS", "EXPERTS", "TOPK", "SEED", "ZIPF")))


@lru_cache(maxsize=32)
def _draw(tokens: int, experts: int, topk: int, seed: int, zipf: int) -> np.ndarray:
    """(tokens, topk) int64: experts of each token, by the largest of Gumbel draws on the logarithms of the weights."""
    draw = np.random.default_rng(seed)
    weight = -zipf / HUNDREDTHS * np.log1p(draw.permutation(experts))
    keys = weight + draw.gumbel(size=(tokens, experts))
    return np.sort(np.argsort(-keys, axis=1, kind="stable")[:, :topk], axis=1)


def tables(problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """What the device is given: the bound, the slot of each row of each block, and the expert of each block; int32."""
    experts, block, rows = problem["EXPERTS"], problem["BLOCK_M"], problem["TOKENS"] * problem["TOPK"]
    routed = _routed(problem).ravel()
    lengths = np.bincount(routed, minlength=experts)
    padded = -(-lengths // block) * block
    slots = np.full(tiles_of(problem)[0] * block, rows, np.int64)
    order = np.argsort(routed, kind="stable")
    place = np.arange(rows) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    slots[np.repeat(np.cumsum(padded) - padded, lengths) + place] = order
    of_block = np.zeros(tiles_of(problem)[0], np.int64)
    blocks = np.repeat(np.arange(experts), padded // block)
    of_block[: blocks.size] = blocks
    columns = {"bound": np.array([padded.sum()]), "slot": slots, "expert": of_block}
    return {name: values.astype(np.int32) for name, values in columns.items()}


def tiles_of(problem: Mapping[str, int]) -> tuple[int, int]:
    """Blocks of the worst routing, which the host launches, and column tiles."""
    rows, block = problem["TOKENS"] * problem["TOPK"], problem["BLOCK_M"]
    worst = min(rows * block, rows + problem["EXPERTS"] * (block - 1))
    return -(-worst // block), -(-problem["N"] // problem["BLOCK_N"])


def valid_tiles(problem: Mapping[str, int]) -> int:
    """Blocks that have slots, as drawn."""
    return int((-(-lengths_of(problem) // problem["BLOCK_M"])).sum())


def _check(problem: Mapping[str, int]) -> None:
    blocks = {name: problem[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")}
    check_dot_block(NAME, **blocks)
    if problem["TOPK"] > problem["EXPERTS"]:
        raise SizeError(
            f"{NAME}: TOPK = {problem['TOPK']}, EXPERTS = {problem['EXPERTS']}: a token goes to an expert at most once"
        )
    rows = problem["TOKENS"] * problem["TOPK"]
    check_items(NAME, "A or C", rows * max(problem["K"], problem["N"]))
    check_items(NAME, "the routing", problem["TOKENS"] * problem["EXPERTS"] * 64)
    workgroups = int(tiles_of(problem)[0] * tiles_of(problem)[1])
    steps = workgroups * -(-problem["K"] // blocks["BLOCK_K"])
    lines = lines_of(blocks["BLOCK_M"], blocks["BLOCK_K"]) + lines_of(blocks["BLOCK_K"], blocks["BLOCK_N"])
    check_traceable(NAME, workgroups=workgroups, instructions=2.0 * steps, touches=steps * lines)


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    rows, n, k = problem["TOKENS"] * problem["TOPK"], problem["N"], problem["K"]
    tiles = tiles_of(problem)
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "a_ptr": Array(shape=(problem["TOKENS"], k), dtype="fp16"),
            "b_ptr": Array(shape=(problem["EXPERTS"], k, n), dtype="fp16"),
            "c_ptr": Array(shape=(rows, n), dtype="fp16", role="out"),
            "bound_ptr": Array(shape=(1,), dtype="int32", is_index=True),
            "slot_ptr": Array(shape=(tiles[0] * problem["BLOCK_M"],), dtype="int32", is_index=True),
            "expert_ptr": Array(shape=(tiles[0],), dtype="int32", is_index=True),
            **{"N": n, "K": k, "ROWS": rows},
        },
        constexprs={name: problem[name] for name in ("TOPK", "BLOCK_M", "BLOCK_N", "BLOCK_K")},
        grid=(tiles[0] * tiles[1],),
        num_warps=NUM_WARPS,
        num_stages=NUM_STAGES,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: the bound; of a valid block slots, expert, per K step A's rows and B's panel, then C's rows."""
    n, k, rows = problem["N"], problem["K"], problem["TOKENS"] * problem["TOPK"]
    block_m, block_n, block_k = problem["BLOCK_M"], problem["BLOCK_N"], problem["BLOCK_K"]
    row_tiles, num_pid_n = tiles_of(problem)
    tile, pid_n = np.divmod(np.arange(row_tiles * num_pid_n, dtype=np.int64), num_pid_n)
    found, valid = tables(problem), (tile < valid_tiles(problem)).astype(np.int64)
    build = TraceBuilder(n_workgroups=tile.size, line_bytes=line_bytes)
    a = build.place("A", shape=(problem["TOKENS"], k), item_bytes=2)
    b = build.place("B", shape=(problem["EXPERTS"], k, n), item_bytes=2)
    c = build.place("C", shape=(rows, n), item_bytes=2)
    bound, slot, expert = (build.place(name, shape=values.shape, item_bytes=4) for name, values in found.items())
    build.step(build.read_box(bound, at=(0,), size=(1,)))
    build.step(
        build.read_box(slot, at=(tile * block_m,), size=(block_m * valid,)),
        build.read_box(expert, at=(tile,), size=(valid,)),
    )
    slots = found["slot"].astype(np.int64).reshape(row_tiles, block_m)
    real, inner = slots < rows, np.arange(0, k, block_k, dtype=np.int64)
    at_b = (found["expert"][tile].astype(np.int64)[:, None], inner[None, :], (pid_n * block_n)[:, None])
    build.step(
        _of(_rows(build, a, np.where(real, slots // problem["TOPK"], -1), block_k, inner), tile),
        build.read_box(b, at=at_b, size=(valid[:, None], block_k, block_n)),
    )
    stored = _rows(build, c, np.where(real, slots, -1), block_n, np.arange(num_pid_n) * block_n, write=True)
    build.step(_of(stored, (tile, pid_n)))
    return build.trace()


def _of(access: Access, at) -> Access:
    """What groups touch, handed out to workgroups."""
    return Access(access.base[at], access.template[at])


def _rows(
    build: TraceBuilder, array: PlacedArray, rows: np.ndarray, block: int, starts: np.ndarray, *, write: bool = False
) -> Access:
    """Rows of a matrix, -1 for none, in columns from each start on: an access of (tiles, starts)."""
    width, tiles = array.shape[1], rows.shape[0]

    def items(first: np.ndarray) -> np.ndarray:
        """Items of the tiles from each start on, -1 for none: (tiles, first.size, rows times block)."""
        col = first[:, None] + np.arange(block)
        found = rows[:, None, :, None] * width + col[None, :, None, :]
        found = np.where((rows >= 0)[:, None, :, None] & (col < width)[None, :, None, :], found, -1)
        return found.reshape(tiles, first.size, -1)

    if width % block or block * 2 % build.line_bytes:
        return build.gather(array, items(starts), write=write, groups=tiles)
    one = build.gather(array, items(starts[:1]), write=write, groups=tiles)  # whole lines: the others are shifted
    base = one.base + starts[None, :] * 2 // build.line_bytes
    return Access(base, np.broadcast_to(one.template, base.shape))


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp16 A and B of unit scale, and the tables, which SEED draws and ``seed`` does not change."""
    draw = np.random.default_rng(seed)
    tokens, experts, n, k = (problem[name] for name in ("TOKENS", "EXPERTS", "N", "K"))
    shapes = {"a": (tokens, k), "b": (experts, k, n)}
    values = {name: draw.standard_normal(shape, np.float32).astype(np.float16) for name, shape in shapes.items()}
    return values | tables(problem)


def reference(inputs: Mapping[str, np.ndarray], problem: Mapping[str, int]) -> dict[str, np.ndarray]:
    """C in fp16, accumulated in fp32: slot t * TOPK + j is token t by its j-th expert."""
    a = inputs["a"].astype(np.float32)
    parts = [[a[t] @ inputs["b"][e].astype(np.float32) for e in mine] for t, mine in enumerate(_routed(problem))]
    return {"c": np.array(parts, np.float32).reshape(-1, problem["N"]).astype(np.float16)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other token counts, experts and widths: experts without tokens, with one block and with many."""
    for tokens in (1, 37, 200, 1000):
        for experts, topk in ((1, 1), (3, 2), (16, 4)):
            for width in (1, 5, 8):
                n = width * problem["BLOCK_N"] - tokens % 2
                sizes = {**problem, "TOKENS": tokens, "EXPERTS": experts, "TOPK": topk, "N": n}
                tiles = tiles_of(sizes)
                yield Grid((tiles[0] * tiles[1],), tiles), sizes
