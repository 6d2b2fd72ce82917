"""The section on template and search (arXiv 2601.12698): its printed speedups beside the measured levers here."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

MEASURED = Path(__file__).parents[2] / "validation" / "data" / "levers_h100.csv"
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


def section() -> str:
    """Markdown of the section."""
    kernels: dict[str, dict[str, Mapping[str, str]]] = {}
    with MEASURED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            kernels.setdefault(row["kernel"], {})[row["levers"]] = row
    heads = ("kernel", "as it is [µs]", *(f"{arm} [x]" for arm in ARMS), "largest difference of outputs")
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    wins = 0
    for name, arms in kernels.items():
        base = arms["as it is"]
        times = {arm: float(row["measured_us"]) for arm, row in arms.items()}
        wins += times["both"] < min(times["order"], times["configuration"])
        cells = [name, f"{times['as it is']:.1f} ({float(base['predicted_us']):.1f})"]
        for arm in ARMS:
            predicted = float(base["predicted_us"]) / float(arms[arm]["predicted_us"])
            cells.append(f"{times['as it is'] / times[arm]:.2f} ({predicted:.2f})")
        cells.append(f"{max(float(row['outputs_differ_by']) for row in arms.values()):.0e}")
        lines.append(f"| {' | '.join(cells)} |")
    won = f"Both are measured faster than either lever alone on {wins} of {len(kernels)} kernels."
    return "\n\n".join([f"## {TITLE}", PRINTED, OURS, "\n".join(lines), won])
