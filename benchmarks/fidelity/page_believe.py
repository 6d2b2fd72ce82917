"""The first section: what the model is worth beside no model, and beside the hardware measured again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks.fidelity.again import measured_again
from benchmarks.fidelity.markdown import table
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.quantities import QUANTITIES
from benchmarks.fidelity.repeats import OTHER_CODE
from benchmarks.fidelity.split import HALVES, place_of
from benchmarks.fidelity.statistics import from_launched

COMPARED = ("l2_hit_pct", "l2_read_misses", "dram_read_bytes", "time_us")
INTRO = """\
Mean absolute errors, in points for rates and in percent for the rest, over the orders of workloads that were measured
as launched too: of the model; of the model's change, put to what was measured as launched; of no change, to say that no
order matters; and of the hardware measured a second time, where its code was the same. Kernels that constants were set
from are apart from those held out.

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
    return INTRO + table(
        ["GPU", "quantity", "in", "kernels", "rows", "model", "its change", "no change", "again"], lines
    )


def beliefs(model: Sequence[Prediction]) -> list[Belief]:
    """Errors of the model and of no model on the same rows, by GPU, quantity and half.

    Parameters
    ----------
    model : sequence of Prediction
        Of one variant.
    """
    moved, plain = ({one.row.id: one for one in from_launched(model, moved=moved)} for moved in (True, False))
    repeated = measured_again([one.row for one in model])
    again = {one.row.id: one for one in repeated if (one.row.kernel, one.row.quantity) != OTHER_CODE}
    found = []
    for gpu, quantity in dict.fromkeys((one.row.gpu, one.row.quantity) for one in model):
        for half in reversed(HALVES) if quantity in COMPARED else ():
            rows = [
                one
                for one in model
                if (one.row.gpu, one.row.quantity, place_of(gpu, one.row.kernel).half) == (gpu, quantity, half)
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
