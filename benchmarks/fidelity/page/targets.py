"""The section on targets: what each variant of the model reaches, and what the hardware does, counted again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.fidelity.page.repeatability import AGAIN, counted_between, measured_again, noisy_launch_orders
from benchmarks.fidelity.page.tables import table
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.rows import Row
from benchmarks.fidelity.targets import Check, checks
from benchmarks.fidelity.variants import VARIANTS

OTHERS = "MI355X (other kernels of its tutorial, of the same tile and loads, between its two tables)"


def targets_section(predictions: Sequence[Prediction], variants: Sequence[str]) -> str:
    """What the variants are, how many targets they meet, and a table of all, missed ones first."""
    by_variant = {name: checks([one for one in predictions if one.variant == name]) for name in variants}
    rows = [one.row for one in predictions if one.variant == variants[0]]
    again_on = {OTHERS: checks(counted_between(rows)), "H200": checks(measured_again(rows))}
    again = [check for got in again_on.values() for check in got]
    columns_of = by_variant | ({AGAIN: again} if again else {})
    found = {name: {(c.data, c.what): c for c in got} for name, got in columns_of.items()}
    lines = []
    for check in sorted(by_variant[variants[0]], key=lambda check: check.hit):
        others = [each.get((check.data, check.what)) for each in found.values()]
        cells = ["-" if other is None else ("" if other.hit else "**missed** ") + other.reached for other in others]
        lines.append([check.data, check.what, check.target, "met" if check.hit else check.missed_by, *cells])
    columns = ["data", "figure", "target", f"{variants[0]} misses it by", *found]
    hits = ", ".join(f"{name} {_of(got)}" for name, got in by_variant.items() if got)
    words = "".join(f"- **{name}**: {VARIANTS[name]}.\n" for name in variants)
    itself = _itself(by_variant[variants[0]], again_on) + _twice(rows)
    return f"{words}\nTargets met: {hits}.{itself} Missed ones first.\n\n" + table(columns, lines)


def _of(got: Sequence[Check]) -> str:
    return f"{sum(check.hit for check in got)} of {len(got)}"


def _itself(model: Sequence[Check], again_on: Mapping[str, Sequence[Check]]) -> str:
    """How many targets the hardware meets that was counted again, by GPU, and of those that the model misses."""
    words = " and ".join(f"{_of(got)} on the {name}" for name, got in again_on.items() if got)
    missed = {(check.data, check.what) for check in model if not check.hit}
    of_missed = [check for got in again_on.values() for check in got if (check.data, check.what) in missed]
    more = f", and {_of(of_missed)} of those that the model misses" if of_missed else ""
    return f" The hardware, in a {AGAIN}, meets {words}{more}." if words else ""


def _twice(rows: Sequence[Row]) -> str:
    """A line on changes that are between two counts of one order, which no model can have the sign of."""
    found = noisy_launch_orders([row for row in rows if row.bijective and row.trust in "AB"])
    each = ", ".join(f"`{row.kernel} {row.order}` by {row.measured - (row.baseline or 0):+.1f} points" for row in found)
    return (
        f" Excluded, since the order equals the launch order and its measured change is noise: {each}." if found else ""
    )
