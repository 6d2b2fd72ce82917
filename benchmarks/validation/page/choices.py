"""The section on choices: what the order that a model picks costs against the best one that was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from ..predict import Prediction
from ..quantities import QUANTITIES
from ..statistics import APART_POINTS, LAUNCHED, TOLD_APART, right_way_round
from .tables import table

MEASURED = (
    ("h200", "time_us"),
    ("h200", "dram_read_bytes"),
    ("mi300x", "l2_hit_pct"),
    ("mi355x", "l2_hit_pct"),
    ("mi355x", "l2_read_misses"),
)
RULES = {"launch order": LAUNCHED, "group_m(size=8)": ("grp8", "contiguous+group8")}
INTRO = """\
Regret: how much worse the picked order was measured than the best measured one, mean over workloads of two or more
orders, permutations only; in percent, of hit rates in points. Pairs: orders of a workload measured over 3 % (rates: a
point) apart that come the right way round. Error: mean absolute, in percent or points. The simple models are the
variants lockstep, lru (one fully associative LRU an XCD) and analytic (distinct lines over lines asked); they have no
time, and the last two rows of a figure are rules that know nothing of the kernel, over the workloads that ran them.

"""

Group = Mapping[str, list[Prediction]]  # orders of each workload


def choices_section(predictions: Sequence[Prediction], variants: Sequence[str]) -> str:
    """Regret, pairs and error of each variant, and of rules that know nothing, by GPU and figure."""
    lines = []
    for gpu, quantity in MEASURED:
        for variant in variants:
            found = _workloads([one for one in predictions if one.variant == variant], gpu, quantity)
            if found:
                lines.append([gpu, quantity, variant, *_of_model(found, quantity)])
        model = _workloads([one for one in predictions if one.variant == variants[0]], gpu, quantity)
        for rule, names in RULES.items():
            picked = {name: [one for one in rows if one.row.order in names] for name, rows in model.items()}
            costs = [_regret(rows, picked[name][0], quantity) for name, rows in model.items() if picked[name]]
            if costs:
                lines.append([gpu, quantity, rule, f"{mean(costs):.2f}", str(len(costs)), "-", "-", "-"])
    columns = ["GPU", "figure", "picked by", "mean regret", "workloads", "pairs right", "mean error", "rows"]
    return INTRO + table(columns, lines)


def _workloads(predictions: Sequence[Prediction], gpu: str, quantity: str) -> dict[str, list[Prediction]]:
    """Workloads of which two or more orders were measured and predicted."""
    found: dict[str, list[Prediction]] = {}
    for one in predictions:
        if (one.row.gpu, one.row.quantity) == (gpu, quantity) and one.row.bijective and one.value is not None:
            found.setdefault(one.row.workload, []).append(one)
    return {name: rows for name, rows in found.items() if len(rows) > 1}


def _of_model(workloads: Group, quantity: str) -> list[str]:
    relative = QUANTITIES[quantity].relative
    costs, pairs, errors = [], [0, 0], []
    for rows in workloads.values():
        best = (min if relative else max)(rows, key=lambda one: one.value or 0.0)
        costs.append(_regret(rows, best, quantity))
        ratio, gap = (TOLD_APART, 0.0) if relative else (1.0, APART_POINTS)
        values = [(one.row.measured, one.value or 0.0) for one in rows]
        pairs = [a + b for a, b in zip(pairs, right_way_round(values, ratio=ratio, gap=gap), strict=True)]
        errors += [abs(one.error) for one in rows if one.error is not None]
    right = f"{pairs[0]} of {pairs[1]}" if pairs[1] else "-"
    return [f"{mean(costs):.2f}", str(len(costs)), right, f"{mean(errors):.2f}", str(len(errors))]


def _regret(rows: Sequence[Prediction], picked: Prediction, quantity: str) -> float:
    """Percent of the best measured order, or points, that the picked one is worse."""
    measured = [one.row.measured for one in rows]
    if QUANTITIES[quantity].relative:
        return 100 * (picked.row.measured / min(measured) - 1)
    return max(measured) - picked.row.measured
