"""Batched GEMM: C[z] = A[z] B[z] in fp16, one output tile a workgroup on a launch of (column, row, product).

The default is 32 products of 2048^3 in 128 x 128 x 64 tiles: A and B of one product are 16 MiB, four times an L2.
"""

from dataclasses import replace

import numpy as np

from .declared import Tensor
from .gemm import gemm


def access(s, build, pid, a, b, c) -> None:
    """Per K step one load of A, one of B; at the end one store of C."""
    col, row, z = pid[0] * s.BLOCK_N, pid[1] * s.BLOCK_M, pid[2]
    inner = np.arange(0, s.K, s.BLOCK_K)[None, :]
    build.step(
        build.read_box(a, at=(z[:, None], row[:, None], inner), size=(1, s.BLOCK_M, s.BLOCK_K)),
        build.read_box(b, at=(z[:, None], inner, col[:, None]), size=(1, s.BLOCK_K, s.BLOCK_N)),
    )
    build.step(build.write_box(c, at=(z, row, col), size=(1, s.BLOCK_M, s.BLOCK_N)))


batched_gemm = replace(
    gemm,
    name="batched_gemm",
    summary="C[z] = A[z] B[z], fp16, one output tile a workgroup, 3-D launch",
    sharing="""\
Workgroup (x, y, z) reads row panel y of A[z] and column panel x of B[z], a BLOCK_K slice of each per step, and writes
tile (y, x) of C[z] once. Tiles of one row of one product share an A panel, tiles of one column a B panel; two products
share nothing. The launch runs along a row first, then down, then to the next product.""",
    sources=("Triton tutorial 03-matrix-multiplication (tiles)", "rocBLAS gemm_strided_batched (the operation)"),
    sizes={"BATCH": 32, "M": 2048, "N": 2048, "K": 2048, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    grid="N/BLOCK_N M/BLOCK_M BATCH",
    grids=((1, 1, 1), (1, 5, 2), (3, 1, 8), (2, 2, 2), (4, 8, 3), (7, 5, 1), (8, 8, 4), (5, 16, 2), (11, 3, 8)),
    tensors={"A": Tensor("BATCH M K"), "B": Tensor("BATCH K N"), "C": Tensor("BATCH M N", role="out")},
    arguments="M N K",
    access=access,
    flops=lambda s: 2.0 * s.BATCH * s.M * s.N * s.K,
    items={"A of a product": "M K", "B of a product": "K N", "C of a product": "M N"},
    flat=False,
    estimate=None,
    compiled={((128, 128, 64), 8): (120, 32 * 1024), ((256, 256, 64), 8): (248, 64 * 1024)},
)
