"""Repeated measurements: the same launches on the H200, the same orders by other kernels on the MI355X."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import numpy as np

from xcd_model import gpu

from ..predict import Prediction
from ..quantities import QUANTITIES
from ..repeatability import OTHER_CODE, Key, key, runs, software
from ..rows import Row
from ..statistics import CHANGE, right_way_round
from ..workloads.from_row import tiles_of, workload
from .tables import figure, table

AGAIN = "repeated measurement"
BETWEEN, COUNTED_TWICE = "gemm_gluon_between", ("gemm_gluon_old", "gemm_gluon_new")


def measured_again(rows: Sequence[Row], run: int = 0) -> list[Prediction]:
    """What one of the `runs` counted for the rows of the H200 table, as if it were a prediction of them."""
    values = runs()[run]
    launches = [(row, key(row.kernel, row.problem, row.order, row.quantity)) for row in rows if row.table == "h200"]
    return [
        Prediction(row=row, variant=AGAIN, value=values[launch], counts={})
        for row, launch in launches
        if launch in values
    ]


def counted_between(rows: Sequence[Row]) -> list[Prediction]:
    """What ROCm's tutorial counted of its GEMM's orders between its two tables, as if it predicted those.

    By other kernels of the tutorial, of the same tile and loads, one of them as fast as the newer.
    """
    values = {_between(row): row.measured for row in rows if row.kernel == BETWEEN}
    return [
        Prediction(row=row, variant=AGAIN, value=values[_between(row)], counts={})
        for row in rows
        if row.kernel in COUNTED_TWICE and _between(row) in values
    ]


def _between(row: Row) -> Key:
    return key(BETWEEN, row.problem, row.order, row.quantity)


def noisy_launch_orders(rows: Sequence[Row]) -> list[Row]:
    """Rows whose order equals the launch order, and whose counter differs from it by over a point."""
    return [
        row
        for row in rows
        if row.table == "paper" and row.baseline is not None and abs(row.measured - row.baseline) > CHANGE
        if _is_launch_order(row)
    ]


def _is_launch_order(row: Row) -> bool:
    work = workload(row)
    tiles = tiles_of(row, work, gpu(row.gpu).xcds)
    return bool(np.array_equal(tiles, np.arange(tiles.size)))


FAR = 20.0  # percent, or points
REPEATED = """\
All launches of the H200 table were counted in two more runs, minutes apart on one H200 ({software};
`benchmarks/validation/data/h200_again.csv`): they separate the model's error from the spread of the hardware. The two
runs agree with each other; they differ most from the table in GEMM 8192^3, whose workgroup skew gives it no single
number. The kernels issue the same loads and stores as the table's and read the order from a table in memory. The
stencil compiles to other code for that and takes longer: its times have a line of their own and say nothing of
repeatability.

"""


def again_section(model: Sequence[Prediction]) -> str:
    """Distances by quantity, pairs of times in the right order, and the launches that did not come out as before."""
    rows = [one for one in model if one.row.table == "h200"]
    again = [measured_again([one.row for one in rows], run) for run in range(len(runs()))]
    if not again[0]:
        return ""
    return "\n".join(
        [REPEATED.format(software=software()) + _distances(rows, again), _pairs(rows, again), _far(rows, again)]
    )


def _distances(rows: Sequence[Prediction], again: Sequence[Sequence[Prediction]]) -> str:
    lines = []
    for what in dict.fromkeys(_what(one) for one in rows):
        first, second = ([one for one in run if _what(one) == what] for run in (again[0], again[-1]))
        quantity = first[0].row.quantity
        between = [_gap(b.value, a.value, quantity) for a, b in zip(first, second, strict=True)]
        of_model = _errors(one for one in rows if _what(one) == what)
        unit = "%" if QUANTITIES[quantity].relative else "points"
        cells = [f"{middle:.2f} ({worst:.1f})" for middle, worst in map(_middle, (_errors(first), between, of_model))]
        lines.append([what, unit, *cells, _share(_errors(first)), _share(of_model)])
    return table(
        [
            *("quantity", "in", "repeat vs table: median (worst)", "repeat vs repeat", "model vs table"),
            *("repeat within 20", "model within 20"),
        ],
        lines,
    )


def _what(one: Prediction) -> str:
    """Quantity; of the kernel whose code was another, apart."""
    quantity = one.row.quantity
    if quantity != OTHER_CODE[1]:
        return quantity
    return f"{quantity}, stencils (other code)" if one.row.kernel == OTHER_CODE[0] else f"{quantity}, the others"


def _errors(predictions: Iterable[Prediction]) -> list[float]:
    return [abs(one.error) for one in predictions if one.error is not None]


def _gap(value: float | None, other: float | None, quantity: str) -> float:
    if value is None or not other:
        return 0.0
    return abs(value - other) * (100 / other if QUANTITIES[quantity].relative else 1)


def _middle(gaps: Sequence[float]) -> tuple[float, float]:
    return (median(gaps), max(gaps)) if gaps else (0.0, 0.0)


def _share(gaps: Sequence[float]) -> str:
    return f"{100 * sum(gap <= FAR for gap in gaps) / len(gaps):.1f} %" if gaps else "-"


def _pairs(rows: Sequence[Prediction], again: Sequence[Sequence[Prediction]]) -> str:
    """Of the pairs of orders whose times differ by over 3 %, how many are ranked correctly."""
    counts = [right_pairs(one) for one in (rows, *again)]
    lines = []
    for name in counts[0]:
        told = counts[0][name][1]
        if told:
            lines.append([f"`{name}`", str(told), *(f"{count[name][0]}" for count in counts)])
    total = [sum(count[w][0] for w in count) for count in counts]
    lines.append(["all", str(sum(pairs for _, pairs in counts[0].values())), *(str(n) for n in total)])
    words = "Pairs of orders of a workload whose times in the table differ by over 3 %, and how many are ranked "
    words += "correctly:\n\n"
    return words + table(["workload", "pairs", "model", *(f"repeat run {i + 1}" for i in range(len(again)))], lines)


def right_pairs(predictions: Sequence[Prediction]) -> dict[str, tuple[int, int]]:
    """Of each workload, the pairs that predicted times rank correctly, and the pairs whose measured times differ."""
    groups: dict[str, list[Prediction]] = {}
    for one in predictions:
        if one.row.quantity == "time_us" and one.value is not None:
            groups.setdefault(one.row.workload, []).append(one)
    found = {}
    for name, group in groups.items():
        found[name] = right_way_round([(one.row.measured, one.value or 0.0) for one in group])
    return found


def _far(rows: Sequence[Prediction], again: Sequence[Sequence[Prediction]]) -> str:
    by_run = [{one.row.id: one for one in run} for run in again]
    lines = []
    for one in rows:
        seen = [run[one.row.id] for run in by_run if one.row.id in run]
        far = any(abs(each.error or 0.0) > FAR for each in seen)
        if one.row.quantity == "dram_read_bytes" and far:
            values = [figure(each.value) for each in seen]
            lines.append([f"`{one.row.id}`", figure(one.row.measured), *values, figure(one.value)])
    words = "DRAM reads [B] that did not come out within 20 % of the table:\n\n"
    return words + table(["row", "table", *(f"repeat run {i + 1}" for i in range(len(again))), "model"], lines)
