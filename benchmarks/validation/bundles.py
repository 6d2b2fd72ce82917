"""Three kernels of the suite that an H200 ran from our own bundles, beside what was predicted and committed before.

    python -m swizzle_benchmarks.validation.bundles

The predictions are in ``h200_bundles_predicted.csv``, the medians of 60 cold launches and the counts in
``h200_bundles.csv`` (Triton 3.6.0, driver 580.159.04, outputs equal bit for bit).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from statistics import mean

from .held_out import regret

LAUNCHED, GROUPED = "as launched", "group_m(size=8)"
_PREDICTED, _MEASURED = "data/h200_bundles_predicted.csv", "data/h200_bundles.csv"


@dataclass(frozen=True)
class Order:
    """One order of one kernel."""

    kernel: str
    problem: str
    order: str
    is_choice: bool  # whether the tool ranks it first
    predicted_us: float  # of the timed replay; median of cold launches
    measured_us: float
    predicted_bytes: int  # read from memory
    counted_bytes: int | None  # none where the profiler did not come to it


def _read(name: str) -> list[dict[str, str]]:
    text = resources.files("swizzle_benchmarks.validation").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def orders() -> list[Order]:
    """All orders, the launch order of each kernel first."""
    measured = {(one["kernel"], one["order"]): one for one in _read(_MEASURED)}
    found = []
    for one in _read(_PREDICTED):
        ran = measured[one["kernel"], one["order"]]
        found.append(
            Order(
                kernel=one["kernel"],
                problem=one["problem"],
                order=one["order"],
                is_choice=one["choice"] == "yes",
                predicted_us=float(one["time_us"]),
                measured_us=float(ran["time_cold_us"]),
                predicted_bytes=int(one["dram_read_bytes"]),
                counted_bytes=int(ran["dram_read_bytes"]) if ran["dram_read_bytes"] else None,
            )
        )
    return found


def regrets(found: list[Order]) -> dict[str, list[float]]:
    """Measured time over the least measured one, less 1, for each kernel: of the tool's choice and two fixed orders."""
    by_kernel: dict[str, list[Order]] = {}
    for one in found:
        by_kernel.setdefault(one.kernel, []).append(one)
    picks = {
        "the tool's choice": lambda one: one.is_choice,
        "the launch order": lambda one: one.order == LAUNCHED,
        f"`{GROUPED}`": lambda one: one.order == GROUPED,
    }
    return {
        name: [regret(mine, next(one for one in mine if is_it(one))) for mine in by_kernel.values()]
        for name, is_it in picks.items()
    }


def table() -> str:
    """The two tables of the page, in Markdown."""
    found = orders()
    launched = {one.kernel: one for one in found if one.order == LAUNCHED}
    lines = [
        "| kernel | order | predicted, relative | measured, relative | measured [us] | reads predicted [GB] | read |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        first = launched[one.kernel]
        counted = "-" if one.counted_bytes is None else f"{one.counted_bytes / 1e9:.3f}"
        name = f"**{one.order}**" if one.is_choice else one.order
        lines.append(
            f"| {one.kernel} {one.problem} | {name} | {one.predicted_us / first.predicted_us:.3f} | "
            f"{one.measured_us / first.measured_us:.3f} | {one.measured_us:.1f} | "
            f"{one.predicted_bytes / 1e9:.3f} | {counted} |"
        )
    lines += ["", f"| regret [%] | {' | '.join(launched)} | mean |", "| --- " * (len(launched) + 2) + "|"]
    for name, values in regrets(found).items():
        lines.append(f"| {name} | {' | '.join(f'{100 * one:.1f}' for one in values)} | {100 * mean(values):.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
