"""Transpose: one tile a workgroup, read along rows of X and written along rows of Y.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 32768 x 32768 in fp16, tiles 32 x 32.
"""

import numpy as np

from .declared import ARANGE, LINE_BYTES, Declared, Tensor


def access(s, build, pid, x, y) -> None:
    """A load of tile (m, n), a store of tile (n, m)."""
    row, col = pid[0] * s.BLOCK_SIZE_M, pid[1] * s.BLOCK_SIZE_N
    build.step(
        build.read(x, row=row, col=col, rows=s.BLOCK_SIZE_M, cols=s.BLOCK_SIZE_N),
        build.write(y, row=col, col=row, rows=s.BLOCK_SIZE_N, cols=s.BLOCK_SIZE_M),
    )


def lines(s) -> float:
    """Lines that a tile covers in X and in Y, about."""
    return s.BLOCK_SIZE_M + s.BLOCK_SIZE_N + 2 * s.BLOCK_SIZE_M * s.BLOCK_SIZE_N * 2 / LINE_BYTES


transpose = Declared(
    name="transpose",
    summary="transpose, fp16, one tile a workgroup",
    sharing="""\
Workgroup (m, n) reads tile (m, n) of X and writes tile (n, m) of Y, each item once. A tile row is BLOCK_SIZE_N items of
a row of X: where that is less than a line, tiles (m, n) and (m, n + 1) share the lines of X between them, and tiles
(m, n) and (m + 1, n) those of Y. A line is used once only if the tiles that share it run behind one L2, close in time;
half-written lines that leave the L2 early cost a write each time. Rows a power of two long map to few cache sets.""",
    sources=("arXiv 2508.20258",),
    sizes={"M": 32768, "N": 32768, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32},
    grid="M/BLOCK_SIZE_M N/BLOCK_SIZE_N",
    tensors={"x": Tensor("M N"), "y": Tensor("N M", role="out")},
    arguments="M N",
    access=access,
    reference=lambda s, x: np.ascontiguousarray(x.T),
    flops=lambda s: 0,
    dtype="fp32",
    blocks={"BLOCK_SIZE_M BLOCK_SIZE_N": ARANGE},
    work=lambda s: (2, lines(s)),
    compiled={((32, 32), 4): (16, 2048, 740), ((64, 64), 4): (24, 8192, 1188)},
    in_flight=1,
)
