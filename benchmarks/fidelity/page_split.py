"""The section on fit and held-out kernels: which is which and why, and what each half comes to."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.fidelity.page.tables import SUMMARY, summary_cells, table
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.split import HALVES, place_of
from benchmarks.fidelity.statistics import baselines_of, summarise

INTRO = """\
Constants were set from the kernels of the fit half; the held-out half says what they are worth elsewhere. The table is
`benchmarks/fidelity/data/split.csv`. A kernel that a constant was set from, or that a search for one has looked at,
stays in the fit half. Held out does not mean unseen: what a decision took or left was judged with all rows in view.

"""


def split_section(model: Sequence[Prediction]) -> str:
    """Summaries of both halves by GPU and quantity, then the half of every kernel.

    Parameters
    ----------
    model : sequence of Prediction
        Of one variant.
    """
    text = INTRO + table(["GPU", "quantity", "half", *SUMMARY], summaries(model))
    places = []
    for gpu, kernel in dict.fromkeys((one.row.gpu, one.row.kernel) for one in model):
        place = place_of(gpu, kernel)
        places.append([gpu, kernel, place.half, place.reason])
    return text + "\n" + table(["GPU", "kernel", "half", "why"], sorted(places, key=lambda cells: (cells[0], cells[2])))


def summaries(model: Sequence[Prediction]) -> list[list[str]]:
    """GPU, quantity, half and the cells of `SUMMARY`, for each half that has rows."""
    lines = []
    for gpu, quantity in dict.fromkeys((one.row.gpu, one.row.quantity) for one in model):
        for half in HALVES:
            rows = [one for one in model if (one.row.gpu, one.row.quantity, half_of(one)) == (gpu, quantity, half)]
            found = summarise(rows, baselines_of(rows))
            if found:
                lines.append([gpu, quantity, half, *summary_cells(found)])
    return lines


def half_of(one: Prediction) -> str:
    """Half that a row belongs to."""
    return place_of(one.row.gpu, one.row.kernel).half
