"""What the README says of the fidelity, from ``docs/fidelity.csv``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.fidelity.again import measured_again
from benchmarks.fidelity.page_believe import Belief, beliefs
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.rows import all_rows
from benchmarks.fidelity.statistics import right_way_round
from benchmarks.fidelity.targets import checks

TABLE = Path(__file__).parents[2] / "docs" / "fidelity.csv"


def fidelity_words(path: Path = TABLE) -> str:
    """Paragraphs: how many rows there are, how far the timed replay is from them, and which GPU they are of."""
    rows = pd.read_csv(path)
    rows = rows[rows.variant == "timed"]
    believed = _beliefs(rows)
    fit, held = believed["fit"], believed["held out"]
    heads = rows[(rows.order == "head-fast") & (rows.quantity == "l2_hit_pct")]
    reads = rows[(rows.gpu == "h200") & (rows.quantity == "dram_read_bytes") & ~rows.id.str.startswith("contributed")]
    near = 100 * np.mean(reads.error.abs() <= 20)
    again = [abs(one.error or 0.0) <= 20 for one in measured_again(all_rows()) if one.row.quantity == "dram_read_bytes"]
    right, apart = _pairs(rows[(rows.quantity == "time_us") & rows.id.str.startswith("h200/")])
    mixed = ", ".join(
        f"{one.predicted:.0f} % (counter {one.measured:.0f} %) on {one.gpu.upper()}" for one in heads.itertuples()
    )
    targets = checks(_predictions(rows))
    ours = sum(one.data.startswith("H200") for one in targets)
    return f"""\
This validates request counting only: one workload, one wave of workgroups, so every line is missed once per XCD.
[docs/fidelity.md](docs/fidelity.md) has all {len(rows)} measured rows, worst first, fitted kernels and held-out ones
separately:

- MI300X, timed replay: mean error of the L2 hit rate {fit.model:.1f} points on kernels that constants were fitted to,
  {held.model:.1f} on held-out ones ({fit.rows} and {held.rows} orders; "no order matters" would have
  {fit.no_change:.1f} and {held.no_change:.1f}).
- Head-fast attention: predicted L2 hit rate {mixed}.
- H200: {near:.0f} % of the DRAM reads are within 20 % (of a second measurement {100 * np.mean(again):.0f} %).
  Of {apart} pairs whose measured times differ by over 3 %, {right} are ranked correctly.

{ours} of the {len(targets)} fidelity targets are rows of an H200, which has no XCDs. They exercise eight mechanisms
that an MI300X never uses (among them a partitioned L2, row activation, read-write turnaround) and skip three that it
does: the Infinity Cache, instruction fetch, and the bound on outstanding reads per CU. The MI300X and MI355X path is
compared only with counters that others published. [docs/model.md](docs/model.md) lists each assumption with its source.
Lockstep overestimates hit rates of poor mappings; use `--replay timed` to compare mappings."""


def _beliefs(rows: pd.DataFrame) -> dict[str, Belief]:
    """What the page says first of the L2 hit rates of MI300X, by half of the split."""
    found = beliefs(_predictions(rows))
    return {one.half: one for one in found if (one.gpu, one.quantity) == ("mi300x", "l2_hit_pct")}


def _predictions(rows: pd.DataFrame) -> list[Prediction]:
    """Predictions of the table, with the rows that they are compared with."""
    measured = {row.id: row for row in all_rows()}
    return [
        Prediction(row=measured[one.id], variant=one.variant, value=one.predicted, counts={})
        for one in rows[rows.predicted.notna()].itertuples()
    ]


def _pairs(times: pd.DataFrame) -> tuple[int, int]:
    """Pairs of orders of a workload that the model ranks correctly, and all whose times differ."""
    groups = (zip(group.measured, group.predicted, strict=True) for _, group in times.groupby("workload"))
    right, apart = zip(*(right_way_round(list(group)) for group in groups), strict=True)
    return sum(right), sum(apart)
