"""What the README says of the fidelity, from ``docs/fidelity.csv``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.fidelity.again import measured_again
from benchmarks.fidelity.rows import all_rows
from benchmarks.fidelity.statistics import right_way_round

TABLE = Path(__file__).parents[2] / "docs" / "fidelity.csv"


def fidelity_words(path: Path = TABLE) -> str:
    """A paragraph: how many rows there are, and how far the timed replay is from the main kinds."""
    rows = pd.read_csv(path)
    rows = rows[rows.variant == "timed"]
    rates = rows[(rows.gpu == "mi300x") & (rows.quantity == "l2_hit_pct")]
    orders = rates[rates.bijective & rates.trust.isin(["A", "B"]) & ~rates.kernel.str.startswith("attention")]
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
            f"the timed replay is {_mean(orders, 'fit')} off the counted L2 hit rates of permutations of kernels that "
            f"constants were fitted to, and {_mean(orders, 'held out')} of the others",
            f"(to say that no order matters: {_unmoved(orders, 'fit')} and {_unmoved(orders, 'held out')}); attention "
            "whose heads mix comes",
            f"out at {mixed}; of the H200's DRAM reads {near:.0f} % are within 20 % (of a second measurement "
            f"{100 * np.mean(again):.0f} %), and of {apart} pairs of",
            f"its orders whose times are over 3 % apart {right} come out the right way round.",
            "What is assumed, and on whose word, is in [docs/model.md](docs/model.md). The lockstep replay is too kind "
            "to bad orders: on hardware workgroups drift apart.",
        ]
    )


def _mean(rows: pd.DataFrame, half: str) -> str:
    """Mean error of the rows of a half, and how many there are."""
    some = rows[rows.half == half]
    return f"{some.error.abs().mean():.1f} points ({len(some)} rows)"


def _unmoved(rows: pd.DataFrame, half: str) -> str:
    """Mean error of the rows of a half, were all predicted to be as measured in the order as launched."""
    some = rows[rows.half == half]
    return f"{(some.measured - some.baseline).abs().mean():.1f}"


def _pairs(times: pd.DataFrame) -> tuple[int, int]:
    """Pairs of orders of a workload that the model puts right, and all that are apart."""
    groups = (zip(group.measured, group.predicted, strict=True) for _, group in times.groupby("workload"))
    right, apart = zip(*(right_way_round(list(group)) for group in groups), strict=True)
    return sum(right), sum(apart)
