"""Public MI300X counters of the paper's kernels, and the model's timed replay of the very same orders."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

from swizzle_benchmarks.validation.predict import predict_all
from swizzle_benchmarks.validation.rows import DATA, PAPER_SOURCE, Row, paper_rows, quick_rows
from swizzle_sim.workload.kernels import kernel

from .settings import Settings

SOURCE = PAPER_SOURCE
REPLAY = "timed"


def rows_at_default(name: str) -> list[Row]:
    """Measured rows of a kernel at the suite's size."""
    usual = kernel(name).problem
    return [row for row in paper_rows() if row.kernel == name and all(usual[k] == v for k, v in row.problem.items())]


def measured(name: str) -> dict[str, Any]:
    """As launched, the best bijection, and the best of what is none, as measured; None where no row has it."""
    rows, speedups = rows_at_default(name), _speedups()
    launched = next((row for row in rows if row.order == "baseline"), None)

    def best(bijective: bool) -> dict[str, Any] | None:
        ours = [row for row in rows if row.bijective == bijective and row.order != "baseline"]
        if not ours:
            return None
        top = max(ours, key=lambda row: row.measured)
        return {
            "order": top.order,
            "l2_pct": top.measured,
            "launched_pct": None if top.baseline is None else round(top.baseline, 3),
            "speedup": speedups[top.id],
            "what": top.note,
        }

    return {
        "launched_pct": launched and launched.measured,
        "range_pct": launched and [launched.low, launched.high],
        "bijection": best(True),
        "no_bijection": best(False),
    }


def same_orders(names: Sequence[str], settings: Settings) -> list[dict[str, Any]]:
    """Measured orders that are bijections, beside the replay of each; kept where `make fidelity` keeps its own."""
    rows = [row for name in names for row in rows_at_default(name) if row.bijective]
    if settings.quick:
        rows = quick_rows([row for row in paper_rows() if row.bijective and row.kernel in names])
    found = predict_all(rows, [REPLAY], processes=1 if settings.quick else settings.processes, again=settings.again)
    return [
        {
            "kernel": one.row.kernel,
            "order": one.row.order,
            "what": one.row.note,
            "measured_pct": one.row.measured,
            "low_pct": one.row.low,
            "high_pct": one.row.high,
            "simulated_pct": one.value,
            "trust": one.row.trust,
        }
        for one in found
    ]


def _speedups() -> dict[str, float]:
    """Measured speedup by row id: the tables of rates leave it out."""
    with (DATA / "mi300x_swizzleperf.csv").open(encoding="utf-8", newline="") as file:
        return {f"paper/{line['formula_id']}": float(line["speedup"]) for line in csv.DictReader(file)}
