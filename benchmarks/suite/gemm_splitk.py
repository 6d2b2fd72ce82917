"""Split-K GEMM with unified ids: one row of workgroups over output tiles and splits of K, partial products in fp32.

A swizzle orders the unified ids, so that it decides where the splits of a tile run as well as the tiles. Joining the
partial products is a second, small launch that is not part of it. The default is the last projection of Llama 3 70B's
MLP (K = 28672, N = 8192) at 256 tokens, in 4 splits.
Sources: ROCm/aiter (unified ids, partial products); some of its kernels remap the unified id, some the tile's only.
"""

import itertools
from dataclasses import replace

import numpy as np

from .declared import GRIDS, Tensor, cdiv
from .gemm import gemm, work


def access(s, build, pid, a, b, part) -> None:
    """Per step of the split one load of A, one of B; at the end one store of the partial tile."""
    pid_n, split = np.divmod(pid[1], s.SPLITS)
    row, col = pid[0] * s.BLOCK_M, pid_n * s.BLOCK_N
    inner = (split * s.share)[:, None] + np.arange(0, s.share, s.BLOCK_K)[None, :]
    build.step(
        build.read(a, row=row[:, None], col=inner, rows=s.BLOCK_M, cols=s.BLOCK_K),
        build.read(b, row=inner, col=col[:, None], rows=s.BLOCK_K, cols=s.BLOCK_N),
    )
    build.step(build.write_box(part, at=(split, row, col), size=(1, s.BLOCK_M, s.BLOCK_N)))


def reference(s, a, b) -> np.ndarray:
    """Partial products, zeros for a split without steps; their sum over the splits is A B."""
    spans = (slice(split * s.share, (split + 1) * s.share) for split in range(s.SPLITS))
    a, b = a.astype(np.float32), b.astype(np.float32)
    return np.stack([a[:, span] @ b[span] for span in spans])


gemm_splitk = replace(
    gemm,
    name="gemm_splitk",
    summary="partial products over splits of K, fp16, unified ids of tiles and splits",
    sharing="""\
Workgroup u works on split u % SPLITS of tile u // SPLITS; tiles (m, n) are numbered row by row. It reads row panel m of
A and column panel n of B, both over the K of its split only, a BLOCK_K slice of each per step, and writes its partial
tile once. Workgroups of one split and one tile row share A's slices, those of one split and one tile column share B's;
workgroups of different splits share nothing, though they are neighbours. As a grid of two sides, rows are tile rows and
columns are (n, split) pairs: a column shares B, and every SPLITS-th column of a row shares A.""",
    sources=("ROCm/aiter, GEMMs with NUM_KSPLIT (unified ids)", "Llama 3, arXiv 2407.21783 (sizes)"),
    sizes={"M": 256, "N": 8192, "K": 28672, "SPLITS": 4, "BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64},
    derived={
        "steps": lambda s: cdiv(s.K, s.BLOCK_K),
        "share": lambda s: cdiv(s.steps, s.SPLITS) * s.BLOCK_K,  # columns of A in a split; the last may have none
    },
    grid="M/BLOCK_M N/BLOCK_N*SPLITS",
    # each once exact and once ragged, in as many splits and in one more
    others=lambda s: (
        {"M": m * s.BLOCK_M - cut, "N": n * s.BLOCK_N - cut, "SPLITS": splits}
        for (m, n), cut in itertools.product(GRIDS[2], (0, 1))
        for splits in sorted({s.SPLITS, min(s.SPLITS + 1, s.steps)})
    ),
    tensors={"A": Tensor("M K"), "B": Tensor("K N"), "part": Tensor("SPLITS M N", "fp32", role="out")},
    arguments="M N K",
    constexprs="SPLITS BLOCK_M BLOCK_N BLOCK_K",
    access=access,
    reference=reference,
    rules={
        "SPLITS = {s.SPLITS}, K = {s.K}: a split has a BLOCK_K step, and there are {s.steps}": lambda s: (
            s.steps >= s.SPLITS
        )
    },
    work=lambda s: tuple(each / s.SPLITS for each in work(s)),
    compiled={((64, 128, 64), 4): (120, 24 * 1024)},
    estimate=None,
    num_warps=4,
)
