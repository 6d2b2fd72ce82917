"""27-point stencil in three dimensions: one box a workgroup on a 3-D launch, 27 shifted loads, one sweep a launch.

The default is one fp32 sweep over 256^3 points, boxes of 64 x 4 x 4: X is 64 MiB, twice the L2s of all XCDs.
"""

from itertools import product

import numpy as np

from .declared import Declared, Tensor, lines_of

WEIGHTS = {"centre": 0.4, "face": 0.05, "edge": 0.02, "corner": 0.0075}  # 1, 6, 12 and 8 of them: they add up to 1
MAX_ITEMS = 1 << 14  # of a box: 27 loads of more would not fit registers


def access(s, build, pid, x, y) -> None:
    """27 loads of the shifted box, z slowest, and a store of it."""
    block = (s.BLOCK_Z, s.BLOCK_Y, s.BLOCK_X)
    at = [place * side for place, side in zip(pid[::-1], block, strict=True)]
    shifts = product((-1, 0, 1), repeat=3)
    build.step(
        *(build.read_box(x, at=[a + d for a, d in zip(at, shift, strict=True)], size=block) for shift in shifts),
        build.write_box(y, at=at, size=block),
    )


def reference(s, x) -> np.ndarray:
    """Y, summed in fp64."""
    x, total = np.pad(x.astype(np.float64), 1), np.zeros((s.NZ, s.NY, s.NX))
    for dz, dy, dx in product(range(3), repeat=3):
        weight = [*WEIGHTS.values()][(dz != 1) + (dy != 1) + (dx != 1)]
        total += weight * x[dz : dz + s.NZ, dy : dy + s.NY, dx : dx + s.NX]
    return total


stencil_3d = Declared(
    name="stencil_3d",
    summary="27-point stencil, fp32, one box a workgroup, 3-D launch, one sweep",
    sharing="""\
Workgroup (x, y, z) reads its box of X 27 times, shifted by one point along each axis and clipped at the border, and
writes its box of Y once. Its own shifts overlap almost wholly. With the 26 workgroups around it it shares the points
along their common faces, edges and corners: a plane of BLOCK_X x BLOCK_Y points with the one above, BLOCK_X x BLOCK_Z
with the one in front, and the lines that hold the last and first points of a row with those to the sides. Rows and
planes a power of two long map to few cache sets.""",
    sources=("HPCG, Sandia report SAND2013-8752 (the operator)", "Rivera and Tseng, SC 2000 (3-D blocking)"),
    sizes={"NX": 256, "NY": 256, "NZ": 256, "BLOCK_X": 64, "BLOCK_Y": 4, "BLOCK_Z": 4},  # x is contiguous
    derived={"box": lambda s: s.BLOCK_X * s.BLOCK_Y * s.BLOCK_Z, **WEIGHTS},
    grid="NX/BLOCK_X NY/BLOCK_Y NZ/BLOCK_Z",
    grids=((1, 1, 1), (1, 1, 7), (7, 1, 1), (2, 3, 5), (4, 4, 4), (8, 2, 2), (3, 3, 3), (7, 5, 3), (4, 8, 6)),
    tensors={"X": Tensor("NZ NY NX", "fp32"), "Y": Tensor("NZ NY NX", "fp32", role="out")},
    arguments="NX NY NZ centre face edge corner",
    access=access,
    reference=reference,
    flops=lambda s: 54.0 * s.NX * s.NY * s.NZ,
    dtype="fp32",
    blocks={"BLOCK_X BLOCK_Y BLOCK_Z": (1, 1024)},
    rules={
        f"BLOCK_X * BLOCK_Y * BLOCK_Z = {{s.box}}: a box has at most {MAX_ITEMS} points": lambda s: s.box <= MAX_ITEMS
    },
    work=lambda s: (28, 28 * lines_of(s.BLOCK_Y * s.BLOCK_Z, s.BLOCK_X, 4)),
    compiled={((64, 4, 4), 4): (65, 0), ((32, 8, 4), 4): (65, 0)},
    in_flight=27,
)
