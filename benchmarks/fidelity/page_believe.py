"""The first section: what the model is worth beside no model, and beside the hardware measured again."""

from __future__ import annotations

from collections.abc import Sequence
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


def believe_section(model: Sequence[Prediction]) -> str:
    """Errors of the model and of no model on the same rows, by GPU, quantity and half.

    Parameters
    ----------
    model : sequence of Prediction
        Of one variant.
    """
    moved, plain = ({one.row.id: one for one in from_launched(model, moved=moved)} for moved in (True, False))
    repeated = measured_again([one.row for one in model])
    again = {one.row.id: one for one in repeated if (one.row.kernel, one.row.quantity) != OTHER_CODE}
    lines = []
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
                unit = "%" if QUANTITIES[quantity].relative else "points"
                found = (rows, *([known[one.row.id] for one in rows] for known in (moved, plain)))
                second = [again[one.row.id] for one in rows if one.row.id in again]
                cells = [f"{_mean(some):.2f}" for some in found] + [f"{_mean(second):.2f}" if second else "-"]
                lines.append([gpu, quantity, unit, half, str(len(rows)), *cells])
    return INTRO + table(
        ["GPU", "quantity", "in", "kernels", "rows", "model", "its change", "no change", "again"], lines
    )


def _mean(rows: Sequence[Prediction]) -> float:
    return mean(abs(one.error or 0.0) for one in rows)
