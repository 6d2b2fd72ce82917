"""What the report page says, as plain strings for the template: no figure is worked out here, only written down."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from swizzle_sim.history import Attempt
from swizzle_sim.release import version
from swizzle_sim.report.ranking import Ranking
from swizzle_sim.scoring import Score
from swizzle_sim.swizzle.verdict import EVERYWHERE
from xcd_model import Gpu

BEST = 5  # rows of the table
_LONGEST_NAME = 120
_LONGEST_MESSAGE = 600


def best_rows(attempts: Sequence[Attempt], baseline: Score | None, ranking: Ranking) -> list[dict[str, str]]:
    """Rows of the table: the baseline, then the best attempts.

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
    rows = [] if baseline is None else [_row("baseline", "as launched", baseline, launched)]
    candidates = [attempt for attempt in ranking.order(attempts) if attempt.number != 0]
    front = {one.number for one in ranking.front(attempts)} if len(ranking.objectives) > 1 else set()
    shown = max(BEST, len(front & {one.number for one in candidates}))
    for place, attempt in enumerate(candidates[:shown], start=1):
        if attempt.score is not None:
            label = f"{place}, front" if attempt.number in front else str(place)
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
    """Summary cards: what it is, the figure, and what to compare it with."""
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
        _card("Predicted speedup", f"{best.speedup:.2f}×", "baseline time over best time, both predicted"),
        _card("Predicted time", f"{microseconds(best.time_us)} µs", was),
        _card(
            "HBM traffic", f"{gigabytes(best.hbm_bytes)} GB", f"from {gigabytes(baseline.hbm_bytes)} GB, read + written"
        ),
        _card(
            "Infinity Cache hit rate",
            f"{percent(baseline.mall_hit_rate)} → {percent(best.mall_hit_rate)}",
            "of the line fills that the L2s ask for, so it may fall as they ask less",
        ),
    ]


def _card(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}


def verdict_lines(verdict: Mapping[str, Any], num_xcds: int) -> list[str]:
    """Sentences on where a swizzle is a bijection."""
    here = "a bijection" if verdict.get("bijective") else "no bijection"
    tried = verdict.get("n_workgroups")
    lines = [f"At this grid with {num_xcds} XCDs: {here}" + (f"; all {tried} workgroups were tried." if tried else ".")]
    domain = str(verdict.get("domain", "not recorded"))
    lines.append(f"Domain of validity: {domain}{' that was tested' if domain == EVERYWHERE else ''}.")
    if "tested" in verdict:
        lines.append(f"Grids and XCD counts tested: {verdict['tested']}; held on {verdict['passed']}.")
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


def cut(text: str, longest: int) -> str:
    """Shorten a text that somebody else wrote."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def visible(text: str) -> str:
    """Spell out characters that a browser would hide or obey, such as those that turn the direction of a line."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{{{ord(c):x}}}" for c in str(text))


def percent(rate: float) -> str:
    """Write a rate of 0 to 1 as a percentage; a dash where there is none."""
    return "–" if math.isnan(rate) else f"{100 * rate:.1f} %"


def points(difference: float) -> str:
    """Write a difference of rates in percentage points."""
    return f"{round(100 * difference, 1) + 0.0:.1f}"  # no "-0.0" from rounding


def gigabytes(count_bytes: int) -> str:
    """Write bytes in units of 10**9 bytes."""
    return f"{count_bytes / 1e9:.3g}" if count_bytes < 1e11 else f"{count_bytes / 1e9:,.0f}"


def joules(energy_j: float) -> str:
    """Write an energy; a dash where there is none."""
    return "–" if math.isnan(energy_j) else f"{energy_j:.3g}"


def microseconds(time_us: float) -> str:
    """Write a time, in more digits where it is short."""
    return f"{time_us:,.0f}" if time_us >= 1000 else f"{time_us:.1f}" if time_us >= 10 else f"{time_us:.2f}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
