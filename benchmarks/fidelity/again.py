"""What was counted a second time: the same launches on the H200, the same orders by other kernels on the MI355X."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.fidelity.from_row import tiles_of, workload
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.repeats import Key, key, runs
from benchmarks.fidelity.rows import Row
from benchmarks.fidelity.statistics import CHANGE
from xcd_model import gpu

AGAIN = "measured again"
BETWEEN, COUNTED_TWICE = "gemm_gluon_between", ("gemm_gluon_old", "gemm_gluon_new")


def measured_again(rows: Sequence[Row], run: int = 0) -> list[Prediction]:
    """What one of the `runs` counted for the rows of the H200 table, as if it were a prediction of them."""
    values = runs()[run]
    launches = [(row, key(row.kernel, row.problem, row.order, row.quantity)) for row in rows if row.table == "h200"]
    return [
        Prediction(row=row, variant=AGAIN, value=values[launch], counts={})
        for row, launch in launches
        if launch in values
    ]


def counted_between(rows: Sequence[Row]) -> list[Prediction]:
    """What ROCm's tutorial counted of its GEMM's orders between its two tables, as if it predicted those.

    By other kernels of the tutorial, of the same tile and loads, one of them as fast as the newer.
    """
    values = {_between(row): row.measured for row in rows if row.kernel == BETWEEN}
    return [
        Prediction(row=row, variant=AGAIN, value=values[_between(row)], counts={})
        for row in rows
        if row.kernel in COUNTED_TWICE and _between(row) in values
    ]


def _between(row: Row) -> Key:
    return key(BETWEEN, row.problem, row.order, row.quantity)


def launched_apart(rows: Sequence[Row]) -> list[Row]:
    """Rows whose order is the one as launched, and that were counted over a point from it all the same."""
    return [
        row
        for row in rows
        if row.table == "paper" and row.baseline is not None and abs(row.measured - row.baseline) > CHANGE
        if _as_launched(row)
    ]


def _as_launched(row: Row) -> bool:
    work = workload(row)
    tiles = tiles_of(row, work, gpu(row.gpu).xcds)
    return bool(np.array_equal(tiles, np.arange(tiles.size)))
