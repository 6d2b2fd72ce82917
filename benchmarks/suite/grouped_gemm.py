"""Grouped GEMM of a mixture of experts: token rows sorted by expert, each expert's rows against its own matrix.

The default is the first projection of Mixtral 8x7B (arXiv 2401.04088: 8 experts, 2 for each token, 4096 x 14336) at
4096 tokens, on one GPU of four that share the columns. Loads are uneven, as routers make them: they fall linearly, the
first expert gets nearly three times the last.
"""

import itertools
from dataclasses import replace

import numpy as np

from .declared import Tensor, cdiv, table, up
from .gemm import gemm

TABLES = ("expert", "first_row", "end_row")
AT_MOST_ONCE = {
    "TOPK = {s.TOPK}, EXPERTS = {s.EXPERTS}: a token goes to an expert at most once": lambda s: s.TOPK <= s.EXPERTS
}


def offsets(s) -> np.ndarray:
    """(EXPERTS + 1,) int64: first row of each expert, and the number of rows."""
    load = np.cumsum([0, *(3 * s.EXPERTS - 2 * e for e in range(s.EXPERTS))], dtype=np.int64)
    return s.rows * load // load[-1]


def of_tiles(s) -> np.ndarray:
    """Expert, first row and row behind the last of each row tile, (3, tiles) int32."""
    expert = np.repeat(np.arange(s.EXPERTS), s.counts)
    within = np.arange(expert.size) - np.repeat(np.cumsum(s.counts) - s.counts, s.counts)
    return np.stack([expert, s.offsets[expert] + within * s.BLOCK_M, s.offsets[expert + 1]]).astype(np.int32)


def others(s, tokens, experts):
    """Experts without tokens, with one tile and with many, by numbers of tokens, of experts and of those of a token."""
    for rows, (n, topk), width in itertools.product(tokens, experts, (1, 5, 8)):
        yield {"TOKENS": rows, "EXPERTS": n, "TOPK": topk, "N": width * s.BLOCK_N - rows % 2}


def access(s, build, pid, a, b, c, *tables) -> None:
    """Three table entries; per K step one load of A, one of B; at the end one store of C."""
    tile, col, inner = pid[0], pid[1] * s.BLOCK_N, np.arange(0, s.K, s.BLOCK_K)[None, :]
    build.step(*(build.read_box(one, at=(tile,), size=(1,)) for one in tables))
    expert, first, end = s.of_tiles.astype(np.int64)[:, tile]
    high = np.minimum(s.BLOCK_M, end - first)
    build.step(
        build.read_box(a, at=(first[:, None], inner), size=(high[:, None], s.BLOCK_K)),
        build.read_box(b, at=(expert[:, None], inner, col[:, None]), size=(1, s.BLOCK_K, s.BLOCK_N)),
    )
    build.step(build.write_box(c, at=(first, col), size=(high, s.BLOCK_N)))


def reference(s, a, b, *_) -> np.ndarray:
    """C, accumulated in fp32, expert by expert."""
    a, ends = a.astype(np.float32), itertools.pairwise(s.offsets)
    return np.concatenate([a[first:end] @ b[e].astype(np.float32) for e, (first, end) in enumerate(ends)])


grouped_gemm = replace(
    gemm,
    name="grouped_gemm",
    summary="rows sorted by expert times their expert's matrix, fp16, one output tile a workgroup",
    sharing="""\
Rows are tokens sorted by expert, cut into tiles of BLOCK_M that never span two experts. Workgroup (m, n) reads three
table entries of tile m, row tile m of A and column panel n of its expert's matrix in B, a BLOCK_K slice of each per
step, and writes tile (m, n) of C once. Tiles of one row share the A panel; tiles of one column share a B panel only if
they belong to the same expert. Experts have different numbers of row tiles, so a band of rows may span two of them.""",
    sources=("MegaBlocks, arXiv 2211.15841 (grouped form)", "Mixtral, arXiv 2401.04088 (sizes)"),
    sizes={"TOKENS": 4096, "EXPERTS": 8, "TOPK": 2, "N": 3584, "K": 4096}
    | {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    derived={
        "rows": lambda s: s.TOKENS * s.TOPK,
        "offsets": offsets,
        "counts": lambda s: cdiv(np.diff(s.offsets), s.BLOCK_M),  # row tiles of each expert
        "tiles": lambda s: int(s.counts.sum()),
        "of_tiles": of_tiles,
        **{name: lambda s, i=i: s.of_tiles[i] for i, name in enumerate(TABLES)},
    },
    grid="tiles N/BLOCK_N",
    others=lambda s: others(s, (1, 37, 200, 1000, 1531), ((1, 1), (3, 2), (8, 2), (16, 1))),
    tensors={"A": Tensor("rows K"), "B": Tensor("EXPERTS K N"), "C": Tensor("rows N", role="out")}
    | {name: table(name) for name in TABLES},
    arguments="N K",
    access=access,
    reference=reference,
    flops=lambda s: 2.0 * s.rows * s.N * s.K,
    issued=lambda s: 2.0 * s.tiles * s.BLOCK_M * up(s.N, s.BLOCK_N) * up(s.K, s.BLOCK_K),
    rules={**AT_MOST_ONCE, "EXPERTS = {s.EXPERTS}: at most 65536": lambda s: s.EXPERTS <= 1 << 16},
    items={"A": "rows K", "C": "rows N"},
    estimate=None,
    compiled={((128, 128, 64), 8): (120, 32 * 1024)},
)
