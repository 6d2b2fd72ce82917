"""Statistics of the errors of many rows: mean, median, rank correlation, signs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .predict import Prediction
from .quantities import QUANTITIES

CHANGE = 1.0  # points, or percent: smaller changes against the launch order have no sign
LAUNCHED = ("baseline", "row", "identity", "launched qb_minor")  # names of the launch order
APART_POINTS = 1.0  # of rates, up to which two are not ranked
TOLD_APART = 1.03  # ratio of measured times up to which they are not ranked


@dataclass(frozen=True)
class Summary:
    """Errors of a set of rows; in points for rates, in percent of the measured value for the rest.

    ``signs`` is (right, counted): changes against the baseline of more than `CHANGE` points or percent.
    """

    rows: int
    mean_abs: float
    median_abs: float
    worst: float
    within_20: float
    spearman: float | None
    signs: tuple[int, int]


def summarise(predictions: Sequence[Prediction], baselines: dict[str, float]) -> Summary | None:
    """Summary of the rows that have a prediction; None where there is none."""
    known = [one for one in predictions if one.error is not None]
    if not known:
        return None
    errors = np.abs([one.error for one in known])
    return Summary(
        rows=len(known),
        mean_abs=float(errors.mean()),
        median_abs=float(np.median(errors)),
        worst=float(errors.max()),
        within_20=float((errors <= 20).mean()),
        spearman=spearman([one.row.measured for one in known], [one.value for one in known]),
        signs=signs(known, baselines),
    )


def group_of(one: Prediction) -> str:
    """Workload, quantity and variant: rows to be ranked against each other."""
    return f"{one.row.workload}|{one.row.quantity}|{one.variant}"


def baselines_of(predictions: Iterable[Prediction]) -> dict[str, float]:
    """Predicted value of the launch order, of each group that has one."""
    return {group_of(one): one.value for one in predictions if one.row.order in LAUNCHED and one.value is not None}


def from_launched(predictions: Iterable[Prediction], *, moved: bool) -> list[Prediction]:
    """Predictions of the other permutations from the measured value of the launch order.

    Rows whose workload was not measured or not predicted in launch order are left out.
    """
    rows = list(predictions)
    measured = {group_of(one): one.row.measured for one in rows if one.row.order in LAUNCHED}
    predicted = baselines_of(rows)
    found = []
    for one in rows:
        base, simulated = one.row.baseline or measured.get(group_of(one)), predicted.get(group_of(one))
        if base and simulated and one.value is not None and one.row.bijective and one.row.order not in LAUNCHED:
            relative = QUANTITIES[one.row.quantity].relative
            there = base * one.value / simulated if relative else base + one.value - simulated
            found.append(replace(one, value=there if moved else base))
    return found


def signs(predictions: Iterable[Prediction], baselines: dict[str, float]) -> tuple[int, int]:
    """(right, counted): measured changes over `CHANGE` that are predicted with their sign, and all of them."""
    right = counted = 0
    for one in predictions:
        base = baselines.get(group_of(one))
        if base is None or one.row.baseline is None or one.value is None:
            continue
        change = one.row.measured - one.row.baseline
        relative = QUANTITIES[one.row.quantity].relative
        if abs(change) > CHANGE * (one.row.baseline / 100 if relative else 1):
            counted += 1
            right += (one.value - base) * change > 0
    return right, counted


def spearman(measured: Sequence[float], predicted: Sequence[float | None]) -> float | None:
    """Rank correlation, ties sharing their mean rank; None for fewer than three rows or no spread."""
    if len(measured) < 3 or len(set(measured)) < 2:
        return None
    if len(set(predicted)) < 2:
        return 0.0
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(measured), rankdata(predicted))[0, 1])


def within_workloads(predictions: Sequence[Prediction], *, spread_pct: float = 0.0) -> dict[str, float]:
    """Rank correlation inside each workload whose largest measured value is over ``spread_pct`` above its smallest."""
    groups: dict[str, list[Prediction]] = {}
    for one in predictions:
        if one.value is not None:
            groups.setdefault(group_of(one), []).append(one)
    found = {}
    for group in groups.values():
        measured = [one.row.measured for one in group]
        if min(measured) <= 0 or 100 * (max(measured) / min(measured) - 1) <= spread_pct:
            continue
        rank = spearman(measured, [one.value for one in group])
        if rank is not None:
            found[group[0].row.workload] = rank
    return found


def right_way_round(
    pairs: Sequence[tuple[float, float]], *, ratio: float = TOLD_APART, gap: float = 0.0
) -> tuple[int, int]:
    """(right, counted): pairs of (measured, predicted) values that are ranked correctly, and all that are ranked.

    Pairs whose measured values differ by at most ``ratio`` or ``gap`` are not ranked.
    """
    right = apart = 0
    for one, other in combinations(sorted(pairs), 2):
        if other[0] > max(ratio * one[0], one[0] + gap):
            apart += 1
            right += other[1] > one[1]
    return right, apart
