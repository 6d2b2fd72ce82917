"""How long a pass over memory takes by tiles in several orders: reads alone, writes alone, and copies.

    python -m benchmarks.fidelity.measure_orders FOLDER

Needs torch, Triton and a GPU; takes half a minute. Writes ``orders.csv`` into the folder: the median of five launches
after two, each with other data in the L2. The table of one H200 is
``benchmarks/fidelity/data/machine/h200_orders.csv``; `benchmarks.fidelity.openings` puts beside it how many rows of the
memory the model opens.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import torch

from benchmarks.fidelity import nvidia_kernels, orders
from benchmarks.fidelity.nvcc import folder_asked

SIDE = 16384  # of a square matrix of fp32
TILES = ((32, 32), (32, 64), (64, 64), (32, 128), (16, 256), (8, 512))
ORDERS = ("row", "grp8", "band8", "morton", "col", "scatter")
RUNS = ("run2", "run16", "run128", "run256", "run512")  # of the smallest tiles
FLUSHED_BYTES = 256 << 20
DELAY_CYCLES = 200_000  # until both events are queued
NAMES = ("kernel", "side", "rows", "cols", "order", "time_us")


def main() -> None:
    """Measure, and write the table."""
    folder = folder_asked("benchmarks.fidelity.measure_orders")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "orders.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(NAMES)
        for line in measured():
            table.writerow(line)


def measured() -> Iterator[tuple[str, int, int, int, str, str]]:
    """Rows of the table, one launch after the other."""
    x, y = (torch.ones(SIDE, SIDE, device="cuda") for _ in range(2))
    kernels = {
        "read": nvidia_kernels.pass_reads,
        "write": nvidia_kernels.pass_writes,
        "copy": nvidia_kernels.pass_copies,
    }
    for rows, cols in TILES:
        for name in (*ORDERS, *RUNS) if (rows, cols) == TILES[0] else ORDERS:
            if name == "morton" and rows != cols:
                continue  # no permutation of a grid that is not square
            tiles = orders.tiles_of(name, SIDE // rows, SIDE // cols, 1)
            order = torch.from_numpy(tiles).to("cuda", torch.int32)
            for what, kernel in kernels.items():
                launch = partial(kernel[(order.numel(),)], order, x, y, SIDE, BM=rows, BN=cols, num_warps=4)
                yield what, SIDE, rows, cols, name, f"{median(times_us(launch)):.1f}"


def times_us(launch: Callable[[], None], *, warm: int = 2, counted: int = 5) -> list[float]:
    """Times of single launches [us], the L2 filled with other data before each."""
    other = torch.empty(FLUSHED_BYTES, dtype=torch.int8, device="cuda")
    found = []
    for _ in range(warm + counted):
        other.zero_()
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(DELAY_CYCLES)
        begin.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        found.append(1e3 * begin.elapsed_time(end))
    return found[warm:]


if __name__ == "__main__":
    main()
