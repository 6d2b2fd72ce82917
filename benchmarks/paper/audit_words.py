"""What the page says of the audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.paper.wording import pct, points, table


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    printed = [row for row in data["rows"] if "as run" not in row["label"]]
    broken = [row for row in printed if not row["bijective"]]
    heads = ("figure", "kernel, grid", "bijection", "holds on", "the paper", "tiles computed", "measured [%]",
             "simulated [%]", "repaired, simulated [%]", "gain of the repair [points]")  # fmt: skip
    rows = [
        [
            row["label"],
            f"`{row['kernel']}`, {row['grid']}",
            "yes" if row["bijective"] else "**no**",
            row["condition"],
            row["claim"],
            f"{row['tiles_computed']:,} of {row['tiles']:,}",
            _pair(row["measured_launched_pct"], row["measured_pct"]),
            f"{pct(row['launched'])} → {pct(row['simulated'])}",
            pct(row["repaired"]),
            points(100 * (row["repaired"] - row["launched"])),
        ]
        for row in data["rows"]
    ]
    return "\n\n".join(
        [
            f"**{len(broken)} of the {len(printed)} printed formulas are no bijections** at the size they were "
            f"measured at. Simulated: {data['replay']} replay; that of what is no bijection is a raw schedule's, what "
            "the hardware did, not a score. Measured: public logs behind the paper. Formulas, counter-examples and "
            "repairs: [audit](../audit.md).",
            table(heads, rows, left=5),
        ]
    )


def _pair(before: float | None, after: float | None) -> str:
    return "no log" if before is None or after is None else f"{before:.1f} → {after:.1f}"
