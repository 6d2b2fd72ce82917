"""FDTD in two dimensions: one time step, three fields updated in place, one tile a workgroup.

A workgroup reads items that its neighbours write in the same launch, in whatever order they come: the race is part of
the program as it was measured. Any order of tiles, one after the other, is a valid outcome.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 8192 x 8192 in fp32, tiles 32 x 32, 1500 steps.
"""

import numpy as np

from .declared import ARANGE, LINE_BYTES, Declared, Tensor, cdiv

STEPS = 1500  # launches of a run, as measured


def access(s, build, pid, ex, ey, hz, stores=(1, 1, 1)) -> None:
    """Five loads and a store of hz, three loads and a store of ex, three and a store of ey.

    ``stores`` are how many instructions of a lane each store is compiled to; every one of them asks for all lines.
    """
    x, y = pid[0] * s.BLOCK_SIZE_X, pid[1] * s.BLOCK_SIZE_Y
    tile = {"rows": s.BLOCK_SIZE_X, "cols": s.BLOCK_SIZE_Y}

    own = [build.read(field, row=x, col=y, **tile) for field in (ex, ey, hz)]
    stored = [
        build.together(*[build.write(field, row=x, col=y, **tile)] * times)
        for field, times in zip((hz, ex, ey), stores, strict=True)
    ]
    right, below = build.read(ex, row=x, col=y + 1, **tile), build.read(ey, row=x + 1, col=y, **tile)
    build.step(right, own[0], below, own[1], own[2], stored[0])
    left, above = (build.read(hz, row=x - down, col=y - 1 + down, **tile) for down in (0, 1))
    build.step(own[2], left, own[0], stored[1], own[2], above, own[1], stored[2])


def reference(s, *fields, order=None) -> tuple[np.ndarray, ...]:
    """Fields after one step, tile (x, y) after tile in ``order``, by default the hardware's."""
    ex, ey, hz = (np.pad(one, 1) for one in fields)  # zeros outside, never written
    tiles = (cdiv(s.Nx, s.BLOCK_SIZE_X), cdiv(s.Ny, s.BLOCK_SIZE_Y))
    for x, y in order or ((x, y) for y in range(tiles[1]) for x in range(tiles[0])):
        rows = np.s_[x * s.BLOCK_SIZE_X + 1 : min((x + 1) * s.BLOCK_SIZE_X, s.Nx) + 1]
        cols = np.s_[y * s.BLOCK_SIZE_Y + 1 : min((y + 1) * s.BLOCK_SIZE_Y, s.Ny) + 1]
        below, above = np.s_[rows.start + 1 : rows.stop + 1], np.s_[rows.start - 1 : rows.stop - 1]
        after, before = np.s_[cols.start + 1 : cols.stop + 1], np.s_[cols.start - 1 : cols.stop - 1]
        curl = ex[rows, after] - ex[rows, cols] + ey[below, cols] - ey[rows, cols]
        hz[rows, cols] -= np.float32(0.7) * curl
        ex[rows, cols] -= np.float32(0.5) * (hz[rows, cols] - hz[rows, before])
        ey[rows, cols] -= np.float32(0.5) * (hz[rows, cols] - hz[above, cols])
    return ex[1:-1, 1:-1], ey[1:-1, 1:-1], hz[1:-1, 1:-1]


fdtd_2d = Declared(
    name="fdtd_2d",
    summary="one FDTD step, fp32, three fields in place, one tile a workgroup",
    sharing="""\
Workgroup (x, y) updates tile (x, y) of HZ from EX and EY, then EX and EY from HZ, in place: eleven loads and three
stores, most of them of lines that it has just touched. It reads one column of EX from tile (x, y + 1), one row of EY
from (x + 1, y), one column of HZ from (x, y - 1) and one row of HZ from (x - 1, y); the columns cost a line a row. All
three fields are read and written once a step. Rows a power of two long map to few cache sets.""",
    sources=("arXiv 2508.20258", "Yee, IEEE Transactions on Antennas and Propagation 14(3), 1966"),
    sizes={"Nx": 8192, "Ny": 8192, "BLOCK_SIZE_X": 32, "BLOCK_SIZE_Y": 32},
    grid="Nx/BLOCK_SIZE_X Ny/BLOCK_SIZE_Y",
    tensors={name: Tensor("Nx Ny", "fp32", role="inout") for name in ("ex", "ey", "hz")},
    arguments="Nx Ny",
    access=access,
    reference=reference,
    flops=lambda s: 11 * s.Nx * s.Ny,
    dtype="fp32",
    blocks={"BLOCK_SIZE_X BLOCK_SIZE_Y": ARANGE},
    work=lambda s: (14, 14 * s.BLOCK_SIZE_X * (1 + s.BLOCK_SIZE_Y * 4 / LINE_BYTES)),
    compiled={((32, 32), 4): (32, 0, 1180), ((64, 64), 4): (64, 0, 3092)},
    in_flight=5,
    more=lambda s: {"launches": STEPS},
)
