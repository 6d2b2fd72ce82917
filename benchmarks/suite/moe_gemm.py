"""Fused MoE GEMM: sorted token slots gathered by expert, with a bound on the valid blocks that the device reads.

The grid is sized for the worst routing, since the host does not know the lengths: workgroups beyond the bound read it
and leave. The default is the first projection of Qwen3-30B-A3B (128 experts, 8 a token, 2048 x 1536) at 512 tokens.
Lengths are drawn: every token draws TOPK experts without repetition, with Zipf weights over a drawn ranking of them.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from xcd_model.trace.builder import Access

from .declared import Tensor, cdiv, table, up
from .gemm import gemm
from .grouped_gemm import AT_MOST_ONCE, others

MOST_DRAWN = 1 << 25  # half a GiB


@lru_cache(maxsize=32)
def routing(tokens: int, experts: int, topk: int, seed: int, zipf: int) -> np.ndarray:
    """(tokens, topk) int64: experts of each token, by the largest of Gumbel draws on the logarithms of the weights."""
    draw = np.random.default_rng(seed)
    weight = -zipf / 100 * np.log1p(draw.permutation(experts))
    keys = weight + draw.gumbel(size=(tokens, experts))
    return np.sort(np.argsort(-keys, axis=1, kind="stable")[:, :topk], axis=1)


def slot(s) -> np.ndarray:
    """(blocks of BLOCK_M,) int32: slot of each row of each block, ``rows`` for none."""
    padded, first = up(s.lengths, s.BLOCK_M), np.cumsum(s.lengths) - s.lengths
    slots = np.full(s.tiles * s.BLOCK_M, s.rows, np.int64)
    place = np.arange(s.rows) - np.repeat(first, s.lengths)
    slots[np.repeat(np.cumsum(padded) - padded, s.lengths) + place] = np.argsort(s.routed.ravel(), kind="stable")
    return slots.astype(np.int32)


def expert(s) -> np.ndarray:
    """(blocks,) int32: expert of each block that has slots, 0 of the others."""
    blocks = np.repeat(np.arange(s.EXPERTS), cdiv(s.lengths, s.BLOCK_M))
    return np.pad(blocks, (0, s.tiles - blocks.size)).astype(np.int32)


def access(s, build, pid, a, b, c, *tables) -> None:
    """The bound; of a valid block slots, expert, per K step A's rows and B's panel, then C's rows."""
    bound, slot, expert = tables
    (tile, pid_n), inner = pid, np.arange(0, s.K, s.BLOCK_K)
    valid = (tile < s.valid).astype(np.int64)
    build.step(build.read_box(bound, at=(0,), size=(1,)))
    build.step(
        build.read_box(slot, at=(tile * s.BLOCK_M,), size=(s.BLOCK_M * valid,)),
        build.read_box(expert, at=(tile,), size=(valid,)),
    )
    slots = s.slot.astype(np.int64).reshape(s.tiles, s.BLOCK_M)
    real = slots < s.rows
    places, sides = (inner[None, :], (pid_n * s.BLOCK_N)[:, None]), (s.BLOCK_K, s.BLOCK_N)
    if s.K_FAST:
        places, sides = places[::-1], sides[::-1]
    at_b = (s.expert[tile].astype(np.int64)[:, None], *places)
    read = rows_of(build, a, np.where(real, slots // s.TOPK, -1), s.BLOCK_K, inner)
    build.step(
        Access(read.base[tile], read.template[tile]),
        build.read_box(b, at=at_b, size=(valid[:, None], *sides)),
    )
    starts = np.arange(cdiv(s.N, s.BLOCK_N)) * s.BLOCK_N
    stored = rows_of(build, c, np.where(real, slots, -1), s.BLOCK_N, starts, write=True)
    build.step(Access(stored.base[tile, pid_n], stored.template[tile, pid_n]))


def rows_of(build, array, rows: np.ndarray, block: int, starts: np.ndarray, *, write: bool = False) -> Access:
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


def reference(s, a, b, *_) -> np.ndarray:
    """C, accumulated in fp32: slot t * TOPK + j is token t by its j-th expert."""
    a, b = a.astype(np.float32), b.swapaxes(1, 2) if s.K_FAST else b
    parts = [[a[t] @ b[e].astype(np.float32) for e in mine] for t, mine in enumerate(s.routed)]
    return np.array(parts, np.float32).reshape(-1, s.N)


moe_gemm = replace(
    gemm,
    name="moe_gemm",
    summary="rows gathered by expert, blocks beyond a bound leave at once, fp16, lengths drawn by SEED",
    sharing="""\
Rows are slots, (token, choice) pairs sorted by expert and padded to blocks of BLOCK_M. Workgroup (m, n) of a valid
block reads its slots and its expert, the rows of A that its slots name, a BLOCK_K slice per step, and column panel n
of the expert's matrix; it writes its slots' rows of C. Workgroups of one block share rows of A; those of one column
share a panel of B where their blocks have the same expert; a token's row of A is read for each of its TOPK experts.
Blocks beyond the bound, which lie last, read the bound and leave: the launch order ends in workgroups with nothing to
do.""",
    sources=("vLLM, fused_moe.py (layout, early exit)", "Qwen3 technical report, arXiv 2505.09388 (sizes)"),
    sizes={
        **{"TOKENS": 512, "EXPERTS": 128, "TOPK": 8, "N": 1536, "K": 2048},
        "SEED": 1,  # of the routing; another seed is another draw of the lengths
        "ZIPF": 50,  # exponent of the experts' weights, in hundredths: 1 is as good as uniform, 100 halves the second
        **{"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64},
    },
    optional={"WARPS": 4, "K_FAST": False},  # waves of a workgroup; B as (EXPERTS, N, K), as vLLM keeps weights
    derived={
        "b_rows": lambda s: s.N if s.K_FAST else s.K,
        "b_cols": lambda s: s.K if s.K_FAST else s.N,
        "rows": lambda s: s.TOKENS * s.TOPK,
        "worst": lambda s: min(s.rows * s.BLOCK_M, s.rows + s.EXPERTS * (s.BLOCK_M - 1)),  # rows, padded
        "tiles": lambda s: cdiv(s.worst, s.BLOCK_M),  # blocks that the host launches
        "routed": lambda s: routing(s.TOKENS, s.EXPERTS, s.TOPK, s.SEED, s.ZIPF),
        "lengths": lambda s: np.bincount(s.routed.ravel(), minlength=s.EXPERTS),  # slots of each expert, as drawn
        "valid": lambda s: int(cdiv(s.lengths, s.BLOCK_M).sum()),  # blocks that have slots
        "bound": lambda s: np.array([s.valid * s.BLOCK_M], np.int32),
        **{"slot": slot, "expert": expert},
    },
    grid="tiles N/BLOCK_N",
    others=lambda s: others(s, (1, 37, 200, 1000), ((1, 1), (3, 2), (16, 4))),
    tensors={"A": Tensor("TOKENS K"), "B": Tensor("EXPERTS b_rows b_cols"), "C": Tensor("rows N", role="out")}
    | {name: table(name) for name in ("bound", "slot", "expert")},
    arguments="N K ROWS=rows",
    constexprs="TOPK BLOCK_M BLOCK_N BLOCK_K",
    access=access,
    reference=reference,
    flops=lambda s: 2.0 * s.rows * s.N * s.K,
    issued=lambda s: 2.0 * s.valid * s.BLOCK_M * up(s.N, s.BLOCK_N) * up(s.K, s.BLOCK_K),
    rules={
        **AT_MOST_ONCE,
        "WARPS = {s.WARPS}: 1, 2, 4, 8 or 16 waves": lambda s: s.WARPS in (1, 2, 4, 8, 16),
        "TOKENS = {s.TOKENS}, EXPERTS = {s.EXPERTS}: the routing draws a number for each pair of them, fewer than "
        f"{MOST_DRAWN}": lambda s: s.TOKENS * s.EXPERTS < MOST_DRAWN,
    },
    items={"A": "TOKENS K", "C": "rows N"},
    estimate=None,
    function=lambda s: "moe_gemm_k_fast" if s.K_FAST else "",
    num_warps="WARPS",
    compiled={((64, 128, 64), 4): (120, 24 * 1024)},
)
