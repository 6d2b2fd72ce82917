"""Steps of a pipelined product by when their copies go out, replayed beside the measured ones.

The product's loop has two stages and operands that stay in the L2: copies alone, products alone, and both.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from swizzle_benchmarks.validation.rows import DATA
from xcd_model import Gpu, IssueModel, TraceBuilder, compute_fs, gpu, prepare, replay_timed

TURNS, ITEM_BYTES, WINDOW_BYTES = 256, 2, 96 << 10


@dataclass(frozen=True)
class Step:
    """One line of the table, and what came of it: nanoseconds a step."""

    tile: str
    what: str
    workgroups_per_sm: int
    measured: float
    simulated: float


def measured_steps() -> list[dict[str, str]]:
    """Lines of the measured table."""
    with (DATA / "machine" / "h200_steps.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def replayed(lines: Iterable[Mapping[str, str]], device: Gpu) -> Iterator[Step]:
    """Replay measured lines with copies on a GPU."""
    for line in lines:
        if line["what"] == "products":
            continue
        rows, columns, depth = (int(side) for side in line["tile"].split(" x "))
        held = int(line["workgroups_per_sm"])
        count = held * device.xcds * device.cus_per_xcd
        build = TraceBuilder(n_workgroups=count, line_bytes=device.l2.line_bytes)
        turns = WINDOW_BYTES // ((rows + columns) * depth * ITEM_BYTES)
        a = build.array("a", rows=count * turns * rows, cols=depth, item_bytes=ITEM_BYTES)
        b = build.array("b", rows=count * turns * depth, cols=columns, item_bytes=ITEM_BYTES)
        mine = np.arange(count) * turns
        for turn in range(TURNS):
            at = mine + turn % turns
            build.step(
                build.read(a, row=at * rows, col=0 * at, rows=rows, cols=depth),
                build.read(b, row=at * depth, col=0 * at, rows=depth, cols=columns),
            )
        flops = 0 if line["what"] == "copies" else rows * columns * depth  # two loads a step, two operations each
        behind, each = (
            line["what"] in ("behind", "each"),
            compute_fs(device, flops_per_instruction=flops, dtype="fp16", workgroups_per_cu=held),
        )
        waits = 0.0 if behind or line["what"] == "before" else device.limits.products_before_loads or 0.0
        issue = IssueModel(2 if behind else 4, each, step=2, step_fs=round(waits * 2 * each), after_products=behind)
        plan = prepare(build.trace(), replace(device, l1=None))  # copies go past it
        got = replay_timed(plan, np.arange(count), workgroups_per_cu=held, issue=issue)
        yield Step(line["tile"], line["what"], held, float(line["ns"]), got.time_fs * 1e-6 / TURNS)


def steps_replayed() -> None:
    """Print measured and simulated nanoseconds a step."""
    print("| tile | what | workgroups an SM | measured, ns | simulated, ns | error |")
    print("| --- | --- | --- | --- | --- | --- |")
    for one in replayed(measured_steps(), gpu("h200")):
        error = 100 * (one.simulated / one.measured - 1)
        print(
            f"| {one.tile} | {one.what} | {one.workgroups_per_sm} | {one.measured:.0f} | {one.simulated:.0f} | "
            f"{error:+.0f} % |",
            flush=True,
        )
