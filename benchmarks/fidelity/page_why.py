"""The section on disagreement: where the model is off, by how much, and the best explanation there is."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache

from benchmarks.fidelity.markdown import table
from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.quantities import QUANTITIES
from benchmarks.fidelity.rows import DATA

STANDINGS = ("shown", "likely", "not known")
FAR_POINTS, FAR_PCT = 5.0, 15.0
INTRO = f"""\
Kernels with rows that are over {FAR_POINTS:g} points or {FAR_PCT:g} % off, and why. *Shown*: a measurement or an
ablation says so, in the decision that is named or in the words. *Likely*: nothing contradicts it, nothing proves it.

"""


@cache
def explanations() -> dict[tuple[str, str], tuple[str, str]]:
    """Standing, one of `STANDINGS`, and words of each (GPU, kernel) of ``data/explanations.csv``."""
    with (DATA / "explanations.csv").open(encoding="utf-8", newline="") as file:
        return {(line["gpu"], line["kernel"]): (line["standing"], line["explanation"]) for line in csv.DictReader(file)}


def is_far(one: Prediction) -> bool:
    """Whether a row is off by more than can be let pass without an explanation."""
    return abs(one.error or 0.0) > (FAR_PCT if QUANTITIES[one.row.quantity].relative else FAR_POINTS)


def why_section(model: Sequence[Prediction]) -> str:
    """One line for each kernel of a GPU with rows that are far off."""
    groups: dict[tuple[str, str], list[Prediction]] = {}
    for one in model:
        groups.setdefault((one.row.gpu, one.row.kernel), []).append(one)
    lines = []
    for (gpu, kernel), rows in groups.items():
        far = [one for one in rows if is_far(one)]
        if far:
            standing, words = explanations().get((gpu, kernel), ("not known", ""))
            lines.append([gpu, kernel, f"{len(far)} of {len(rows)}", _worst(far), standing, words])
    return INTRO + table(["GPU", "kernel", "rows", "worst of each quantity", "standing", "explanation"], lines)


def _worst(far: Sequence[Prediction]) -> str:
    worst: dict[str, float] = {}
    for one in far:
        error = one.error or 0.0
        if abs(error) > abs(worst.get(one.row.quantity, 0.0)):
            worst[one.row.quantity] = error
    units = {name: "%" if QUANTITIES[name].relative else "points" for name in worst}
    return ", ".join(f"{name} {error:+.0f} {units[name]}" for name, error in worst.items())
