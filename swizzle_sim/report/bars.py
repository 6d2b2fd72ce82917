"""Tables with bars: hit rate of each XCD, and where the time goes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from swizzle_sim.report.content import microseconds, percent
from swizzle_sim.scoring import Score
from xcd_model import Time

RESOURCES = {
    "compute": "compute",
    "l2": "L2",
    "fabric": "fabric between L2 and memory side",
    "mall": "Infinity Cache",
    "hbm": "HBM",
    "power": "power: joules over watts",
}


@dataclass(frozen=True)
class Bars:
    """One row: a figure as launched and under the best swizzle, with bars in percent of the table's longest."""

    name: str
    before: float
    after: float
    before_text: str
    after_text: str


def xcd_bars(before: Score, after: Score) -> list[Bars]:
    """L2 hit rate of each XCD."""
    pairs = zip(before.per_xcd_l2_hit_rate, after.per_xcd_l2_hit_rate, strict=True)
    return [Bars(f"XCD {x}", _share(a), _share(b), _rate(a), _rate(b)) for x, (a, b) in enumerate(pairs)]


def time_bars(before: Time, after: Time) -> list[Bars]:
    """Time that each resource takes; what none of them takes is the way to memory and back."""
    longest = max(before.total_us, after.total_us) or 1.0
    rows = []
    for name, said in RESOURCES.items():
        if name not in before.by_resource_us and name not in after.by_resource_us:
            continue
        mine, its = before.by_resource_us.get(name, 0.0), after.by_resource_us.get(name, 0.0)
        rows.append(_time_row(said, mine, its, longest))
    if before.latency_us or after.latency_us:
        rows.append(_time_row("first trip to memory, and the last back", before.latency_us, after.latency_us, longest))
    rows.append(_time_row("whole kernel", before.total_us, after.total_us, longest))
    return rows


def _time_row(name: str, before_us: float, after_us: float, longest_us: float) -> Bars:
    mine, its = (round(100 * us / longest_us, 2) for us in (before_us, after_us))
    return Bars(name, mine, its, f"{microseconds(before_us)} µs", f"{microseconds(after_us)} µs")


def _share(rate: float) -> float:
    return 0.0 if math.isnan(rate) else round(100 * rate, 2)


def _rate(rate: float) -> str:
    return "idle" if math.isnan(rate) else percent(rate)
