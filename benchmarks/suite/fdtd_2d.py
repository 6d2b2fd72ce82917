"""FDTD in two dimensions: one time step, three fields updated in place, one tile a workgroup.

A workgroup reads items that its neighbours write in the same launch, in whatever order they come: the race is part of
the program as it was measured. Any order of tiles, one after the other, is a valid outcome.

Sources: SwizzlePerf (arXiv 2508.20258); measured there on 8192 x 8192 in fp32, tiles 32 x 32, 1500 steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array, Launch
from xcd_model import Trace, TraceBuilder

from .base import check_block, check_items, check_traceable, resources, tile_grids

TRITON = Path(__file__).with_name("fdtd_2d_triton.py")
ITEM_BYTES = 4  # fp32
FLOPS_PER_ITEM = 11
NUM_WARPS = 4
STEPS = 1500  # launches of a run, as measured
COMPILED = {((32, 32), 4): (32, 0, 1180), ((64, 64), 4): (64, 0, 3092)}

SHARING = """\
Workgroup (x, y) updates tile (x, y) of HZ from EX and EY, then EX and EY from HZ, in place: eleven loads and three
stores, most of them of lines that it has just touched. It reads one column of EX from tile (x, y + 1), one row of EY
from (x + 1, y), one column of HZ from (x, y - 1) and one row of HZ from (x - 1, y); the columns cost a line a row. All
three fields are read and written once a step. Rows a power of two long map to few cache sets."""


def fdtd_2d(*, Nx: int = 8192, Ny: int = 8192, BLOCK_SIZE_X: int = 32, BLOCK_SIZE_Y: int = 32) -> Kernel:
    """One step of an Nx x Ny grid of fp32 fields.

    Raises
    ------
    SizeError
        If a block is no power of two, or the problem is too large to trace.
    """
    problem = {"Nx": Nx, "Ny": Ny, "BLOCK_SIZE_X": BLOCK_SIZE_X, "BLOCK_SIZE_Y": BLOCK_SIZE_Y}
    check_block("fdtd_2d", BLOCK_SIZE_X=BLOCK_SIZE_X, BLOCK_SIZE_Y=BLOCK_SIZE_Y)
    check_items("fdtd_2d", "a field", Nx * Ny)
    tiles = (-(-Nx // BLOCK_SIZE_X), -(-Ny // BLOCK_SIZE_Y))
    workgroups = tiles[0] * tiles[1]
    touches = 14 * workgroups * BLOCK_SIZE_X * (1 + BLOCK_SIZE_Y * ITEM_BYTES / 128)
    check_traceable("fdtd_2d", workgroups=workgroups, instructions=14 * workgroups, touches=touches)
    return Kernel(
        name="fdtd_2d",
        summary="one FDTD step, fp32, three fields in place, one tile a workgroup",
        problem=problem,
        dtype="fp32",
        grid=Grid(tiles),
        flops=float(FLOPS_PER_ITEM * Nx * Ny),
        issued_flops=float(FLOPS_PER_ITEM * workgroups * BLOCK_SIZE_X * BLOCK_SIZE_Y),
        resources=resources(COMPILED, (BLOCK_SIZE_X, BLOCK_SIZE_Y), num_warps=NUM_WARPS, in_flight=5),
        build_trace=lambda line_bytes: trace(problem, line_bytes),
        reference=lambda inputs: reference(problem, inputs),
        make_inputs=lambda seed: make_inputs(problem, seed),
        triton_source=TRITON.read_text(encoding="utf-8"),
        sharing=SHARING,
        sources=("arXiv 2508.20258", "Yee, IEEE Transactions on Antennas and Propagation 14(3), 1966"),
        at_grids=lambda: tile_grids(problem, ("Nx", "Ny"), ("BLOCK_SIZE_X", "BLOCK_SIZE_Y")),
        make_launch=lambda: launch(problem),
        launches=STEPS,
    )


def launch(problem: Mapping[str, int]) -> Launch:
    """Launch of the Triton kernel at one size."""
    shape = problem["Nx"], problem["Ny"]
    blocks = {name: problem[name] for name in ("BLOCK_SIZE_X", "BLOCK_SIZE_Y")}
    return Launch(
        path=TRITON,
        function="fdtd_2d",
        arguments={
            **{f"{name}_ptr": Array(shape=shape, dtype="fp32", role="inout") for name in ("ex", "ey", "hz")},
            **{"Nx": shape[0], "Ny": shape[1]},
        },
        constexprs=blocks,
        grid=(-(-shape[0] // blocks["BLOCK_SIZE_X"]), -(-shape[1] // blocks["BLOCK_SIZE_Y"])),
        num_warps=NUM_WARPS,
        make_inputs=lambda seed: {f"{name}_ptr": values for name, values in make_inputs(problem, seed).items()},
    )


def trace(problem: Mapping[str, int], line_bytes: int, stores: tuple[int, int, int] = (1, 1, 1)) -> Trace:
    """Access model: five loads and a store of hz, three loads and a store of ex, three and a store of ey.

    ``stores`` are how many instructions of a lane each store is compiled to; every one of them asks for all lines.
    """
    shape = problem["Nx"], problem["Ny"]
    block_x, block_y = problem["BLOCK_SIZE_X"], problem["BLOCK_SIZE_Y"]
    pid_y, pid_x = np.divmod(np.arange(-(-shape[0] // block_x) * -(-shape[1] // block_y)), -(-shape[0] // block_x))
    build = TraceBuilder(n_workgroups=pid_x.size, line_bytes=line_bytes)
    ex, ey, hz = (build.array(name, rows=shape[0], cols=shape[1], item_bytes=ITEM_BYTES) for name in ("ex", "ey", "hz"))
    x, y, tile = pid_x * block_x, pid_y * block_y, {"rows": block_x, "cols": block_y}
    own = {field.index: build.read(field, row=x, col=y, **tile) for field in (ex, ey, hz)}
    stored = [
        build.together(*[build.write(field, row=x, col=y, **tile)] * times)
        for field, times in zip((hz, ex, ey), stores, strict=True)
    ]
    build.step(
        build.read(ex, row=x, col=y + 1, **tile),
        own[ex.index],
        build.read(ey, row=x + 1, col=y, **tile),
        own[ey.index],
        own[hz.index],
        stored[0],
        own[hz.index],
        build.read(hz, row=x, col=y - 1, **tile),
        own[ex.index],
        stored[1],
        own[hz.index],
        build.read(hz, row=x - 1, col=y, **tile),
        own[ey.index],
        stored[2],
    )
    return build.trace()


def make_inputs(problem: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    """Random fp32 fields of unit scale."""
    draw = np.random.default_rng(seed)
    return {name: draw.standard_normal((problem["Nx"], problem["Ny"]), np.float32) for name in ("ex", "ey", "hz")}


def reference(
    problem: Mapping[str, int], inputs: Mapping[str, np.ndarray], order: Iterable[tuple[int, int]] | None = None
) -> dict[str, np.ndarray]:
    """Fields after one step in fp32, tile after tile.

    Parameters
    ----------
    problem : mapping of str to int
    inputs : mapping of str to (Nx, Ny) float32
    order : iterable of (x, y), optional
        Tiles in the order they run; the hardware's ids in turn where not given.
    """
    block_x, block_y = problem["BLOCK_SIZE_X"], problem["BLOCK_SIZE_Y"]
    ex, ey, hz = (np.pad(inputs[name], 1) for name in ("ex", "ey", "hz"))  # zeros outside, never written
    if order is None:
        tiles = (-(-problem["Nx"] // block_x), -(-problem["Ny"] // block_y))
        order = ((x, y) for y in range(tiles[1]) for x in range(tiles[0]))
    for x, y in order:
        rows = np.s_[x * block_x + 1 : min((x + 1) * block_x, problem["Nx"]) + 1]
        cols = np.s_[y * block_y + 1 : min((y + 1) * block_y, problem["Ny"]) + 1]
        below, above = np.s_[rows.start + 1 : rows.stop + 1], np.s_[rows.start - 1 : rows.stop - 1]
        after, before = np.s_[cols.start + 1 : cols.stop + 1], np.s_[cols.start - 1 : cols.stop - 1]
        curl = ex[rows, after] - ex[rows, cols] + ey[below, cols] - ey[rows, cols]
        hz[rows, cols] -= np.float32(0.7) * curl
        ex[rows, cols] -= np.float32(0.5) * (hz[rows, cols] - hz[rows, before])
        ey[rows, cols] -= np.float32(0.5) * (hz[rows, cols] - hz[above, cols])
    return {"ex": ex[1:-1, 1:-1], "ey": ey[1:-1, 1:-1], "hz": hz[1:-1, 1:-1]}
