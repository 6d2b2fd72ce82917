"""Steps of GEMM by where their operands come from, memory or the L2, replayed beside the measured ones."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from swizzle_benchmarks.validation.rows import DATA
from xcd_model import Gpu, IssueModel, TraceBuilder, compute_fs, gpu, prepare, replay_timed

ROWS, COLUMNS, DEPTH, STEPS = 128, 256, 64, 144  # of a tile; of a step; steps of a tile
ROW_TILES, COLUMN_TILES, RESIDENT = 60, 20, 4
TILES = 2  # of each workgroup that are replayed, of the eight that are measured
ORDERS = {"row": (7, 20, False), "column": (60, 3, True), "group_m(size=8)": (8, 17, True)}  # tiles high, wide; down


@dataclass(frozen=True)
class Measured:
    """One line of the table: nanoseconds a step; and what the model says."""

    products: bool
    order: str
    first: str
    from_memory: str
    a_lies_in: str
    ns: float
    simulated: float = 0.0


def measured_operands() -> list[Measured]:
    """Lines of the measured table."""
    with (DATA / "machine" / "h200_operands.csv").open(encoding="utf-8", newline="") as file:
        return [
            Measured(one.pop("products") == "1", **{**one, "ns": float(one["ns"])})  # type: ignore[arg-type]
            for one in csv.DictReader(file)
        ]


def replayed(lines: Iterable[Measured], device: Gpu) -> Iterator[Measured]:
    """Replay measured lines on a GPU."""
    for line in lines:
        build, issue = _trace_of(line, device), _issue_of(line, device)
        plan = prepare(build.trace(), replace(device, l1=None))  # copies go past it
        got = replay_timed(plan, np.arange(build.n_workgroups), workgroups_per_cu=1, issue=issue)
        yield replace(line, simulated=got.time_fs * 1e-6 / (TILES * STEPS))


def _trace_of(line: Measured, device: Gpu) -> TraceBuilder:
    high, wide, down = ORDERS[line.order]
    mine = np.arange(device.xcds * device.cus_per_xcd)
    m, n = (mine % high, mine // high) if down else (mine // wide, mine % wide)
    build = TraceBuilder(n_workgroups=mine.size, line_bytes=device.l2.line_bytes)
    rows, depth = TILES * ROW_TILES * ROWS, STEPS * DEPTH
    in_rows = line.a_lies_in == "rows"
    a = build.array("a", rows=rows if in_rows else rows * STEPS, cols=depth if in_rows else DEPTH, item_bytes=2)
    b = build.array("b", rows=TILES * depth, cols=COLUMN_TILES * COLUMNS, item_bytes=2)
    for turn in range(TILES * STEPS):
        tile_a, at_a = divmod(turn, STEPS) if line.from_memory in ("A", "both") else (0, turn % RESIDENT)
        tile_b, at_b = divmod(turn, STEPS) if line.from_memory in ("B", "both") else (0, turn % RESIDENT)
        first = tile_a * ROW_TILES + m
        left = build.read(
            a,
            row=first * ROWS if in_rows else (first * STEPS + at_a) * ROWS,
            col=0 * m + (at_a * DEPTH if in_rows else 0),
            rows=ROWS,
            cols=DEPTH,
        )
        right = build.read(b, row=0 * n + tile_b * depth + at_b * DEPTH, col=n * COLUMNS, rows=DEPTH, cols=COLUMNS)
        build.step(*((left, right) if line.first == "A" else (right, left)))
    return build


def _issue_of(line: Measured, device: Gpu) -> IssueModel:
    """Issue model of the loop: without products nothing goes out before the step's data is there."""
    flops = ROWS * COLUMNS * DEPTH if line.products else 0  # of one of a step's two loads
    each = compute_fs(device, flops_per_instruction=flops, dtype="fp16", workgroups_per_cu=1)
    waits = device.limits.products_before_loads or 0.0
    behind = not line.products
    return IssueModel(2 if behind else 4, each, step=2, step_fs=round(waits * 2 * each), after_products=behind)


def operands_replayed() -> None:
    """Print measured and simulated nanoseconds a step, A in rows and its copies first."""
    lines = [one for one in measured_operands() if one.a_lies_in == "rows" and one.first == "A"]
    print("| products | order | from memory | measured, ns | simulated, ns | error |")
    print("| --- | --- | --- | --- | --- | --- |")
    for one in replayed(lines, gpu("h200")):
        error = 100 * (one.simulated / one.ns - 1)
        what = "yes" if one.products else "no"
        print(
            f"| {what} | {one.order} | {one.from_memory} | {one.ns:.0f} | {one.simulated:.0f} | {error:+.0f} % |",
            flush=True,
        )
