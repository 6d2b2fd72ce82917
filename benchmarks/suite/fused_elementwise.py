"""Fused elementwise: out = max(x * y + z, 0), three streams in and one out.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 2**24 items in fp16.
"""

import numpy as np

from .declared import LINE_BYTES, Declared, Tensor


def access(s, build, pid, x, y, z, out) -> None:
    """A load of each of x, y and z, a store of out."""
    piece = {"at": (pid[0] * s.BLOCK_SIZE,), "size": (s.BLOCK_SIZE,)}
    build.step(*(build.read_box(array, **piece) for array in (x, y, z)), build.write_box(out, **piece))


def reference(s, x, y, z) -> np.ndarray:
    """Out; the product of two fp16 is exact in fp32, so fused and separate arithmetic agree."""
    x, y, z = (values.astype(np.float32) for values in (x, y, z))
    return np.maximum(x * y + z, np.float32(0))


fused_elementwise = Declared(
    name="fused_elementwise",
    summary="out = max(x * y + z, 0), fp16, one block of items a workgroup",
    sharing="""\
Workgroup i reads BLOCK_SIZE items of each of X, Y and Z and writes as many of OUT, each once. Nothing is shared: every
order of workgroups costs the same traffic, and only the order of addresses in time differs.""",
    sources=("arXiv 2508.20258",),
    sizes={"n_elements": 1 << 24, "BLOCK_SIZE": 1024},
    grid="n_elements/BLOCK_SIZE",
    tensors={**{name: Tensor("n_elements") for name in "xyz"}, "out": Tensor("n_elements", role="out")},
    arguments="n_elements",
    access=access,
    reference=reference,
    flops=lambda s: 3 * s.n_elements,  # multiply, add, compare
    dtype="fp32",
    blocks={"BLOCK_SIZE": (1, 1 << 16)},
    work=lambda s: (4, 4 * (1 + s.BLOCK_SIZE * 2 / LINE_BYTES)),
    compiled={((1024,), 4): (16, 0, 568), ((4096,), 4): (48, 0, 1044)},
    in_flight=3,
)
