"""5-point stencil in two dimensions: one tile a workgroup, the neighbours by four more loads, shifted by one item.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 8192 x 8192 in fp16, tiles 32 x 32.
"""

import numpy as np

from .declared import ARANGE, LINE_BYTES, Declared, Tensor

NEIGHBOURS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))  # in the order loaded: centre, up, down, left, right


def access(s, build, pid, x, y) -> None:
    """Five loads of the tile, a store of it."""
    row, col = pid[0] * s.BLOCK_SIZE_M, pid[1] * s.BLOCK_SIZE_N
    tile = {"rows": s.BLOCK_SIZE_M, "cols": s.BLOCK_SIZE_N}
    build.step(
        *(build.read(x, row=row + down, col=col + right, **tile) for down, right in NEIGHBOURS),
        build.write(y, row=row, col=col, **tile),
    )


def reference(s, x) -> np.ndarray:
    """Y, computed in fp64."""
    x = np.pad(x.astype(np.float64), 1)
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return 0.5 * x[1:-1, 1:-1] + 0.125 * around


stencil_2d = Declared(
    name="stencil_2d",
    summary="5-point stencil, fp16, one tile a workgroup",
    sharing="""\
Workgroup (m, n) reads tile (m, n) of X five times, once in place and once shifted by an item to each side, and writes
tile (m, n) of Y. The shifted loads overlap each other within the workgroup; with tiles (m - 1, n) and (m + 1, n) it
shares a row of items, with (m, n - 1) and (m, n + 1) a column. Where a tile row is less than a line, side neighbours
share all lines of the tile, of X as of Y. Rows a power of two long map to few cache sets.""",
    sources=("arXiv 2508.20258",),
    sizes={"M": 8192, "N": 8192, "BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32},
    grid="M/BLOCK_SIZE_M N/BLOCK_SIZE_N",
    tensors={"x": Tensor("M N"), "y": Tensor("M N", role="out")},
    arguments="M N",
    access=access,
    reference=reference,
    flops=lambda s: 6 * s.M * s.N,
    dtype="fp32",
    blocks={"BLOCK_SIZE_M BLOCK_SIZE_N": ARANGE},
    work=lambda s: (6, 6 * s.BLOCK_SIZE_M * (1 + s.BLOCK_SIZE_N * 2 / LINE_BYTES)),
    compiled={((32, 32), 4): (32, 0, 1204), ((64, 64), 4): (72, 0, 2952)},
    in_flight=5,
)
