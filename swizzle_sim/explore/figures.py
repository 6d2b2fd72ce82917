"""The figures of a result as text: no number is worked out here, only written down, each in a fixed width."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from swizzle_sim.swizzle.verdict import EVERYWHERE, NOWHERE, THIS_GRID_ONLY, UNNAMED
from swizzle_sim.text import gigabytes, visible

if TYPE_CHECKING:
    from swizzle_sim.explore.evaluate import Result
    from swizzle_sim.scoring import Score

COLUMNS = ("L2 hit rate", "Infinity Cache hits", "HBM traffic", "Time, predicted", "Energy, assumed rates")
NONE = "–"
MAX_MESSAGE = 1200


def cells(score: Score | None) -> list[str]:
    """Cells of one score, in the order of `COLUMNS`."""
    if score is None:
        return [NONE] * len(COLUMNS)
    return [
        percent(score.l2_hit_rate),
        percent(score.mall_hit_rate),
        f"{gigabytes(score.hbm_bytes)} GB",
        time_text(score.time_us),
        energy_text(score.energy_j),
    ]


def changes(before: Score | None, after: Score | None) -> list[tuple[str, int]]:
    """What changed from one score to the other: text, and 1 for better, -1 for worse, 0 for neither."""
    if before is None or after is None:
        return [(NONE, 0)] * len(COLUMNS)
    return [
        _points(before.l2_hit_rate, after.l2_hit_rate, judged=True),
        _points(before.mall_hit_rate, after.mall_hit_rate, judged=False),  # may fall because the L2s ask less
        _ratio(before.hbm_bytes, after.hbm_bytes),
        _ratio(before.time_us, after.time_us),
        _ratio(before.energy_j, after.energy_j),
    ]


def percent(rate: float | None) -> str:
    """Write a rate of 0 to 1 in percent."""
    return NONE if rate is None or math.isnan(rate) else f"{100 * rate:.1f} %"


def time_text(time_us: float) -> str:
    """Write a time [us] in a unit with few digits."""
    return f"{time_us / 1000:.2f} ms" if time_us >= 1000 else f"{time_us:.1f} µs"


def energy_text(joules: float) -> str:
    """Write an energy [J] in a unit with few digits."""
    if math.isnan(joules):
        return NONE
    return f"{joules:.2f} J" if joules >= 1 else f"{1000 * joules:.1f} mJ"


def _signed(value: float, unit: str) -> str:
    return f"{value:+.1f} {unit}".replace("-", "−")


def _points(before: float, after: float, *, judged: bool) -> tuple[str, int]:
    if math.isnan(before) or math.isnan(after):
        return NONE, 0
    points = round(100 * (after - before), 1) + 0.0
    return _signed(points, "pt") if points else "no change", judged * ((points > 0) - (points < 0))


def _ratio(before: float, after: float) -> tuple[str, int]:
    if not before or not after or math.isnan(before) or math.isnan(after):
        return NONE, 0
    change = round(100 * (after / before - 1), 1) + 0.0
    return _signed(change, "%") if change else "no change", (change < 0) - (change > 0)


def verdict_words(result: Result) -> tuple[str, str, list[str]]:
    """Tone (``good``, ``bad`` or ``none``), headline and further lines on whether the swizzle is a bijection."""
    if result.problem is not None:
        heads = {"syntax": "Not in the language", "node": "Not in the language", "call": "Not in the language"}
        heads |= {"unassigned": "Not in the language", "result": "Not in the language", "limit": "Too much"}
        heads |= {"name": "A name this kernel does not have", "unknown-name": "No such name", "size": "No such size"}
        heads |= {"gpu-spec": "No such GPU", "replay": "Cannot be replayed", "parameter": "Not a family's parameter"}
        return "none", heads.get(result.problem.code, "Cannot be shown"), [cut(result.problem.message)]
    verdict = result.verdict
    if verdict is None:
        return "none", "Nothing to judge", []
    where = f"at {result.grid}, {result.num_xcds} XCD{'s' * (result.num_xcds != 1)}"
    lines = [f"{_domain(verdict.domain)}: {verdict.passed} of {verdict.tested} grids and XCD counts pass"]
    if not verdict.complete:
        lines.append("other grids took too long and were cut: nothing is said of the rest")
    if not verdict.bijective:
        why = [cut(verdict.counterexample.message)] if verdict.counterexample else []
        return "bad", f"Not a bijection {where}", [*why, *lines]
    if verdict.lattice_counterexample:
        lines.append(f"elsewhere: {cut(verdict.lattice_counterexample.message)}")
    return "good", f"A bijection {where}", lines


def _domain(domain: str) -> str:
    words = {EVERYWHERE: "valid on all that was tried", THIS_GRID_ONLY: "valid on this grid only"}
    words |= {NOWHERE: "valid on nothing that was tried", UNNAMED: "valid under no simple condition"}
    return words.get(domain, f"valid where {domain}")


def cut(text: str) -> str:
    """Text with hidden characters spelt out, and no longer than a panel is."""
    shown = visible(text)
    return shown if len(shown) <= MAX_MESSAGE else shown[:MAX_MESSAGE] + " ..."
