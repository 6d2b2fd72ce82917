"""The targets of the model, each with the figure reached and the distance; and their section of the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..predict import Prediction
from ..rows import Row
from ..statistics import baselines_of, signs, spearman, within_workloads
from ..variants import VARIANTS
from .repeatability import AGAIN, counted_between, measured_again, noisy_launch_orders
from .tables import table

STRIDES = {  # kernel and rows of its matrix: orders whose rates tell how sets and channels are indexed
    ("stencil_2d", 8192): ("baseline", "rm_chunk", "rm_panel8"),
    ("transpose", 32768): ("baseline", "rm_chunk"),
}
OLD = "gemm_gluon_old"
ATTENTION = ("attention_fly", "attention_numa")
LATER = ("gemm_gluon_new", "gemm_hk", "gemm_persistent", "gemm_cut")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One figure and its target; ``over`` is the excess over the target in ``unit``, 0 or less where it is met."""

    data: str
    what: str
    target: str
    reached: str
    over: float
    unit: str = ""

    @property
    def hit(self) -> bool:
        """Whether the target is met."""
        return self.over < 1e-9  # a rank of 0.8 is computed as 0.7999999999999999

    @property
    def missed_by(self) -> str:
        """Excess with its unit; empty where the target is met."""
        return "" if self.hit else f"{self.over:.3g} {self.unit}".rstrip()

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "hit": self.hit, "missed_by": self.missed_by}


def checks(predictions: Sequence[Prediction]) -> list[Check]:
    """All targets for which the predictions of one variant have rows."""
    found: list[Check] = []
    for check in (_permutations, _others, _strides, _tutorial, _published, _attention, _h200_reads, _h200_time):
        found += check([one for one in predictions if one.value is not None])
    return found


def _select(predictions: Sequence[Prediction], rule: Callable[[Prediction], bool]) -> list[Prediction]:
    return [one for one in predictions if rule(one)]


def _errors(predictions: Sequence[Prediction]) -> np.ndarray:
    return np.abs([one.error for one in predictions])


def _permutations(predictions: Sequence[Prediction]) -> list[Check]:
    paper = _select(predictions, lambda one: one.row.table == "paper" and one.row.bijective)
    trusted = _select(paper, lambda one: one.row.trust in "AB")
    if not trusted:
        return []
    data = "MI300X, permutations, trust A and B"
    right, counted = signs(trusted, baselines_of(paper))
    rank = spearman([one.row.measured for one in trusted], [one.value for one in trusted])
    sign = f"{right} of {counted}"
    checked = [
        _mean_error(data, trusted, 3),
        Check(
            data=data, what="sign of changes over 1 point", target="all right", reached=sign, over=counted - right,
            unit="signs",
        ),
    ]  # fmt: skip
    if rank is not None:
        checked.append(_rank(data, "Spearman", rank, 0.95))
    return checked


def _others(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.table == "paper" and not one.row.bijective)
    return [_mean_error("MI300X, no permutations", rows, 4)] if rows else []


def _mean_error(data: str, rows: Sequence[Prediction], most: float) -> Check:
    mean = float(_errors(rows).mean())
    return Check(
        data=data, what="mean absolute error", target=f"at most {most:g} points", reached=f"{mean:.2f}",
        over=mean - most, unit="points",
    )  # fmt: skip


def _rank(data: str, what: str, rank: float, least: float, target: str = "") -> Check:
    return Check(data=data, what=what, target=target or f"at least {least:g}", reached=f"{rank:.3f}", over=least - rank)


def _strides(predictions: Sequence[Prediction]) -> list[Check]:
    found = []
    for one in predictions:
        key = (one.row.kernel, one.row.problem.get("M", 0))
        if one.row.table != "paper" or one.row.order not in STRIDES.get(key, ()):
            continue
        low, high, value = one.row.low, one.row.high, one.value or 0.0
        span = f"{low:g} to {high:g} %" if low < high else f"{high:g} %"
        found.append(
            Check(
                data="MI300X, power-of-two strides",
                what=f"{one.row.kernel} {key[1]}, {one.row.order}",
                target=f"{span}, within 5 points",
                reached=f"{value:.1f}",
                over=max(low - 5 - value, value - high - 5),
                unit="points",
            )
        )
    return found


def _within(data: str, what: str, one: Prediction, most: float, target: str) -> Check:
    """Check that an error, in points or percent, is at most ``most``."""
    unit = "%" if one.row.quantity != "l2_hit_pct" else "points"
    error = one.error or 0.0
    return Check(data=data, what=what, target=target, reached=f"{error:+.1f} {unit}", over=abs(error) - most, unit=unit)


def _tutorial(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.kernel == OLD)
    data = "MI355X, tutorial GEMM, old kernel"
    return [_within(data, one.row.order, one, 2, "misses within 2 %") for one in rows]


def _published(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.kernel in LATER)
    data, found = "MI355X, later kernels", []
    for one in rows:
        name = f"{one.row.kernel} {one.row.problem['M']} {one.row.order}"
        if one.row.quantity == "throughput_tflops":
            continue
        if one.row.kernel == "gemm_cut":
            found.append(_under(data, name, one, 20))
        elif one.row.quantity == "l2_hit_pct":
            found.append(_within(data, name, one, 5, "within 5 points"))
        else:
            found.append(_within(data, name, one, 15, "within 15 %"))
    for workload, rank in within_workloads(rows).items():
        found.append(_rank(data, f"ranks of {workload.split(':', 1)[1]}", rank, 0.99, "kept"))
    return found


def _under(data: str, what: str, one: Prediction, most: float) -> Check:
    value = one.value or 0.0
    return Check(
        data=data, what=what, target=f"under {most:g} %", reached=f"{value:.1f} %", over=value - most, unit="points"
    )


def _attention(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.kernel in ATTENTION)
    found = []
    for one in rows:
        name, value = f"{one.row.gpu} {one.row.order}", one.value or 0.0
        if one.row.order == "head-fast":
            found.append(_under("attention", name, one, 10))
        else:
            reached = f"{value:.1f} %"
            found.append(
                Check(data="attention", what=name, target="over 88 %", reached=reached, over=88 - value, unit="points")
            )
    return found


def _h200_reads(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.table == "h200" and one.row.quantity == "dram_read_bytes")
    if not rows:
        return []
    errors, data = _errors(rows), "H200, DRAM reads"
    median, within = float(np.median(errors)), 100 * float((errors <= 20).mean())
    found = [
        Check(
            data=data, what="median error", target="at most 5 %", reached=f"{median:.2f} %", over=median - 5, unit="%"
        ),
        Check(
            data=data, what="rows within 20 %", target="nine in ten", reached=f"{within:.1f} %", over=90 - within,
            unit="points",
        ),
    ]  # fmt: skip
    return found + _ranks(rows, data, 0.95, spread_pct=1.0)


def _h200_time(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.table == "h200" and one.row.quantity == "time_us")
    return _ranks(rows, "H200, time", 0.8, spread_pct=3.0)


def _ranks(rows: Sequence[Prediction], data: str, least: float, *, spread_pct: float) -> list[Check]:
    target = f"at least {least} in a workload whose values differ by over {spread_pct:g} %"
    ranks = within_workloads(rows, spread_pct=spread_pct)
    return [_rank(data, f"Spearman, {name.split(':', 1)[1]}", rank, least, target) for name, rank in ranks.items()]


def targets_section(predictions: Sequence[Prediction], variants: Sequence[str]) -> str:
    """What the variants are, and a table of all targets, missed ones first."""
    by_variant = {name: checks([one for one in predictions if one.variant == name]) for name in variants}
    rows = [one.row for one in predictions if one.variant == variants[0]]
    again = checks(counted_between(rows)) + checks(measured_again(rows))
    columns_of = by_variant | ({AGAIN: again} if again else {})
    found = {name: {(c.data, c.what): c for c in got} for name, got in columns_of.items()}
    lines = []
    for check in sorted(by_variant[variants[0]], key=lambda check: check.hit):
        others = [each.get((check.data, check.what)) for each in found.values()]
        cells = ["-" if other is None else ("" if other.hit else "**missed** ") + other.reached for other in others]
        lines.append([check.data, check.what, check.target, "met" if check.hit else check.missed_by, *cells])
    columns = ["data", "figure", "target", f"{variants[0]} misses it by", *found]
    words = "".join(f"- **{name}**: {VARIANTS[name]}.\n" for name in variants)
    return f"{words}\nMissed ones first.{_twice(rows)}\n\n" + table(columns, lines)


def _twice(rows: Sequence[Row]) -> str:
    """A line on changes that are between two counts of one order, which no model can have the sign of."""
    found = noisy_launch_orders([row for row in rows if row.bijective and row.trust in "AB"])
    each = ", ".join(f"`{row.kernel} {row.order}` by {row.measured - (row.baseline or 0):+.1f} points" for row in found)
    return (
        f" Excluded, since the order equals the launch order and its measured change is noise: {each}." if found else ""
    )
