"""What the README says of the fidelity, from ``docs/fidelity.csv``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.fidelity.page.ranks import Belief, beliefs
from benchmarks.fidelity.page.repeatability import measured_again
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.rows import all_rows
from benchmarks.fidelity.statistics import right_way_round

TABLE = Path(__file__).parents[2] / "docs" / "fidelity.csv"


def fidelity_words(path: Path = TABLE) -> str:
    """A paragraph: how many rows there are, and how far the timed replay is from the main kinds."""
    rows = pd.read_csv(path)
    rows = rows[rows.variant == "timed"]
    believed = _beliefs(rows)
    fit, held = believed["fit"], believed["held out"]
    heads = rows[(rows.order == "head-fast") & (rows.quantity == "l2_hit_pct")]
    reads = rows[(rows.gpu == "h200") & (rows.quantity == "dram_read_bytes") & ~rows.id.str.startswith("contributed")]
    near = 100 * np.mean(reads.error.abs() <= 20)
    again = [abs(one.error or 0.0) <= 20 for one in measured_again(all_rows()) if one.row.quantity == "dram_read_bytes"]
    right, apart = _pairs(rows[(rows.quantity == "time_us") & rows.id.str.startswith("h200/")])
    mixed = " and ".join(f"{one.predicted:.0f} % ({one.measured:.0f})" for one in heads.itertuples())
    return "\n".join(
        [
            "One workload, one wave of workgroups, the four orders that were published: it shows that the counting is "
            f"right, not that the model is. All {len(rows)}",
            "measured rows, the worst first, the kernels that constants were fitted to apart from those held out: "
            "[docs/fidelity.md](docs/fidelity.md). On MI300X",
            f"the timed replay is {fit.model:.1f} points off the counted L2 hit rates of kernels that constants were "
            f"fitted to and {held.model:.1f} off those of the others",
            f"({fit.rows} and {held.rows} orders; to say that no order matters would be {fit.no_change:.1f} and "
            f"{held.no_change:.1f} off); attention whose heads mix comes",
            f"out at {mixed}; of the H200's DRAM reads {near:.0f} % are within 20 % (of a second measurement "
            f"{100 * np.mean(again):.0f} %), and of {apart} pairs of",
            f"its orders whose times are over 3 % apart {right} come out the right way round.",
            "What is assumed, and on whose word, is in [docs/model.md](docs/model.md). The lockstep replay is too kind "
            "to bad orders: on hardware workgroups drift apart.",
        ]
    )


def _beliefs(rows: pd.DataFrame) -> dict[str, Belief]:
    """What the page says first of the L2 hit rates of MI300X, by half of the split."""
    measured = {row.id: row for row in all_rows()}
    model = [
        Prediction(row=measured[one.id], variant=one.variant, value=one.predicted, counts={})
        for one in rows[rows.predicted.notna()].itertuples()
    ]
    return {one.half: one for one in beliefs(model) if (one.gpu, one.quantity) == ("mi300x", "l2_hit_pct")}


def _pairs(times: pd.DataFrame) -> tuple[int, int]:
    """Pairs of orders of a workload that the model puts right, and all that are apart."""
    groups = (zip(group.measured, group.predicted, strict=True) for _, group in times.groupby("workload"))
    right, apart = zip(*(right_way_round(list(group)) for group in groups), strict=True)
    return sum(right), sum(apart)
