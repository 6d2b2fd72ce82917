"""Passes over memory by tiles in several orders, replayed beside the measured ones, with the rows they activate."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from rich.console import Console
from rich.progress import Progress

from swizzle_benchmarks.validation.rows import DATA
from swizzle_benchmarks.validation.workloads import orders
from xcd_model import Gpu, IssueModel, Plan, TraceBuilder, gpu, prepare, replay_timed
from xcd_model.replay.service_times import service_times_of, speed_variation_of
from xcd_model.replay.traffic import WRITEBACKS

SIDE = 16384  # of a square matrix of fp32
TILES = ((32, 32), (32, 64), (64, 64), (32, 128), (16, 256), (8, 512))
ORDERS = ("row", "grp8", "band8", "morton", "col", "scatter")
RUNS = ("run2", "run16", "run128", "run256", "run512")  # of the smallest tiles
NAMES = ("kernel", "side", "rows", "cols", "order", "time_us")


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


def measured_passes() -> list[dict[str, str]]:
    """Lines of the measured table."""
    with (DATA / "machine" / "h200_orders.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def replayed(lines: Iterable[Mapping[str, str]], device: Gpu | None = None) -> Iterator[Pass]:
    """Replay measured lines on a GPU, the H200 where none is given."""
    device = device or gpu("h200")
    times, line_bytes = service_times_of(device), device.l2.line_bytes
    issue = IssueModel(IN_FLIGHT, 0, speed_variation=speed_variation_of(device))
    line_fs = line_bytes // device.l2.write_request_bytes * times.hbm_write
    for line in lines:
        kernel, order = line["kernel"], line["order"]
        side, rows, cols = (int(line[name]) for name in ("side", "rows", "cols"))
        tiles = orders.tiles_of(order, side // rows, side // cols, 1)
        got = replay_timed(
            _plan(kernel, side, rows, cols, device), tiles, workgroups_per_cu=WORKGROUPS_PER_CU, issue=issue
        )
        written = got.total(WRITEBACKS) * device.l2.write_request_bytes / line_bytes
        opened = got.activation_fs / max(1, times.hbm_row_write - line_fs) / max(1.0, written)
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


def passes_replayed() -> None:
    """Print simulated and measured times of all passes, and the rows that the writes opened."""
    lines = measured_passes()
    print("| pass | tiles | order | measured us | simulated us | error | rows opened a line |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    errors = []
    with Progress(console=Console(stderr=True)) as bar:
        for one in bar.track(replayed(lines), total=len(lines), description="passes"):
            error = 100 * (one.simulated_us / one.measured_us - 1)
            errors.append(abs(error))
            opened = f"{one.opened:.2f}" if one.kernel != "read" else "-"
            print(
                f"| {one.kernel} | {one.rows} x {one.cols} | {one.order} | {one.measured_us:.0f} | "
                f"{one.simulated_us:.0f} | {error:+.1f} % | {opened} |"
            )
    print(f"\nmean error {np.mean(errors):.1f} %")
