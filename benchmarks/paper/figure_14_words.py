"""What the page says of figure 14."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.paper.drawing import NO_RUN, one_line
from benchmarks.paper.figure_14 import best_so_far, needed
from benchmarks.paper.wording import pct, points, table


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    rows = []
    for row in data["kernels"]:
        arms = [("families", row["families"]), ("two-stage search", row["search"])]
        arms += [(f"{run['label']}, recorded", run["rates"]) for run in row["models"]]
        for arm, rates in arms:
            best = best_so_far(row["launched"], rates)[-1]
            first = needed(row["launched"], rates)
            rows.append(
                [
                    one_line(row["kernel"]),
                    arm,
                    str(len(rates)),
                    pct(row["launched"]),
                    pct(best),
                    points(100 * (best - row["launched"])),
                    "-" if first is None else str(first),
                ]
            )
    heads = ("kernel", "arm", "evaluations", "as launched [%]", "best [%]", "gain [points]", "best found after")
    models = [run for row in data["kernels"] for run in row["models"]]
    said = (
        f"Lines of models: {len(models)} recorded runs, hit rates as recorded."
        if models
        else f"Models: {NO_RUN} on these kernels."
    )
    return "\n\n".join(
        [
            f"Simulated, {data['kernels'][0]['replay']} replay. An evaluation is a replay of a permutation not seen "
            "before; the paper's iteration is a run on the GPU. *Families* are tried in the order of the suite's "
            "shortlist, *search* is the two-stage search over their templates, which screens in lockstep and prunes "
            f"by the bound at no evaluation's cost. {said} The paper prints no values here; its stencil, softmax and "
            "layer norm come near 100 % with formulas that are no bijections (see the audit), so those lines have no "
            "counterpart.",
            table(heads, rows, left=2),
        ]
    )
