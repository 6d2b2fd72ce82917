"""The sections on belief and ranks: the model against no model and repeated hardware, and orders ranked by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from ..predict import Prediction
from ..quantities import QUANTITIES
from ..repeatability import OTHER_CODE
from ..split import HALVES, half_of
from ..statistics import CHANGE, from_launched, group_of, right_way_round, spearman
from .repeatability import measured_again
from .tables import table

COMPARED = ("l2_hit_pct", "l2_read_misses", "dram_read_bytes", "time_us")
BELIEVE = """\
Mean absolute error, in points for rates and in percent for the rest, over the orders of workloads whose launch order
was measured too: of the model; of the model's change applied to the measured launch order; of no change, as if no order
mattered; and of the hardware in a repeated measurement, where its code was the same. Kernels that constants were set
from and held-out kernels have lines of their own.

"""


@dataclass(frozen=True)
class Belief:
    """Mean absolute errors on the same rows, in points or percent; ``again`` is None where none was counted again."""

    gpu: str
    quantity: str
    half: str
    rows: int
    model: float
    change: float
    no_change: float
    again: float | None


def believe_section(model: Sequence[Prediction]) -> str:
    """Table of `beliefs`."""
    lines = []
    for one in beliefs(model):
        unit = "%" if QUANTITIES[one.quantity].relative else "points"
        errors = (one.model, one.change, one.no_change, one.again)
        cells = ["-" if error is None else f"{error:.2f}" for error in errors]
        lines.append([one.gpu, one.quantity, unit, one.half, str(one.rows), *cells])
    return BELIEVE + table(
        ["GPU", "quantity", "in", "kernels", "rows", "model", "its change", "no change", "again"], lines
    )


def beliefs(model: Sequence[Prediction]) -> list[Belief]:
    """Errors of the model and of no model on the same rows, by GPU, quantity and half."""
    moved, plain = ({one.row.id: one for one in from_launched(model, moved=moved)} for moved in (True, False))
    repeated = measured_again([one.row for one in model])
    again = {one.row.id: one for one in repeated if (one.row.kernel, one.row.quantity) != OTHER_CODE}
    found = []
    for gpu, quantity in dict.fromkeys((one.row.gpu, one.row.quantity) for one in model):
        for half in reversed(HALVES) if quantity in COMPARED else ():
            rows = [
                one
                for one in model
                if (one.row.gpu, one.row.quantity, half_of(one.row)) == (gpu, quantity, half)
                and one.row.id in plain
                and one.error is not None
            ]
            if rows:
                change, no_change = (_mean([known[one.row.id] for one in rows]) for known in (moved, plain))
                second = [again[one.row.id] for one in rows if one.row.id in again]
                counted = _mean(second) if second else None
                found.append(Belief(gpu, quantity, half, len(rows), _mean(rows), change, no_change, counted))
    return found


def _mean(rows: Sequence[Prediction]) -> float:
    return mean(abs(one.error or 0.0) for one in rows)


RANKED = ("l2_hit_pct", "l2_read_misses", "dram_read_bytes", "time_us")
RANKS = """\
What a search needs: rows of one workload, which differ in the order alone. The spread is of the measured values, in
points for rates and in percent of the least for the rest; ranks of values that hardly differ mean little. Lost: how
much worse the order predicted best was measured than the order measured best.

"""
PAIRS = """
Pairs of orders of one workload that were measured more than a point, or a percent, apart, and how many of them each
variant ranks correctly:

"""


def ranks_section(predictions: Sequence[Prediction], variants: Sequence[str]) -> str:
    """One line for each workload and quantity with three orders or more; the worst rank of the model first."""
    groups: dict[str, list[Prediction]] = {}
    for one in predictions:
        if one.row.quantity in RANKED and one.value is not None:
            groups.setdefault(group_of(one), []).append(one)
    lines = {}
    for name, rows in groups.items():
        if len(rows) >= 3 and name.endswith(f"|{variants[0]}"):
            of = [groups.get(f"{name.rpartition('|')[0]}|{variant}", []) for variant in variants]
            lines[name] = [spearman(*_pairs(each)) if each else None for each in of]
    ordered = sorted(lines, key=lambda name: 2.0 if lines[name][0] is None else lines[name][0] or 0.0)
    cells = [
        [*_about(groups[name]), *("-" if rank is None else f"{rank:+.2f}" for rank in lines[name])] for name in ordered
    ]
    columns = ["workload", "half", "quantity", "orders", "spread", "lost", *variants]
    return RANKS + table(columns, cells) + PAIRS + _pairs_table(groups, variants)


def _pairs_table(groups: Mapping[str, Sequence[Prediction]], variants: Sequence[str]) -> str:
    right, counted = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for rows in groups.values():
        first = rows[0].row
        about = (first.gpu, first.kernel, first.quantity, rows[0].variant)
        apart = {"ratio": 1 + CHANGE / 100} if QUANTITIES[first.quantity].relative else {"ratio": 1.0, "gap": CHANGE}
        some = right_way_round([(one.row.measured, one.value or 0.0) for one in rows], **apart)
        right[about] += some[0]
        counted[about] += some[1]
    found = dict.fromkeys(about[:3] for about in counted if counted[(*about[:3], variants[0])])
    cells = []
    for about in sorted(found):
        of = [(right[(*about, variant)], counted[(*about, variant)]) for variant in variants]
        cells.append([*about, *(f"{a} of {b}" if b else "-" for a, b in of)])
    return table(["GPU", "kernel", "quantity", *variants], cells)


def _pairs(rows: Sequence[Prediction]) -> tuple[list[float], list[float | None]]:
    return [one.row.measured for one in rows], [one.value for one in rows]


def _about(rows: Sequence[Prediction]) -> list[str]:
    first, measured = rows[0].row, [one.row.measured for one in rows]
    relative = QUANTITIES[first.quantity].relative
    better = min if relative else max
    best = better(measured)
    chosen = better(rows, key=lambda one: one.value or 0.0).row.measured
    lost, spread = abs(chosen - best), max(measured) - min(measured)
    if relative:
        lost, spread = (100 * gap / min(measured) if min(measured) else 0.0 for gap in (lost, spread))
    unit = "%" if relative else "points"
    half = half_of(first)
    return [f"`{first.workload}`", half, first.quantity, str(len(rows)), f"{spread:.1f} {unit}", f"{lost:.1f} {unit}"]
