"""27-point stencil in three dimensions: one box a workgroup on a 3-D launch, 27 shifted loads, one sweep a launch.

The default is one fp32 sweep over 256^3 points, boxes of 64 x 4 x 4: X is 64 MiB, twice the L2s of all XCDs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder
from xcd_model.errors import SizeError

from .base import check_block, check_items, check_traceable, lines_of, resources

NAME = "stencil_3d"
NUM_WARPS = 4
WEIGHTS = (0.4, 0.05, 0.02, 0.0075)  # centre, 6 faces, 12 edges, 8 corners: they add up to 1
# ((BLOCK_X, BLOCK_Y, BLOCK_Z), waves): (VGPRs, LDS bytes)
COMPILED = {((64, 4, 4), NUM_WARPS): (65, 0), ((32, 8, 4), NUM_WARPS): (65, 0)}
TRITON = Path(__file__).with_name(f"{NAME}_triton.py")
MAX_ITEMS = 1 << 14  # of a box: 27 loads of more would not fit registers

SHARING = """\
Workgroup (x, y, z) reads its box of X 27 times, shifted by one point along each axis and clipped at the border, and
writes its box of Y once. Its own shifts overlap almost wholly. With the 26 workgroups around it it shares the points
along their common faces, edges and corners: a plane of BLOCK_X x BLOCK_Y points with the one above, BLOCK_X x BLOCK_Z
with the one in front, and the lines that hold the last and first points of a row with those to the sides. Rows and
planes a power of two long map to few cache sets."""


def stencil_3d(
    *, NX: int = 256, NY: int = 256, NZ: int = 256, BLOCK_X: int = 64, BLOCK_Y: int = 4, BLOCK_Z: int = 4
) -> Kernel:
    """One sweep of a 27-point stencil in fp32, zeros around.

    Parameters
    ----------
    NX, NY, NZ : int
        Points along x (contiguous), y and z.
    BLOCK_X, BLOCK_Y, BLOCK_Z : int
        Box of a workgroup; powers of two, at most 16384 points together.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If a block is no power of two, a box is too large, or the problem is too large to trace.
    """
    problem = {"NX": NX, "NY": NY, "NZ": NZ, "BLOCK_X": BLOCK_X, "BLOCK_Y": BLOCK_Y, "BLOCK_Z": BLOCK_Z}
    _check(problem)
    grid = grid_of(problem)
    box = (BLOCK_X, BLOCK_Y, BLOCK_Z)
    workgroups = grid[0] * grid[1] * grid[2]
    return Kernel(
        name=NAME,
        summary="27-point stencil, fp32, one box a workgroup, 3-D launch, one sweep",
        problem=problem,
        dtype="fp32",
        grid=Grid(grid),
        flops=54.0 * NX * NY * NZ,
        issued_flops=54.0 * workgroups * BLOCK_X * BLOCK_Y * BLOCK_Z,
        resources=resources(COMPILED, box, num_warps=NUM_WARPS, in_flight=27),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=reference,
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("HPCG, Sandia report SAND2013-8752 (the operator)", "Rivera and Tseng, SC 2000 (3-D blocking)"),
        at_grids=lambda: _at_grids(problem),
        make_launch=lambda: launch(problem),
    )


def grid_of(problem: Mapping[str, int]) -> tuple[int, int, int]:
    """Boxes along x (fastest), y and z."""
    x, y, z = (-(-problem[f"N{axis}"] // problem[f"BLOCK_{axis}"]) for axis in "XYZ")
    return x, y, z


def _check(problem: Mapping[str, int]) -> None:
    blocks = {name: problem[name] for name in ("BLOCK_X", "BLOCK_Y", "BLOCK_Z")}
    check_block(NAME, most=1024, **blocks)
    items = blocks["BLOCK_X"] * blocks["BLOCK_Y"] * blocks["BLOCK_Z"]
    if items > MAX_ITEMS:
        raise SizeError(f"{NAME}: BLOCK_X * BLOCK_Y * BLOCK_Z = {items}: a box has at most {MAX_ITEMS} points")
    check_items(NAME, "X", problem["NX"] * problem["NY"] * problem["NZ"])
    x, y, z = grid_of(problem)
    lines = 28.0 * lines_of(blocks["BLOCK_Y"] * blocks["BLOCK_Z"], blocks["BLOCK_X"], 4)
    check_traceable(NAME, workgroups=x * y * z, instructions=28.0 * x * y * z, touches=x * y * z * lines)


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    shape = (problem["NZ"], problem["NY"], problem["NX"])
    return Launch(
        path=TRITON,
        function=NAME,
        arguments={
            "x_ptr": Array(shape=shape, dtype="fp32"),
            "y_ptr": Array(shape=shape, dtype="fp32", role="out"),
            **{name: problem[name] for name in ("NX", "NY", "NZ")},
            **dict(zip(("centre", "face", "edge", "corner"), WEIGHTS, strict=True)),
        },
        constexprs={name: problem[name] for name in ("BLOCK_X", "BLOCK_Y", "BLOCK_Z")},
        grid=grid_of(problem),
        num_warps=NUM_WARPS,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int) -> Trace:
    """Access model: 27 loads of the shifted box, z slowest, and a store of it."""
    shape = (problem["NZ"], problem["NY"], problem["NX"])
    block = (problem["BLOCK_Z"], problem["BLOCK_Y"], problem["BLOCK_X"])
    gx, gy, gz = grid_of(problem)
    w = np.arange(gx * gy * gz, dtype=np.int64)
    at = (w // (gx * gy) * block[0], w // gx % gy * block[1], w % gx * block[2])
    build = TraceBuilder(n_workgroups=w.size, line_bytes=line_bytes)
    x, y = (build.place(name, shape=shape, item_bytes=4) for name in "XY")
    shifts = product((-1, 0, 1), repeat=3)
    build.step(
        *(build.read_box(x, at=[a + d for a, d in zip(at, shift, strict=True)], size=block) for shift in shifts),
        build.write_box(y, at=at, size=block),
    )
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp32 X of unit scale."""
    shape = (problem["NZ"], problem["NY"], problem["NX"])
    return {"x": np.random.default_rng(seed).standard_normal(shape, np.float32)}


def reference(inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Y in fp32, summed in fp64."""
    x = np.pad(inputs["x"].astype(np.float64), 1)
    nz, ny, nx = inputs["x"].shape
    total = np.zeros((nz, ny, nx))
    for dz, dy, dx in product(range(3), repeat=3):
        weight = WEIGHTS[(dz != 1) + (dy != 1) + (dx != 1)]
        total += weight * x[dz : dz + nz, dy : dy + ny, dx : dx + nx]
    return {"y": total.astype(np.float32)}


def _at_grids(problem: Mapping[str, int]) -> Iterable[tuple[Grid, Mapping[str, int]]]:
    """Other boxes of workgroups: lines, planes, cubes, prime; each exact and, where a block allows it, ragged."""
    shapes = [(1, 1, 1), (1, 1, 7), (7, 1, 1), (2, 3, 5), (4, 4, 4), (8, 2, 2), (3, 3, 3), (7, 5, 3), (4, 8, 6)]
    for shape in shapes:
        for cut in (0, 1):
            blocks = [problem[f"BLOCK_{axis}"] for axis in "XYZ"]
            sides = [n * block - (cut if block > 1 else 0) for n, block in zip(shape, blocks, strict=True)]
            yield Grid(shape), {**problem, **dict(zip(("NX", "NY", "NZ"), sides, strict=True))}
