"""The section on fit and held-out kernels: errors of each half, its kernels, and the fitted constants each used."""

from __future__ import annotations

from collections.abc import Sequence

from swizzle_sim.pricing.access_patterns import fitted_constants
from xcd_model import gpu, workgroups_per_cu

from ..predict import Prediction
from ..split import HALVES, half_of, place_of
from ..statistics import baselines_of, summarise
from ..workloads.from_row import workload
from .tables import SUMMARY, summary_cells, table

INTRO = """\
Constants were fitted to kernels of the fit half; the held-out half tests them elsewhere. The table is
`benchmarks/validation/data/split.csv`. A kernel that a constant was fitted to, or that a search for one has looked at,
stays in the fit half; a test proves that no row that a fitted constant names is held out. Held out does not mean
unseen: what a decision took or left was judged with all rows in view. The last column counts and names the fitted
constants that the predictions of a kernel used, the GPU's (their rows: [the catalogue](../../../docs/gpus.md)) and its
own.

"""


def split_section(model: Sequence[Prediction]) -> str:
    """Summaries of both halves by GPU and quantity, then the half of every kernel and the fitted constants it used."""
    text = INTRO + table(["GPU", "quantity", "half", *SUMMARY], summaries(model))
    first = {(one.row.gpu, one.row.kernel): one for one in reversed(model)}
    places = []
    for device, kernel in dict.fromkeys((one.row.gpu, one.row.kernel) for one in model):
        place, used = place_of(device, kernel), fitted_by(first[device, kernel])
        names = f"{len(used)}: {', '.join(used)}" if used else "0"
        half = f"{place.half}; `{place.fit_rows}` fit" if place.fit_rows else place.half
        places.append([device, kernel, half, place.reason, names])
    places.sort(key=lambda cells: (cells[0], cells[2]))
    return text + "\n" + table(["GPU", "kernel", "half", "why", "fitted constants"], places)


def fitted_by(one: Prediction) -> list[str]:
    """Names of the fitted constants that a prediction used."""
    device, work = gpu(one.row.gpu), workload(one.row)
    replay = "lockstep" if one.variant == "lockstep" else "timed"
    return list(fitted_constants(device, work, replay, workgroups_per_cu(work.resources, device)))


def summaries(model: Sequence[Prediction]) -> list[list[str]]:
    """GPU, quantity, half and the cells of `SUMMARY`, for each half that has rows."""
    lines = []
    for device, quantity in dict.fromkeys((one.row.gpu, one.row.quantity) for one in model):
        for half in HALVES:
            rows = [
                one for one in model if (one.row.gpu, one.row.quantity, half_of(one.row)) == (device, quantity, half)
            ]
            found = summarise(rows, baselines_of(rows))
            if found:
                lines.append([device, quantity, half, *summary_cells(found)])
    return lines
