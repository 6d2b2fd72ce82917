"""What an NVIDIA GPU draws: compile `power.cu`, run it, then count the joules of GEMMs under several orders.

    python -m benchmarks.fidelity.measure_power FOLDER

Needs nvcc, torch, Triton and a GPU whose driver counts joules; takes four minutes. Writes ``power.csv`` into the
folder; the table of one H200 is ``benchmarks/fidelity/data/machine/h200_power.csv``. What follows from it,
``python -m benchmarks.fidelity.power`` says.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean

import torch

from benchmarks.fidelity import h200, orders
from benchmarks.fidelity.nvcc import folder_asked, outputs
from benchmarks.fidelity.nvidia_launch import MAKERS

SOURCE = Path(__file__).with_name("power.cu")
BEFORE_S, COUNTED_S = (
    0.8,
    6.0,
)  # each launch is repeated before it is counted, as the clock settles; the counter moves ten times a second
AT_ONCE = 16  # launches queued together
SM_CLOCK = 1  # NVML_CLOCK_SM
TILES = {"BM": 128, "BK": 64}
GEMMS: tuple[tuple[dict[str, int], tuple[str, ...]], ...] = (
    ({"M": 8192, "N": 8192, "K": 8192, "BN": 256}, ("grp16", "band8", "row", "scatter")),
    ({"M": 8192, "N": 8192, "K": 8192, "BN": 128}, ("grp16", "band8", "row")),
    ({"M": 16384, "N": 16384, "K": 2048, "BN": 128}, ("band8grp4", "grp16", "row")),
    ({"M": 4096, "N": 4096, "K": 4096, "BN": 256}, ("grp8", "row")),
)


@dataclass(frozen=True)
class Counted:
    """What one launch, repeated, took."""

    seconds: float
    joules: float
    launches: int
    clock_mhz: float


class Board:
    """The first GPU, as its driver's management library sees it."""

    def __init__(self) -> None:
        self.library, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            sys.exit("the driver's management library does not see a GPU")

    def joules(self) -> float:
        """Energy drawn since the driver started [J]."""
        found = ctypes.c_ulonglong()
        if self.library.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(found)):
            sys.exit("this GPU's driver does not count joules")
        return found.value / 1e3

    def clock_mhz(self) -> int:
        """Clock of the SMs now [MHz]."""
        found = ctypes.c_uint()
        self.library.nvmlDeviceGetClockInfo(self.device, SM_CLOCK, ctypes.byref(found))
        return found.value


def main() -> None:
    """Measure, or exit with status 1 and a line that says what is missing."""
    folder = folder_asked("benchmarks.fidelity.measure_power")
    (text,) = outputs(SOURCE, "-ldl")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "power.csv").open("w", encoding="utf-8") as table:
        table.write(text)
        for line in gemms(Board()):
            print(line, flush=True)
            table.write(line + "\n")


def gemms(board: Board) -> Iterator[str]:
    """A line for each launch of `GEMMS`, as `power.cu` prints them; bytes are what SMs read and write."""
    torch.manual_seed(0)
    for sizes, names in GEMMS:
        size = sizes | TILES
        m, n, k, bm, bn, bk = (size[name] for name in ("M", "N", "K", "BM", "BN", "BK"))
        moved = 2 * (m * n * k // bm + m * n * k // bn + m * n)
        launch, _, _ = MAKERS["gemm"](size, h200.KERNELS["gemm"].warps)
        for name in names:
            tiles = torch.from_numpy(orders.tiles_of(name, m // bm, n // bn, 1)).to("cuda", torch.int32)
            found = counted(partial(launch, tiles), board)
            yield (
                f"gemm {m}x{n}x{k}x{bm}x{bn}x{bk} {name},0,{found.seconds:.4f},{found.joules:.3f},{found.launches},"
                f"{moved * found.launches:.6g},{2.0 * m * n * k * found.launches:.6g},{found.clock_mhz:.0f}"
            )


def counted(launch: Callable[[], None], board: Board) -> Counted:
    """Launch again and again, and count."""
    _repeat(launch, board, BEFORE_S)
    before, began = board.joules(), time.perf_counter()
    launches, clock = _repeat(launch, board, COUNTED_S)
    seconds = time.perf_counter() - began
    return Counted(seconds, board.joules() - before, launches, clock)


def _repeat(launch: Callable[[], None], board: Board, least_s: float) -> tuple[int, float]:
    """Launch for so long; return how often, and the mean clock of the SMs [MHz]."""
    began, launches, clocks = time.perf_counter(), 0, []
    while time.perf_counter() - began < least_s:
        for _ in range(AT_ONCE):
            launch()
        clocks.append(board.clock_mhz())
        torch.cuda.synchronize()
        launches += AT_ONCE
    return launches, mean(clocks)


if __name__ == "__main__":
    main()
