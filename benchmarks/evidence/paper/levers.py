"""The section on template and search (arXiv 2601.12698): its printed speedups beside the measured levers here."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

MEASURED = Path(__file__).parents[2] / "validation" / "data" / "levers_h100.csv"
TERMS = MEASURED.with_name("levers_terms_h100.csv")
ARMS = ("order", "configuration", "both")  # after the kernel as it is
TITLE = "Template and search: order, configuration, both"
PRINTED = """\
**Published** (arXiv 2601.12698, a two-stage tuner: an agent refactors CUDA kernels of SGLang into templates, a search
chooses their parameters on the GPU): over 3x the kernels as they are, at best. The agent that rewrites without a
template (Astra, arXiv 2509.07506) prints 1.32x on average over three kernels of SGLang: merge of attention states,
fused RMS norm, SiLU and mul."""
OURS = """\
**Measured** on an H100, chosen by prediction alone, with as many evaluations of each lever, each without the GPU. In
brackets what was predicted. The kernels are others than the paper's: the columns stand beside its printed speedups,
they do not repeat them."""

WRONG = """\
**Where the model is wrong**, by a GEMM of 2048 x 2048 with loops of four lengths: the time of a step over K, predicted
over measured, and the time outside the loop, predicted less measured. The time outside is short by about as much for
all, and ranks nothing; the time of a step does. No constant was fitted to these rows."""


def section() -> str:
    """Markdown of the section."""
    kernels: dict[str, dict[str, Mapping[str, str]]] = {}
    with MEASURED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = row["kernel"] + (", earlier search" if row["search"] == "earlier" else "")
            kernels.setdefault(name, {})[row["levers"]] = row
    heads = ("kernel", "as it is [µs]", *(f"{arm} [x]" for arm in ARMS), "largest difference of outputs")
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    wins = same = 0
    for name, arms in kernels.items():
        times = {arm: float(row["measured_us"]) for arm, row in arms.items()}
        prices = {arm: float(row["predicted_us"]) for arm, row in arms.items()}
        differ = prices["both"] not in (prices["order"], prices["configuration"])
        same += not differ
        wins += differ and times["both"] < min(times["order"], times["configuration"])
        cells = [name, f"{times['as it is']:.1f} ({prices['as it is']:.1f})"]
        for arm in ARMS:
            cells.append(f"{times['as it is'] / times[arm]:.2f} ({prices['as it is'] / prices[arm]:.2f})")
        cells.append(f"{max(float(row['outputs_differ_by']) for row in arms.values()):.0e}")
        lines.append(f"| {' | '.join(cells)} |")
    won = f"Both are measured faster than either lever alone in {wins} of {len(kernels)} rows, and are the same "
    won += (
        f"instance as one of them in {same}. The earlier search spent a third of its evaluations on orders even where "
    )
    won += "none can gain."
    return "\n\n".join([f"## {TITLE}", PRINTED, OURS, "\n".join(lines), won, terms()])


def terms() -> str:
    """Which term of the model ranks configurations wrongly, by loops of several lengths over K."""
    with TERMS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kernel"].startswith("gemm ")]
    said = []
    for name in dict.fromkeys(row["configuration"] for row in rows):
        mine = [row for row in rows if row["configuration"] == name]
        steps = [float(row["kernel"].rpartition("K=")[2]) for row in mine]
        (step, start), (took, began) = (
            np.polyfit(steps, [float(row[column]) for row in mine], 1) for column in ("predicted_us", "measured_us")
        )
        said.append(f"- {name}: {100 * (step / took - 1):+.0f} % and {start - began:+.1f} µs")
    return "\n\n".join([WRONG, "\n".join(said)])
