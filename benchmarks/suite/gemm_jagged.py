"""Jagged GEMM: groups of rows of drawn lengths, packed; each group by its own matrix, with a bias.

The host launches blocks for S rows of every group, since only the device knows the lengths; workgroups beyond a group's
end read where it begins and ends, and leave. Lengths are drawn by SEED, evenly between LEAST hundredths of S and S. The
default is a shape of HSTU's models: 120 groups of up to 7680 rows, 512 x 512.
"""

import itertools
from dataclasses import replace

import numpy as np

from .declared import Tensor, cdiv, lines_of, table, up
from .gemm import gemm


def lengths(s) -> np.ndarray:
    """(GROUPS,) int64: rows of each group, as drawn."""
    return np.random.default_rng(s.SEED).integers(max(1, s.S * s.LEAST // 100), s.S + 1, s.GROUPS)


def access(s, build, pid, a, b, bias, c, offset) -> None:
    """Begin and end of the group; of a block inside it per K step A and B, then the bias, then C."""
    (group, block), starts, col = np.divmod(pid[0], s.BLOCKS), s.offset.astype(np.int64), pid[1] * s.BLOCK_N
    first, end = starts[group] + block * s.BLOCK_M, starts[group + 1]
    high, valid = np.clip(end - first, 0, s.BLOCK_M), (first < end).astype(np.int64)
    build.step(build.read_box(offset, at=(group,), size=(1,)))
    build.step(build.read_box(offset, at=(group + 1,), size=(1,)))
    inner = np.arange(0, s.K, s.BLOCK_K)[None, :]
    at_b, of_b = (group[:, None], col[:, None], inner), (valid[:, None], s.BLOCK_N, s.BLOCK_K)
    build.step(
        build.read_box(a, at=(first[:, None], inner), size=(high[:, None], s.BLOCK_K)),
        build.read_box(b, at=at_b, size=of_b),
    )
    build.step(build.read_box(bias, at=(group, col), size=(valid, s.BLOCK_N)))
    build.step(build.write_box(c, at=(first, col), size=(high, s.BLOCK_N)))


def reference(s, a, b, bias, offset) -> np.ndarray:
    """C, accumulated in fp32, group by group."""
    a, b, bias = (values.astype(np.float32) for values in (a, b, bias))
    ends = itertools.pairwise(offset.tolist())
    return np.concatenate([a[first:end] @ b[group].T + bias[group] for group, (first, end) in enumerate(ends)])


gemm_jagged = replace(
    gemm,
    name="gemm_jagged",
    summary="packed rows of groups times their group's matrix, early exit, fp16, lengths drawn by SEED",
    sharing="""\
Rows are those of GROUPS groups, packed; row tile m is block m % (S / BLOCK_M, rounded up) of group m // that many.
Workgroup (m, n) reads where its group begins and ends; if its block lies beyond the end it leaves. Else it reads its
rows of A and rows BLOCK_N n, ... of its group's matrix in B, a BLOCK_K slice of each per step, then a slice of the
group's bias, and writes tile (m, n) of C once. Tiles of one row tile share rows of A; tiles of one column share a panel
of B where they belong to the same group. Workgroups that leave at once lie at the end of each group.""",
    sources=("ROCm/aiter PR 4042 (layout, tile, early exit)", "facebookresearch/generative-recommenders (HSTU)"),
    sizes={"GROUPS": 120, "S": 7680, "N": 512, "K": 512, "LEAST": 1, "SEED": 1}
    | {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    derived={
        "lengths": lengths,
        "rows": lambda s: int(s.lengths.sum()),
        "offset": lambda s: np.concatenate([[0], np.cumsum(s.lengths)]).astype(np.int32),  # first row of each, and all
        "BLOCKS": lambda s: cdiv(s.S, s.BLOCK_M),  # that each group is launched with
    },
    grid="GROUPS*S/BLOCK_M N/BLOCK_N",
    # one group and many, of one block and of several
    others=lambda s: (
        {"GROUPS": groups, "S": blocks * s.BLOCK_M - cut, "N": width * s.BLOCK_N - cut}
        for groups, blocks, width in itertools.product((1, 3, 8, 13), (1, 2, 5, 8), (1, 4, 5))
        for cut in [(groups + blocks) % 2]
    ),
    tensors={"A": Tensor("rows K"), "B": Tensor("GROUPS N K"), "bias": Tensor("GROUPS N")}
    | {"C": Tensor("rows N", role="out"), "offset": table("offset")},
    arguments="N K BLOCKS",
    access=access,
    reference=reference,
    flops=lambda s: 2.0 * s.rows * s.N * s.K,
    issued=lambda s: 2.0 * int(up(s.lengths, s.BLOCK_M).sum()) * up(s.N, s.BLOCK_N) * up(s.K, s.BLOCK_K),
    rules={"LEAST = {s.LEAST}: hundredths of S, at most 100": lambda s: s.LEAST <= 100},
    items={"A": "GROUPS S K", "C": "GROUPS S N"},
    work=lambda s: (2 * cdiv(s.K, s.BLOCK_K) + 4, cdiv(s.K, s.BLOCK_K) * lines_of(s.BLOCK_M + s.BLOCK_N, s.BLOCK_K)),
    estimate=None,
    num_warps=4,
    compiled={((128, 128, 64), 4): (136, 32 * 1024)},
)
