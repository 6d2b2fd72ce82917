"""Picojoules of a byte and of an operation on an NVIDIA GPU, from a stored table of joules that its board counted.

`energy_rates` prints what `xcd_model/spec/gpus/h200.toml` states under ``[energy]``, and what a second run gave. A rate
is what is left of a line's joules without those of the lines before it: first static power, then bytes at the L2, then
bytes of memory, then operations. Bytes of memory that a GEMM reads and writes are those of the H200 table.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from swizzle_benchmarks.validation.rows import DATA

BEFORE_S, COUNTED_S = (
    0.8,
    6.0,
)  # each launch is repeated before it is counted, as the clock settles; the counter moves ten times a second
TILE = {"BM": 128, "BK": 64}
GEMMS: tuple[tuple[dict[str, int], tuple[str, ...]], ...] = (
    ({"M": 8192, "N": 8192, "K": 8192, "BN": 256}, ("grp16", "band8", "row", "scatter")),
    ({"M": 8192, "N": 8192, "K": 8192, "BN": 128}, ("grp16", "band8", "row")),
    ({"M": 16384, "N": 16384, "K": 2048, "BN": 128}, ("band8grp4", "grp16", "row")),
    ({"M": 4096, "N": 4096, "K": 4096, "BN": 256}, ("grp8", "row")),
)


FIRST, SECOND = "machine/h200_power.csv", "machine/h200_power_again.csv"
PROFILED, LAUNCHES = "machine/h200_ncu.csv", "h200_calibration.csv"
SIZES = ("M", "N", "K", "BM", "BN", "BK")
Line = Mapping[str, str]


@dataclass(frozen=True)
class Middle:
    """Median, lowest and highest of several lines."""

    low: float
    value: float
    high: float


@dataclass(frozen=True)
class Rates:
    """Power drawn in any case [W], picojoules a byte or operation, and what a launch by itself drew [W]."""

    static_w: float
    waiting_w: float
    l2_pj_per_byte: float
    hbm_pj_per_byte: float
    fp32_pj: float
    fp16_pj: Middle
    power_w: Middle


def rates(name: str = FIRST) -> Rates:
    """Take the rates from a table that `power` wrote, a file's name under ``data``, and from those of GEMM launches."""
    lines = _lines(name)
    counted = {(line["what"], line["together_bytes"]): line for line in lines}
    static = _watts(counted["wait of one wave an SM", "0"])
    l2 = _pj(counted["read L2", "0"], "bytes", static)
    hbm = _pj(counted["read memory", "0"], "bytes", static) - l2
    of_memory = {_name(line): _memory_bytes(line) for line in _lines(LAUNCHES) if line["kernel"] == "gemm"}
    fp16 = [_gemm_pj(line, static, l2, hbm, of_memory) for line in lines if line["what"].startswith("gemm")]
    middle = _middle(fp16)
    return Rates(
        static_w=static,
        waiting_w=_watts(counted["wait of 64 waves an SM", "0"]),
        l2_pj_per_byte=l2,
        hbm_pj_per_byte=hbm,
        fp32_pj=_pj(counted["multiply-add", "0"], "operations", static),
        fp16_pj=middle,
        power_w=_middle([static + _dynamic_w(line, l2, hbm, middle.value) for line in _lines(PROFILED)]),
    )


def pieces(what: str) -> dict[int, float]:
    """Rate at which memory is read or written in pieces of so many bytes, drawn over 4 GiB [TB/s]; 0: in order."""
    lines = [line for line in _lines(FIRST) if line["what"] == what]
    return {int(line["together_bytes"]): float(line["bytes"]) / float(line["seconds"]) / 1e12 for line in lines}


def _lines(name: str) -> list[Line]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _watts(line: Line) -> float:
    return float(line["joules"]) / float(line["seconds"])


def _pj(line: Line, of: str, static_w: float) -> float:
    return 1e12 * (float(line["joules"]) - static_w * float(line["seconds"])) / float(line[of])


def _name(line: Line) -> str:
    return f"gemm {'x'.join(line[name] for name in SIZES)} {line['order']}"


def _memory_bytes(line: Line) -> float:
    return float(line["dram_read_bytes"]) + float(line["dram_write_bytes"])


def _gemm_pj(line: Line, static_w: float, l2: float, hbm: float, of_memory: Mapping[str, float]) -> float:
    moved_j = 1e-12 * (l2 * float(line["bytes"]) + hbm * of_memory[line["what"]] * int(line["launches"]))
    left_j = float(line["joules"]) - static_w * float(line["seconds"]) - moved_j
    return 1e12 * left_j / float(line["operations"])


def _dynamic_w(line: Line, l2: float, hbm: float, fp16_pj: float) -> float:
    """What a profiled GEMM drew beside the static power: terabytes and teraflop a second times picojoules."""
    m, n, k, *_ = (int(size) for size in line["problem"].split("x"))
    tflops = 2.0 * m * n * k / float(line["time_us"]) / 1e6
    return l2 * float(line["sm_read_tb_per_s"]) + hbm * float(line["dram_read_tb_per_s"]) + fp16_pj * tflops


def _middle(values: Sequence[float]) -> Middle:
    return Middle(min(values), median(values), max(values))


def energy_rates() -> None:
    """Print the rates of both runs, and the rates by piece of the first."""
    for name in (FIRST, SECOND):
        print(name)
        _print_rates(rates(name))
    for what in ("read memory", "write memory"):
        print(what, {together: round(rate, 2) for together, rate in pieces(what).items()}, "TB/s by bytes together")


def _print_rates(found: Rates) -> None:
    for name, value in vars(found).items():
        print(
            name,
            f"{value.value:.3g} ({value.low:.3g} to {value.high:.3g})" if isinstance(value, Middle) else f"{value:.3g}",
        )
