"""Layer norm over rows: one row a workgroup, read once for the moments and once more for the result.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 20480 x 20480 in fp16.
"""

import numpy as np

from .declared import LINE_BYTES, Declared, Tensor, cdiv

EPS = 1e-5
IN_FLIGHT = 1  # the row is summed over the whole workgroup before anything else is loaded
FITTED = {"IN_FLIGHT": ("paper/layer_norm@*",)}  # 3 before those rows were looked at, decision 0017
MAX_BLOCK = 1 << 15  # 64 KiB of fp16 at a time


def access(s, build, pid, x, w, b, y) -> None:
    """Loads of the row; then for each block loads of row, weights and shifts and a store."""
    col = np.arange(0, s.N, s.BLOCK_SIZE_N)[None, :]
    row = {"row": pid[0][:, None], "col": col, "rows": 1, "cols": s.BLOCK_SIZE_N}
    build.step(build.read(x, **row))
    place = np.broadcast_to(col, (s.M, col.size))
    weights = (build.read_box(array, at=(place,), size=(s.BLOCK_SIZE_N,)) for array in (w, b))
    build.step(build.read(x, **row), *weights, build.write(y, **row))


def reference(s, x, w, b) -> np.ndarray:
    """Y, computed in fp64."""
    x, w, b = (values.astype(np.float64) for values in (x, w, b))
    centred = x - x.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPS)
    return centred * scale * w + b


layer_norm = Declared(
    name="layer_norm",
    summary="layer norm over rows, fp16, one row a workgroup",
    sharing="""\
Workgroup r reads row r of X twice, first for mean and variance and then for the result, and writes row r of Y. All
workgroups read the same weights W and shifts B, which are small and stay in the L2. Nothing else is shared. The second
pass finds the row in the L2 if the rows that are read beside it leave room in the same sets: rows a large power of two
of bytes apart push each other out, so which rows run together behind one L2 matters.""",
    sources=("arXiv 2508.20258",),
    sizes={"M": 20480, "N": 20480},
    derived={"BLOCK_SIZE_N": lambda s: min(MAX_BLOCK, 1 << (s.N - 1).bit_length()), "eps": EPS},  # at a time of a row
    grid="M",
    tensors={"x": Tensor("M N"), "w": Tensor("N"), "b": Tensor("N"), "y": Tensor("M N", role="out")},
    arguments="N eps",
    constexprs="BLOCK_SIZE_N",
    access=access,
    reference=reference,
    flops=lambda s: 7 * s.M * s.N,  # two sums and a square; subtract, scale, weigh, shift
    padded="N/BLOCK_SIZE_N",
    dtype="fp32",
    work=lambda s: (5 * cdiv(s.N, s.BLOCK_SIZE_N), 5 * (cdiv(s.N, s.BLOCK_SIZE_N) + s.N * 2 / LINE_BYTES)),
    compiled={
        ((512,), 4): (16, 16, 1372),
        ((2048,), 4): (32, 16, 1772),
        ((8192,), 4): (112, 16, 3812),
        ((32768,), 4): (408, 16, 15628),
    },
    tile="BLOCK_SIZE_N",
    in_flight=IN_FLIGHT,
    more=lambda s: {"fitted": FITTED},
)
