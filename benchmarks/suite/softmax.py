"""Softmax over rows: one row a workgroup, loaded once and stored once.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 32768 x 32768 in fp16.
"""

import numpy as np

from .declared import LINE_BYTES, MAX_TILE_ITEMS, Declared, Tensor


def access(s, build, pid, x, y) -> None:
    """One load of a row, one store of a row."""
    row = {"row": pid[0], "col": 0, "rows": 1, "cols": s.BLOCK_SIZE_N}
    build.step(build.read(x, **row), build.write(y, **row))


def reference(s, x) -> np.ndarray:
    """Y, computed in fp64."""
    x = x.astype(np.float64)
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


softmax = Declared(
    name="softmax",
    summary="softmax over rows, fp16, one row a workgroup",
    sharing="""\
Workgroup r reads row r of X once and writes row r of Y once. No two workgroups share an item; rows share a line only
where the row length is no whole number of lines. Where it is one, every order of workgroups costs the same traffic, and
only the order of addresses in time differs.""",
    sources=("arXiv 2508.20258",),
    sizes={"M": 32768, "N": 32768},
    derived={
        "BLOCK_SIZE_N": lambda s: 1 << (s.N - 1).bit_length(),  # power of two that holds a row
        "num_warps": lambda s: 16 if s.BLOCK_SIZE_N >= 4096 else 8 if s.BLOCK_SIZE_N >= 2048 else 4,  # as measured
    },
    grid="M",
    tensors={"x": Tensor("M N"), "y": Tensor("M N", role="out")},
    arguments="N",
    constexprs="BLOCK_SIZE_N",
    access=access,
    reference=reference,
    flops=lambda s: 5 * s.M * s.N,  # compare, subtract, exponential, add, divide
    padded="N/BLOCK_SIZE_N",
    dtype="fp32",
    rules={
        f"N = {{s.N}}: a workgroup holds a whole row, and Triton takes at most {MAX_TILE_ITEMS} items": lambda s: (
            s.BLOCK_SIZE_N <= MAX_TILE_ITEMS
        )
    },
    work=lambda s: (2, 2 * (s.N * 2 / LINE_BYTES + 1)),
    compiled={
        ((512,), 4): (16, 16, 1088),
        ((2048,), 8): (32, 32, 1436),
        ((4096,), 16): (32, 64, 1472),
        ((8192,), 16): (24, 64, 2036),
        ((32768,), 16): (56, 64, 5544),
    },
    tile="BLOCK_SIZE_N",
    num_warps="num_warps",
    in_flight=1,
)
