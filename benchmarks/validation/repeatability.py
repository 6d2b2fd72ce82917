"""Repeated measurements of the H200 table: its runs, and the trust that a row earns by agreeing with them.

``data/h200_again.csv`` holds two runs of ``python -m swizzle_benchmarks.lab counters`` over the whole table, minutes
apart on one H200. Their kernels do the same loads and stores as the table's; the order comes from a table in memory.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from .quantities import QUANTITIES

TABLE = Path(__file__).parent / "data" / "h200_again.csv"
AGREE_PCT, AGREE_POINTS = 5.0, 1.0
OTHER_CODE = ("h200_stencil", "time_us")  # compiled from another source, the stencil takes up to 60 % longer
Key = tuple[str, str, str, str]


@lru_cache
def runs() -> tuple[dict[Key, float], ...]:
    """Values of each run, by what `key` makes of a launch."""
    found: dict[str, dict[Key, float]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            for quantity in QUANTITIES.keys() & line.keys():
                if line[quantity]:
                    launch = key(line["kernel"], json.loads(line["problem"]), line["order"], quantity)
                    found.setdefault(line["run"], {})[launch] = float(line[quantity])
    return tuple(found.values())


def key(kernel: str, problem: Mapping[str, int], order: str, quantity: str) -> Key:
    """Kernel, sizes as text, order and quantity."""
    return kernel, ",".join(f"{name}={problem[name]}" for name in sorted(problem)), order, quantity


def software() -> str:
    """Driver and compiler of the runs, in words."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return " and ".join(
            dict.fromkeys(f"driver {line['driver']}, {line['compiler']}" for line in csv.DictReader(file))
        )


def trust(kernel: str, problem: Mapping[str, int], order: str, quantity: str, value: float) -> str:
    """A where every run counted what the table has, D where one did not, C where nothing was counted again.

    Agreeing is within `AGREE_PCT` of the table's value, or `AGREE_POINTS` for rates.
    """
    launch = key(kernel, problem, order, quantity)
    others = [run[launch] for run in runs() if launch in run]
    if not others or (kernel, quantity) == OTHER_CODE:
        return "C"
    most = abs(value) * AGREE_PCT / 100 if QUANTITIES[quantity].relative else AGREE_POINTS
    return "A" if all(abs(other - value) <= most for other in others) else "D"
