"""Rows of the memory that passes by tiles open, beside how long those passes took on an H200.

    python -m benchmarks.fidelity.openings

Replays every line of ``data/machine/h200_orders.csv`` (counted by `benchmarks.fidelity.measure_orders`), four minutes,
and prints it with the simulated time, its error, and how many rows the writes opened for each line written.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from rich.console import Console
from rich.progress import Progress

from benchmarks.fidelity import orders
from benchmarks.fidelity.rows import DATA
from xcd_model import Gpu, IssueModel, Plan, TraceBuilder, gpu, prepare, replay_timed
from xcd_model.replay.service_times import service_times_of, speed_variation_of
from xcd_model.replay.traffic import WRITEBACKS

ITEM_BYTES = 4
WORKGROUPS_PER_CU, IN_FLIGHT = 12, 2  # 128 threads of some 40 registers; a load and a store


@dataclass(frozen=True)
class Pass:
    """One pass over memory: tiles of ``rows`` x ``cols`` fp32 of a square matrix, in an order, and what came of it.

    ``opened`` is the number of rows opened for each line written back; reads open rows for less than their bytes take.
    """

    kernel: str
    side: int
    rows: int
    cols: int
    order: str
    measured_us: float
    simulated_us: float
    opened: float


def table() -> list[dict[str, str]]:
    """Lines of the measured table."""
    with (DATA / "machine" / "h200_orders.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def passes(lines: Iterable[Mapping[str, str]], device: Gpu | None = None) -> Iterator[Pass]:
    """Replay measured lines on a GPU, the H200 where none is given."""
    device = device or gpu("h200")
    rates, line_bytes = service_times_of(device), device.l2.line_bytes
    pace = IssueModel(IN_FLIGHT, 0, speed_variation=speed_variation_of(device))
    line_fs = line_bytes // device.l2.write_request_bytes * rates.hbm_write
    for line in lines:
        kernel, order = line["kernel"], line["order"]
        side, rows, cols = (int(line[name]) for name in ("side", "rows", "cols"))
        tiles = orders.tiles_of(order, side // rows, side // cols, 1)
        got = replay_timed(
            _plan(kernel, side, rows, cols, device), tiles, workgroups_per_cu=WORKGROUPS_PER_CU, issue=pace
        )
        written = got.total(WRITEBACKS) * device.l2.write_request_bytes / line_bytes
        opened = got.activation_fs / max(1, rates.hbm_row_write - line_fs) / max(1.0, written)
        yield Pass(kernel, side, rows, cols, order, float(line["time_us"]), got.time_fs / 1e9, opened)


@lru_cache(maxsize=1)
def _plan(kernel: str, side: int, rows: int, cols: int, device: Gpu) -> Plan:
    down, across = np.divmod(np.arange(side // rows * (side // cols)), side // cols)
    build = TraceBuilder(n_workgroups=down.size, line_bytes=device.l2.line_bytes)
    x, y = (build.array(name, rows=side, cols=side, item_bytes=ITEM_BYTES) for name in "xy")
    tile = {"row": down * rows, "col": across * cols, "rows": rows, "cols": cols}
    if kernel != "write":
        build.step(build.read(x, **tile))
    if kernel != "read":
        build.step(build.write(y, **tile))
    return prepare(build.trace(), device)


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(prog="python -m benchmarks.fidelity.openings", description=__doc__).parse_args()
    lines = table()
    print("| pass | tiles | order | measured us | simulated us | error | rows opened a line |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    errors = []
    with Progress(console=Console(stderr=True)) as bar:
        for one in bar.track(passes(lines), total=len(lines), description="passes"):
            error = 100 * (one.simulated_us / one.measured_us - 1)
            errors.append(abs(error))
            opened = f"{one.opened:.2f}" if one.kernel != "read" else "-"
            print(
                f"| {one.kernel} | {one.rows} x {one.cols} | {one.order} | {one.measured_us:.0f} | "
                f"{one.simulated_us:.0f} | {error:+.1f} % | {opened} |"
            )
    print(f"\nmean error {np.mean(errors):.1f} %")


if __name__ == "__main__":
    main()
