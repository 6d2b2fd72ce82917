"""The launches of the H200 table measured again: what a prediction could reach at best.

``data/h200_again.csv`` holds two runs of `measure_nvidia` over the whole table, minutes apart on one H200. Their
kernels do the same loads and stores as the table's; the order comes from a table in memory.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from functools import lru_cache

from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.quantities import QUANTITIES
from benchmarks.fidelity.rows import DATA, Row

TABLE = DATA / "h200_again.csv"
AGAIN = "measured again"
Key = tuple[str, str, str, str]


@lru_cache
def runs() -> tuple[dict[Key, float], ...]:
    """Values of each run, by kernel, sizes, order and quantity."""
    found: dict[str, dict[Key, float]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            sizes = _sizes(json.loads(line["problem"]))
            for quantity in QUANTITIES.keys() & line.keys():
                if line[quantity]:
                    key = (line["kernel"], sizes, line["order"], quantity)
                    found.setdefault(line["run"], {})[key] = float(line[quantity])
    return tuple(found.values())


def software() -> str:
    """Driver and compiler of the runs, in words."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return " and ".join(
            dict.fromkeys(f"driver {line['driver']}, {line['compiler']}" for line in csv.DictReader(file))
        )


def measured_again(rows: Sequence[Row], run: int = 0) -> list[Prediction]:
    """What one of the `runs` counted for the rows of the H200 table, as if it were a prediction of them."""
    values = runs()[run]
    return [
        Prediction(row=row, variant=AGAIN, value=values[key], counts={})
        for row in rows
        if row.table == "h200" and (key := (row.kernel, _sizes(row.problem), row.order, row.quantity)) in values
    ]


def _sizes(problem) -> str:
    return ",".join(f"{name}={problem[name]}" for name in sorted(problem))
