"""The launches of the H200 table measured again: what a prediction could reach at best; see `repeats`."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.repeats import key, runs
from benchmarks.fidelity.rows import Row

AGAIN = "measured again"


def measured_again(rows: Sequence[Row], run: int = 0) -> list[Prediction]:
    """What one of the `runs` counted for the rows of the H200 table, as if it were a prediction of them."""
    values = runs()[run]
    launches = [(row, key(row.kernel, row.problem, row.order, row.quantity)) for row in rows if row.table == "h200"]
    return [
        Prediction(row=row, variant=AGAIN, value=values[launch], counts={})
        for row, launch in launches
        if launch in values
    ]
