"""The targets that the model is held to, each with what it reaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.statistics import baselines_of, signs, spearman, within_workloads

STRIDES = {  # kernel and rows of its matrix: orders whose rates tell how sets and channels are indexed
    ("stencil_2d", 8192): ("baseline", "rm_chunk", "rm_panel8"),
    ("transpose", 32768): ("baseline", "rm_chunk"),
}
OLD = "gemm_gluon_old"
LATER = ("gemm_gluon_new", "gemm_hk", "gemm_persistent", "gemm_cut")


@dataclass(frozen=True)
class Check:
    """One figure beside its target."""

    data: str
    what: str
    target: str
    reached: str
    hit: bool


def checks(predictions: Sequence[Prediction]) -> list[Check]:
    """Every target that the predictions of one variant have rows for."""
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
    data, mean = "MI300X, permutations, trust A and B", float(_errors(trusted).mean())
    right, counted = signs(trusted, baselines_of(paper))
    rank = spearman([one.row.measured for one in trusted], [one.value for one in trusted])
    checked = [
        Check(data, "mean absolute error", "at most 3 points", f"{mean:.2f}", mean <= 3),
        Check(data, "sign of changes over 1 point", "all right", f"{right} of {counted}", right == counted),
    ]
    if rank is not None:
        checked.append(Check(data, "Spearman", "at least 0.95", f"{rank:.3f}", rank >= 0.95))
    return checked


def _others(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.table == "paper" and not one.row.bijective)
    if not rows:
        return []
    mean = float(_errors(rows).mean())
    return [Check("MI300X, no permutations", "mean absolute error", "at most 4 points", f"{mean:.2f}", mean <= 4)]


def _strides(predictions: Sequence[Prediction]) -> list[Check]:
    found = []
    for one in predictions:
        key = (one.row.kernel, one.row.problem.get("M", 0))
        if one.row.table != "paper" or one.row.order not in STRIDES.get(key, ()):
            continue
        low, high = one.row.low, one.row.high
        span = f"{low:g} to {high:g} %" if low < high else f"{high:g} %"
        hit = low - 5 <= (one.value or 0.0) <= high + 5
        name = f"{one.row.kernel} {key[1]}, {one.row.order}"
        found.append(Check("MI300X, power-of-two strides", name, f"{span}, within 5 points", f"{one.value:.1f}", hit))
    return found


def _tutorial(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.kernel == OLD)
    return [
        Check("MI355X, tutorial GEMM, old kernel", one.row.order, "misses within 2 %", f"{one.error:+.1f} %",
              abs(one.error or 0.0) <= 2)
        for one in rows
    ]  # fmt: skip


def _published(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.kernel in LATER)
    found = []
    for one in rows:
        name, error, value = f"{one.row.kernel} {_short(one)}", one.error or 0.0, one.value or 0.0
        data = "MI355X, later kernels"
        if one.row.quantity == "throughput_tflops":
            continue
        if one.row.kernel == "gemm_cut":
            found.append(Check(data, name, "under 20 %", f"{value:.1f} %", value < 20))
        elif one.row.quantity == "l2_hit_pct":
            found.append(Check(data, name, "within 5 points", f"{error:+.1f}", abs(error) <= 5))
        else:
            found.append(Check(data, name, "within 15 %", f"{error:+.1f} %", abs(error) <= 15))
    for workload, rank in within_workloads(rows).items():
        found.append(
            Check("MI355X, later kernels", f"ranks of {workload.split(':', 1)[1]}", "kept", f"{rank:.2f}", rank > 0.99)
        )
    return found


def _short(one: Prediction) -> str:
    return f"{one.row.problem['M']} {one.row.order}"


def _attention(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.kernel.startswith("attention_"))
    found = []
    for one in rows:
        low = one.row.order == "head-fast"
        hit = (one.value or 0.0) < 10 if low else (one.value or 0.0) > 88
        target = "under 10 %" if low else "over 88 %"
        found.append(Check("attention", f"{one.row.gpu} {one.row.order}", target, f"{one.value:.1f} %", hit))
    return found


def _h200_reads(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.gpu == "h200" and one.row.quantity == "dram_read_bytes")
    if not rows:
        return []
    errors, data = _errors(rows), "H200, DRAM reads"
    median, within = float(np.median(errors)), float((errors <= 20).mean())
    found = [
        Check(data, "median error", "at most 5 %", f"{median:.2f} %", median <= 5),
        Check(data, "rows within 20 %", "nine in ten", f"{100 * within:.0f} %", within >= 0.9),
    ]
    return found + _ranks(rows, data, 0.95, spread_pct=1.0)


def _h200_time(predictions: Sequence[Prediction]) -> list[Check]:
    rows = _select(predictions, lambda one: one.row.gpu == "h200" and one.row.quantity == "time_us")
    return _ranks(rows, "H200, time", 0.8, spread_pct=3.0)


def _ranks(rows: Sequence[Prediction], data: str, least: float, *, spread_pct: float) -> list[Check]:
    return [
        Check(
            data,
            f"Spearman, {workload.split(':', 1)[1]}",
            f"at least {least}, values differing by over {spread_pct:g} %",
            f"{rank:.2f}",
            rank >= least,
        )
        for workload, rank in within_workloads(rows, spread_pct=spread_pct).items()
    ]
