"""The calibration kernels of the H200 rows as access models, tiles numbered row-major.

All are Triton kernels over contiguous row-major tensors: fp16 GEMM, attention and layer norm, fp32 transpose and
stencil; 8 waves and three stages for GEMM and attention, 4 waves and no pipelining otherwise.

Each order of the stencil was compiled on its own, and the code differs: tiles of 8 x 512 make six round trips to memory
in some orders and ten in others. ``data/machine/h200_stencil_code.csv`` has the round trips of each tile, order and
register count, as Triton 3.6.0 compiles the table's source for sm_90; it is written by
``python -m swizzle_benchmarks.lab stencil-loads``.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from xcd_model import Resources, Trace, TraceBuilder

from ...suite.flash_attention import FITTED as OF_SOFTMAX
from ...suite.flash_attention import softmax_ops
from ..rows import DATA, Row
from .workload import Workload

STENCIL_TABLE = DATA / "machine" / "h200_stencil_code.csv"


def stencil_loads_in_flight(rows: int, cols: int, order: str, registers: int, *, loads: int, usual: int) -> int:
    """Loads in flight with which ``loads``, one behind the other, make no more trips than the compiled code does."""
    trips = _stencil_trips().get((rows, cols, re.sub(r"\d+", "", order), registers))
    return usual if trips is None else math.ceil(loads / trips)


@cache
def _stencil_trips() -> dict[tuple[int, int, str, int], float]:
    with STENCIL_TABLE.open(encoding="utf-8", newline="") as file:
        return {
            (int(one["rows"]), int(one["cols"]), one["order"], int(one["registers"])): float(one["near_trips"])
            for one in csv.DictReader(file)
        }


Sizes = Mapping[str, int]
WARP = 32
NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))
SLICE = 4 * WARP * 4  # items that the four waves of a stencil load at once, four a lane
PIPELINED = ("gemm", "attention")  # loops of two loads a step
STEP_INSTRUCTIONS = {(128, 128): 78, (128, 256): 82}  # of GEMM's tiles, as Triton 3.6.0 compiles the table's source
FITTED = {
    "stencil": dict.fromkeys(("SLICE", "instructions_in_flight"), ("h200/stencil-*:time_us",)),  # decision 0022
    "attention": OF_SOFTMAX,
}


@dataclass(frozen=True)
class Shape:
    """Tile grid, operations, waves, loads in flight, access model and vector instructions of a kernel.

    And the operations that its waves repeat of each other, which are no work but take time.
    """

    tiles: Callable[[Sizes], tuple[int, int]]
    flops: Callable[[Sizes], float]
    dtype: str
    warps: int
    in_flight: int
    trace: Callable[[Sizes, int], Trace]
    vector_ops: Callable[[Sizes], float] = lambda size: 0.0
    repeated_flops: Callable[[Sizes], float] = lambda size: 0.0


def make(name: str, row: Row) -> Workload:
    """One of `KERNELS` at a row's sizes, with the resources that the row states."""
    size, shape = row.problem, KERNELS[name]
    tiles = shape.tiles(size)
    return Workload(
        name=row.kernel,
        problem=size,
        dtype=shape.dtype,
        resources=Resources(
            threads=shape.warps * WARP,
            vgprs=row.resources["registers"],
            lds_bytes=row.resources["shared_bytes"],
            instructions_in_flight=_in_flight(name, shape, row),
            loads_per_step=2 if name in PIPELINED else 0,
            past_l1=name in PIPELINED,
            step_instructions=STEP_INSTRUCTIONS.get((size["BM"], size["BN"]), 0) if name == "gemm" else 0,
            source="registers and shared memory as Nsight Compute reports them",
        ),
        flops=shape.flops(size),
        issued_flops=shape.flops(size) + shape.repeated_flops(size),
        vector_ops=shape.vector_ops(size),
        build_trace=lambda line_bytes: shape.trace(size, line_bytes),
        grid=(tiles[0] * tiles[1],),
        tiles=tiles,
        fitted=FITTED.get(name, {}),
    )


def _in_flight(name: str, shape: Shape, row: Row) -> int:
    """Loads in flight as the kernel says, of a stencil as its code was compiled."""
    if name != "stencil" or row.table != "h200":  # others are compiled from another source
        return shape.in_flight
    rows, cols = row.problem["BM"], row.problem["BN"]
    loads = shape.in_flight * -(-rows // _slice_rows(row.problem))
    return stencil_loads_in_flight(
        rows, cols, row.order, row.resources["registers"], loads=loads, usual=shape.in_flight
    )


def _slice_rows(size: Sizes) -> int:
    """Rows of a stencil's tile that its waves load at once."""
    return min(size["BM"], max(1, SLICE // size["BN"]))


def _grid(size: Sizes) -> tuple[int, int]:
    return -(-size["M"] // size["BM"]), -(-size["N"] // size["BN"])


def _tiled(size: Sizes, line_bytes: int) -> tuple[TraceBuilder, np.ndarray, np.ndarray]:
    pid_m, pid_n = np.divmod(np.arange(np.prod(_grid(size))), _grid(size)[1])
    return TraceBuilder(n_workgroups=pid_m.size, line_bytes=line_bytes), pid_m * size["BM"], pid_n * size["BN"]


def _gemm(size: Sizes, line_bytes: int) -> Trace:
    """Per K step a load of A and one of B, both row-major; at the end a store of C."""
    build, row, col = _tiled(size, line_bytes)
    m, n, k = size["M"], size["N"], size["K"]
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    a, b, c = (build.array(name, rows=r, cols=s, item_bytes=2) for name, (r, s) in shapes.items())
    inner = np.arange(0, k, size["BK"])[None, :]
    build.step(
        build.read(a, row=row[:, None], col=inner, rows=size["BM"], cols=size["BK"]),
        build.read(b, row=inner, col=col[:, None], rows=size["BK"], cols=size["BN"]),
    )
    build.step(build.write(c, row=row, col=col, rows=size["BM"], cols=size["BN"]))
    return build.trace()


def _transpose(size: Sizes, line_bytes: int) -> Trace:
    """A load of tile (m, n), a store of tile (n, m)."""
    build, row, col = _tiled(size, line_bytes)
    x = build.array("x", rows=size["M"], cols=size["N"], item_bytes=4)
    y = build.array("y", rows=size["N"], cols=size["M"], item_bytes=4)
    build.step(
        build.read(x, row=row, col=col, rows=size["BM"], cols=size["BN"]),
        build.write(y, row=col, col=row, rows=size["BN"], cols=size["BM"]),
    )
    return build.trace()


def _stencil(size: Sizes, line_bytes: int) -> Trace:
    """Slice by slice five loads, four of them shifted by an item, and a store; of masks only what they do to code.

    The masks are no whole groups of items, so Triton compiles the four loads item by item: of PTX for sm_90, 16 ``b32``
    for one ``v4.b32``. The compiler does not load a tile five times over: it loads the five values of some items and
    adds them up, then those of the next (docs/decisions/0022-the-h200-beside-the-mi300x.md).
    """
    build, row, col = _tiled(size, line_bytes)
    x, y = (build.array(name, rows=size["M"], cols=size["N"], item_bytes=4) for name in "xy")
    deep = _slice_rows(size)
    part = {"rows": deep, "cols": size["BN"]}
    top, left = row[:, None] + np.arange(0, size["BM"], deep), col[:, None]
    build.step(
        build.read(x, row=top, col=left, **part),
        *(build.read(x, row=top + down, col=left + right, at_once=1, **part) for down, right in NEIGHBOURS),
    )
    build.step(build.write(y, row=row, col=col, rows=size["BM"], cols=size["BN"]))
    return build.trace()


def _layernorm(size: Sizes, line_bytes: int) -> Trace:
    """A row read block by block, then again with weights and shifts, and the result stored."""
    m, n, block = size["M"], size["N"], size["BN"]
    build = TraceBuilder(n_workgroups=m, line_bytes=line_bytes)
    x, w, b = (build.array(name, rows=rows, cols=n, item_bytes=2) for name, rows in (("x", m), ("w", 1), ("b", 1)))
    y = build.array("y", rows=m, cols=n, item_bytes=2)
    row, at = np.arange(m)[:, None], {"col": np.arange(0, n, block)[None, :], "rows": 1, "cols": block}
    build.step(build.read(x, row=row, **at))
    build.step(
        build.read(x, row=row, **at),
        build.read(w, row=0 * row, **at),
        build.read(b, row=0 * row, **at),
        build.write(y, row=row, **at),
    )
    return build.trace()


def _copies(size: Sizes) -> int:
    """Waves of attention that compute the same scores, each for itself.

    A product that another follows is dealt to waves by 16 queries each: eight waves have 128, and where a tile has
    fewer they compute its scores and exponentials again. Products with values are dealt by columns too.

    Source: ``warpsPerCTA = [8, 1]``, then ``[4, 2]``, in what Triton 3.6.0 makes of 64 queries, decision 0022.
    """
    return max(1, KERNELS["attention"].warps * 16 // size["BQ"])


def _attention(size: Sizes, line_bytes: int) -> Trace:
    """Q once, K and V block by block, O once; rows of the tile grid are heads, columns query blocks."""
    heads, s, d, queries = (size[name] for name in ("H", "S", "D", "BQ"))
    head, block = np.divmod(np.arange(heads * (s // queries)), s // queries)
    build = TraceBuilder(n_workgroups=head.size, line_bytes=line_bytes)
    q, k, v, o = (build.array(name, rows=heads * s, cols=d, item_bytes=2) for name in "QKVO")
    own = {"row": head * s + block * queries, "col": 0, "rows": queries, "cols": d}
    place = {"row": head[:, None] * s + np.arange(0, s, size["BK"]), "col": 0, "rows": size["BK"], "cols": d}
    build.step(build.read(q, **own))
    build.step(build.read(k, **place), build.read(v, **place))
    build.step(build.write(o, **own))
    return build.trace()


KERNELS: dict[str, Shape] = {
    "gemm": Shape(_grid, lambda s: 2.0 * s["M"] * s["N"] * s["K"], "fp16", 8, 6, _gemm),
    "transpose": Shape(_grid, lambda s: 0.0, "fp32", 4, 1, _transpose),
    "stencil": Shape(_grid, lambda s: 5.0 * s["M"] * s["N"], "fp32", 4, 5, _stencil),
    "layernorm": Shape(lambda s: (s["M"], 1), lambda s: 9.0 * s["M"] * s["N"], "fp32", 4, 3, _layernorm),
    "attention": Shape(
        lambda s: (s["H"], s["S"] // s["BQ"]),
        lambda s: 4.0 * s["H"] * s["S"] ** 2 * s["D"],
        "fp16",
        8,
        6,
        _attention,
        lambda s: s["H"] * s["S"] ** 2 * softmax_ops(s["D"], s["BK"]) * _copies(s),
        lambda s: 2.0 * s["H"] * s["S"] ** 2 * s["D"] * (_copies(s) - 1),
    ),
}
