"""The charts of the page: hit rate over time, hit rate by capacity, and the attempts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from swizzle_sim.history import Attempt
from swizzle_sim.report.chart import Axis, Chart, Drawn, Level, dots, line, stairs
from swizzle_sim.report.colours import family_colours, family_of
from swizzle_sim.report.content import cut
from swizzle_sim.report.figures import LOG_FROM, hit_rate_over_time
from swizzle_sim.report.ranking import SPOKEN, Ranking
from swizzle_sim.scoring import Score
from swizzle_sim.tuning.objectives import Objective
from xcd_model import Traffic
from xcd_model.analysis.stack_distance import CapacityCurve

PERCENT = Axis(0, 100)
_SCALE = {"l2_hit_rate": (100, "%"), "time": (1, "µs"), "hbm_bytes": (1e-9, "GB"), "energy": (1, "J")}


def over_time_chart(before: Traffic, after: Traffic) -> Chart:
    """L2 hit rate over dispatch time, as launched and under the best swizzle."""
    end = max(before.duration, after.duration)
    axis, drawn = Axis(0, end), []
    for traffic, style, label in ((before, "before", "as launched"), (after, "after", "best swizzle")):
        edges, rate, running = hit_rate_over_time(traffic)
        drawn.append(Drawn(stairs(axis.share(edges), rate), f"{style} thin"))
        middle = axis.share((edges[1:] + edges[:-1]) / 2)
        drawn.append(Drawn(line(middle, running), style, f"{label}: {100 * traffic.l2_hit_rate:.1f} % in all"))
    unit = "turn: one tensor instruction of every resident workgroup" if before.turns else "time [µs]"
    return Chart(
        name="over-time-chart",
        alt=f"L2 hit rate over dispatch time: {drawn[1].label}; {drawn[3].label}.",
        x_label=unit,
        y_label="L2 hit rate [%]",
        x_ticks=axis.ticks(),
        y_ticks=PERCENT.ticks(5, from_top=True),
        drawn=tuple(drawn),
    )


def capacity_chart(before: CapacityCurve, after: CapacityCurve, size_bytes: int, ways: int) -> Chart:
    """L2 hit rate by the size of each XCD's L2.

    Parameters
    ----------
    before, after : CapacityCurve
        Of the same sets.
    size_bytes, ways : int
        Of the GPU's L2.
    """
    mib = np.log2(_sizes(before, ways) / 2**20)
    axis = Axis(float(mib[0]), float(mib[-1]))
    drawn = []
    for curve, style, label in ((before, "before", "as launched"), (after, "after", "best swizzle")):
        rate = _rates(curve, ways)
        drawn.append(Drawn(line(axis.share(mib), rate), style, label))
        drawn.append(Drawn(dots(axis.share(mib), rate), f"{style} dot"))
    own = float(axis.share(np.array(math.log2(size_bytes / 2**20)))) * 100
    ticks = [tick for tick in axis.ticks(20) if float(tick.label).is_integer()]
    return Chart(
        name="capacity-chart",
        alt=f"L2 hit rate by L2 size from {_size(mib[0])} to {_size(mib[-1])} an XCD: as launched "
        f"{_span(_rates(before, ways))}, best swizzle {_span(_rates(after, ways))}.",
        x_label="L2 of each XCD, logarithmic",
        y_label="L2 hit rate [%]",
        x_ticks=tuple(type(tick)(tick.at, _size(float(tick.label))) for tick in ticks),
        y_ticks=PERCENT.ticks(5, from_top=True),
        drawn=tuple(drawn),
        levels=(Level(round(own, 2), "own", "this GPU", upright=True),),
    )


def _grown(curve: CapacityCurve, ways: int) -> list[tuple[int, int]]:
    """(row, ways) of each point: ways grow with the GPU's own sets, then the sets do."""
    own = [(0, w) for w in range(1, ways + 1)]
    return own + [(row, w) for row in range(1, len(curve.sets)) for w in range(1, ways + 1)
                  if curve.sets[row] * w > curve.sets[row - 1] * ways]  # fmt: skip


def _sizes(curve: CapacityCurve, ways: int) -> np.ndarray:
    return np.array([curve.size_bytes(curve.sets[row], w) for row, w in _grown(curve, ways)], float)


def _rates(curve: CapacityCurve, ways: int) -> np.ndarray:
    return np.array([curve.l2_hit_rate[row, w - 1] for row, w in _grown(curve, ways)])


def _size(log2_mib: float) -> str:
    mib = 2.0 ** float(log2_mib)
    return f"{mib:g} MiB" if mib >= 1 else f"{1024 * mib:g} KiB"


def _span(rate: np.ndarray) -> str:
    return f"{100 * rate[0]:.1f} to {100 * rate[-1]:.1f} %"


def progress_chart(attempts: Sequence[Attempt], ranking: Ranking, baseline: Score) -> Chart:
    """Objective of every attempt, and of the best up to it.

    Parameters
    ----------
    attempts : sequence of Attempt
        At least one has a score.
    ranking : Ranking
    baseline : Score
    """
    objective = ranking.main
    scale, unit = _SCALE[objective.name]
    scored = [(a, a.score) for a in attempts if a.score is not None]
    number = np.array([a.number for a, _ in scored])
    value = scale * np.array([objective.of(score) for _, score in scored])
    cost = [ranking.cost(a)[0] for a, _ in scored]
    best = value[[int(np.argmin(cost[: i + 1])) for i in range(len(cost))]]
    last = max(1, *(a.number for a in attempts))
    levels = [("baseline", scale * objective.of(baseline), "before"), ("best", float(best[-1]), "after")]
    if objective.name == "l2_hit_rate":
        levels.append(("bound", scale * baseline.bound_l2_hit_rate, "bound"))
    x, y = Axis(0, last, log=last >= LOG_FROM), _room(value, [level for _, level, _ in levels])
    drawn = [Drawn(path, f"dot {style}", label) for path, style, label in _families(scored, x.share(number), y, value)]
    steps = np.append(x.share(number), x.share(np.array(last)))
    drawn.append(Drawn(stairs(steps, y.share(best)), "after", "best so far"))
    unscored = x.share(np.array([a.number for a in attempts if a.score is None]))
    if unscored.size:
        ticks = "".join(f"M{1000 * at:.1f} 1000v-25" for at in unscored)
        drawn.append(Drawn(ticks, "unscored", "no score"))
    said = ", ".join(f"{name} {_said(level, objective, unit)}" for name, level, _ in levels)
    lines = [
        Level(round(100 * (1 - float(y.share(np.array(level)))), 2), style, f"{name} {_said(level, objective, unit)}")
        for name, level, style in levels
    ]
    return Chart(
        name="progress-chart",
        alt=f"{SPOKEN[objective.name]} of {len(scored)} attempts: {said}.",
        x_label="attempt" + (" (logarithmic)" if x.log else ""),
        y_label=f"{SPOKEN[objective.name]} [{unit}]",
        x_ticks=x.ticks(),
        y_ticks=y.ticks(5, from_top=True),
        drawn=tuple(drawn),
        levels=tuple(lines),
    )


def _group_of(attempt: Attempt) -> str:
    return cut(attempt.proposer, 60) if attempt.proposer.startswith("llm:") else family_of(attempt.name)


def _room(value: np.ndarray, levels: list[float]) -> Axis:
    known = [*value[np.isfinite(value)].tolist(), *(level for level in levels if math.isfinite(level))] or [0.0, 1.0]
    low, high = min(known), max(known)
    pad = max(0.07 * (high - low), 0.005 * abs(high), 1e-9)
    return Axis(low - 1.6 * pad, high + pad)


def _said(value: float, objective: Objective, unit: str) -> str:
    return f"{value:.1f} {unit}" if objective.name == "l2_hit_rate" else f"{value:.4g} {unit}"


def _families(scored: Sequence[tuple[Attempt, Score]], x: np.ndarray, y: Axis, value: np.ndarray):
    """Dots by family or model: path, class, label. Those that were tried most have a colour, the others share grey."""
    families = [_group_of(a) for a, _ in scored]
    known = {family: f"family-{i}" for i, family in enumerate(family_colours(families))}
    group = np.array([family if family in known else "other" for family in families])
    for family, style in {**known, "other": "family-other"}.items():
        mine = (group == family) & np.isfinite(value)
        if mine.any():
            yield dots(x[mine], y.share(value[mine])), style, family
