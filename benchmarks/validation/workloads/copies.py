"""Plain kernels whose counts say what a request is, and what a cache keeps.

Sources: a public MI300X counter log for the copy; jamesbowley/gfx950-gluon-tutorials (2fdc8b5),
experiments/hbm_bandwidth_xcd, for passes over what each workgroup reads of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from xcd_model import Resources, Trace, TraceBuilder

from ..rows import Row
from .workload import Workload

ITEM_BYTES, BLOCK = 4, 4096
PIECE_BYTES = 4 * 64 * 4 * 16  # waves, lanes, loads, bytes
RESOURCES = Resources(
    threads=256, vgprs=32, lds_bytes=0, instructions_in_flight=1, source="assumed: 16 items a thread of a plain copy"
)


def copy(row: Row) -> Workload:
    """Copy of ``n_items`` fp32 items."""
    n = row.problem["n_items"]
    return Workload(
        name="copy",
        problem=row.problem,
        dtype="fp32",
        resources=RESOURCES,
        flops=0.0,
        issued_flops=0.0,
        build_trace=lambda line_bytes: trace(n, line_bytes),
        grid=(n // BLOCK,),
        tiles=(n // BLOCK, 1),
    )


def trace(n_items: int, line_bytes: int) -> Trace:
    """Workgroup r loads block r of x and stores block r of y."""
    rows = n_items // BLOCK
    build = TraceBuilder(n_workgroups=rows, line_bytes=line_bytes)
    x, y = (build.array(name, rows=rows, cols=BLOCK, item_bytes=ITEM_BYTES) for name in "xy")
    whole = {"row": np.arange(rows), "col": 0, "rows": 1, "cols": BLOCK}
    build.step(build.read(x, **whole), build.write(y, **whole))
    return build.trace()


def passes(row: Row) -> Workload:
    """``WORKGROUPS`` workgroups, one a CU, that each read their own ``BYTES`` again and again, ``PASSES`` times."""
    size = row.problem
    return Workload(
        name="read_passes",
        problem=size,
        dtype="fp32",
        resources=Resources(
            threads=256, vgprs=64, lds_bytes=96 * 1024, instructions_in_flight=2,
            source="as published: 4 waves, 4 loads of 16 B a lane at a time, the next 4 issued before they are used",
        ),
        flops=0.0,
        issued_flops=0.0,
        build_trace=lambda line_bytes: passes_trace(size, line_bytes),
        grid=(size["WORKGROUPS"],),
        tiles=(size["WORKGROUPS"], 1),
    )  # fmt: skip


def passes_trace(size: Mapping[str, int], line_bytes: int) -> Trace:
    """Workgroup r reads row r in pieces of `PIECE_BYTES`, from its begin to its end, as often as there are passes."""
    pieces = size["BYTES"] // PIECE_BYTES
    build = TraceBuilder(n_workgroups=size["WORKGROUPS"], line_bytes=line_bytes)
    x = build.array("x", rows=size["WORKGROUPS"], cols=size["BYTES"] // ITEM_BYTES, item_bytes=ITEM_BYTES)
    first = np.tile(np.arange(pieces) * (PIECE_BYTES // ITEM_BYTES), size["PASSES"])
    row = np.arange(size["WORKGROUPS"])[:, None]
    build.step(build.read(x, row=row, col=first[None, :], rows=1, cols=PIECE_BYTES // ITEM_BYTES))
    return build.trace()
