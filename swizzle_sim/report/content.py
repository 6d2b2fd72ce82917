"""Texts of the report page, as plain strings for the template: no number is computed here, only formatted."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from swizzle_sim.base.release import version
from swizzle_sim.base.text import cut, gigabytes, joules, microseconds, percent, points
from swizzle_sim.language.lattice import claim
from swizzle_sim.language.verdict import TESTED
from swizzle_sim.pricing.scores import Score
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking
from swizzle_sim.workload.price import CompiledKernel, RemapPrice
from xcd_model import Gpu, Time

BEST = 5  # rows of the table
_LONGEST_NAME = 120
_LONGEST_MESSAGE = 600


def best_rows(attempts: Sequence[Attempt], baseline: Score | None, ranking: Ranking) -> list[dict[str, str]]:
    """Rows of the table: the launch order, then the best attempts.

    Parameters
    ----------
    attempts : sequence of Attempt
    baseline : Score or None
    ranking : Ranking

    Returns
    -------
    rows : list of dict
        Strings by column.
    """
    launched = attempts[0].verdict if attempts else {}
    rows = [] if baseline is None else [_row("–", "launch order", baseline, launched)]
    places = ranking.places(attempts)
    candidates = [attempt for attempt in ranking.order(attempts) if attempt.number != 0]
    front = {one.number for one in ranking.front(attempts)} if len(ranking.objectives) > 1 else set()
    shown = max(BEST, len(front & {one.number for one in candidates}))
    for attempt in candidates[:shown]:
        if attempt.score is not None:
            place = places[attempt.number]
            label = f"{place}, front" if attempt.number in front else place
            rows.append(_row(label, cut(attempt.name, _LONGEST_NAME), attempt.score, attempt.verdict))
    return rows


def _row(place: str, name: str, score: Score, verdict: Mapping[str, Any]) -> dict[str, str]:
    return {
        "rank": place,
        "name": name,
        "l2": percent(score.l2_hit_rate),
        "mall": percent(score.mall_hit_rate),
        "hbm": gigabytes(score.hbm_bytes),
        "time": microseconds(score.time_us),
        "speedup": f"{score.speedup:.2f}",
        "distance": points(score.distance_to_bound),
        "energy": joules(score.energy_j),
        "domain": str(verdict.get("domain", "not recorded")),
    }


def cards(baseline: Score, best: Score, ranking: Ranking) -> list[dict[str, str]]:
    """Summary cards: label, value, and what to compare it with."""
    shown = _cards(baseline, best)
    if any(one.name == "energy" for one in ranking.objectives):
        was = f"from {joules(baseline.energy_j)} J; assumed rates, so only differences on one GPU mean anything"
        shown.append(_card("Energy", f"{joules(best.energy_j)} J", was))
    return shown


def _cards(baseline: Score, best: Score) -> list[dict[str, str]]:
    gained = f"{points(best.l2_hit_rate - baseline.l2_hit_rate)} points gained"
    below = f"no balanced bijection exceeds it; best is {points(best.distance_to_bound)} points below"
    was = f"from {microseconds(baseline.time_us)} µs; limited mostly by {best.limiter}"
    return [
        _card("L2 hit rate", f"{percent(baseline.l2_hit_rate)} → {percent(best.l2_hit_rate)}", gained),
        _card("Bound", percent(best.bound_l2_hit_rate), below),
        _card(
            "Predicted speedup", f"{best.speedup:.2f}×", "time in launch order over time of the best, both predicted"
        ),
        _card("Predicted time", f"{microseconds(best.time_us)} µs", was),
        _card(
            "HBM traffic", f"{gigabytes(best.hbm_bytes)} GB", f"from {gigabytes(baseline.hbm_bytes)} GB, read + written"
        ),
        _card(
            "Infinity Cache hit rate",
            f"{percent(baseline.mall_hit_rate)} → {percent(best.mall_hit_rate)}",
            "of the L2s' line fills; it may drop where better L2 hit rates leave fewer of them",
        ),
    ]


def _card(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}


def price_rows(price: RemapPrice) -> list[dict[str, Any]]:
    """Rows of the table of what the remapping costs: as launched, as rewritten, and with the options offered."""
    compiled = [price.before, price.after, *([price.offered] if price.offered else [])]
    figures: list[tuple[str, Callable[[CompiledKernel], str]]] = [
        ("registers", lambda one: str(one.registers)),
        ("accumulation registers among them", lambda one: str(one.agprs)),
        ("scalar registers", lambda one: str(one.sgprs)),
        ("spilled", lambda one: str(one.spills)),
        ("LDS or shared memory of a workgroup [B]", lambda one: f"{one.lds_bytes:,}"),
        (f"workgroups that fit one {price.after.place}", lambda one: str(one.workgroups_per_cu)),
        ("global loads: count of bytes a lane", lambda one: ", ".join(f"{n} of {width}" for width, n in one.loads)),
        ("instructions before the loop", lambda one: f"{one.instructions_before_loop:,}"),
        ("code [B]", lambda one: f"{one.code_bytes:,}"),
    ]
    rows = [(name, [text(one) for one in compiled]) for name, text in figures]
    return [{"name": name, "values": values} for name, values in rows if set(values) - {"0", ""}]


def verdict_lines(verdict: Mapping[str, Any], num_xcds: int) -> list[str]:
    """Sentences on where a swizzle is a bijection."""
    here = "a bijection" if verdict.get("bijective") else "no bijection"
    tried = verdict.get("n_workgroups")
    lines = [f"At this grid with {num_xcds} XCDs: {here}" + (f"; all {tried} workgroups were tried." if tried else ".")]
    domain, status = str(verdict.get("domain", "not recorded")), str(verdict.get("status", TESTED))
    lines.append(f"Of all grids: {claim(status, domain, verdict.get('tested', 0), verdict.get('largest', 0))}.")
    if "tested" in verdict:
        lines.append(f"Grids and XCD counts tested: {verdict['tested']}; bijective on {verdict['passed']}.")
    if other := verdict.get("lattice_counterexample"):
        lines.append(f"First that fails: {cut(str(other.get('message', '')), _LONGEST_MESSAGE)}")
    return lines


def gpu_facts(gpu: Gpu) -> list[dict[str, str]]:
    """Rows of the table of GPU facts."""
    return [
        {"key": key, "value": _value(fact.value), "status": fact.status, "source": fact.source}
        for key, fact in gpu.facts.items()
    ]


def versions() -> str:
    """Versions that the report is made with; those of the run itself are in the history."""
    found = [f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "matplotlib")]
    return ", ".join([f"swizzle-sim {version()}", f"Python {platform.python_version()}", *found])


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


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
    """One resource: its time in launch order and under the best swizzle, with bars in percent of the longest."""

    name: str
    before: float
    after: float
    before_text: str
    after_text: str


def time_bars(before: Time, after: Time) -> list[Bars]:
    """Time of each resource; the latency is what no resource accounts for."""
    longest = max(before.total_us, after.total_us) or 1.0
    rows = []
    for name, label in RESOURCES.items():
        if name not in before.by_resource_us and name not in after.by_resource_us:
            continue
        mine, its = before.by_resource_us.get(name, 0.0), after.by_resource_us.get(name, 0.0)
        rows.append(_bars(label, mine, its, longest))
    if before.latency_us or after.latency_us:
        rows.append(_bars("latency of the first load and the last store", before.latency_us, after.latency_us, longest))
    rows.append(_bars("whole kernel", before.total_us, after.total_us, longest))
    return rows


def _bars(name: str, before_us: float, after_us: float, longest_us: float) -> Bars:
    mine, its = (round(100 * us / longest_us, 2) for us in (before_us, after_us))
    return Bars(name, mine, its, f"{microseconds(before_us)} µs", f"{microseconds(after_us)} µs")
