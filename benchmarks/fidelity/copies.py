"""Device copy: the kernel whose counts say what a request is."""

from __future__ import annotations

import numpy as np

from benchmarks.fidelity.rows import Row
from benchmarks.fidelity.workload import Workload
from xcd_model.builder import TraceBuilder
from xcd_model.dispatch import Resources
from xcd_model.trace import Trace

ITEM_BYTES, BLOCK = 4, 4096
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
