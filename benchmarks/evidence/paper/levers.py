"""The section on template and search (arXiv 2601.12698): its printed speedups beside the measured levers here."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[2] / "validation" / "data"
TERMS = DATA / "levers_terms_h100.csv"
ARMS = ("order", "configuration", "both")  # after the kernel as it is
TITLE = "Template and search: order, configuration, both"
PRINTED = """\
**Published** (arXiv 2601.12698, a two-stage tuner: an agent refactors CUDA kernels of SGLang into templates, a search
chooses their parameters on the GPU): over 3x the kernels as they are, at best. The agent that rewrites without a
template (Astra, arXiv 2509.07506) prints 1.32x on average over three kernels of SGLang: merge of attention states,
fused RMS norm, SiLU and mul."""
OURS = """\
**Measured** on an H100, or on an H200 where the row says so, chosen by prediction alone, with as many evaluations of
each lever, each without the GPU. In brackets what was predicted. The kernels are others than the paper's: the columns
stand beside its printed speedups, they do not repeat them."""

WRONG = """\
**Where the model is wrong**, by a GEMM of 2048 x 2048 with loops of four lengths: the time of a step over K, predicted
over measured, and the time outside the loop, predicted less measured. The time outside is short by about as much for
all, and ranks nothing; the time of a step does. No constant was fitted to these rows."""


CHOSEN = """\
**More kernels, priced before any of them was timed**, ordered by how far the predicted time under both is below that of
the better lever alone: of eight that were to be priced those that were in the time given."""
LIKES = """\
**The paper's kernels, or their likes**, as SGLang and Liger launch them: "configuration" is what the paper calls a
template with a search, "order" the order alone; its agent that rewrites alone has no column, as no model was asked. Its
printed speedups are those above. Of none of these kernels does the model price an order below the launch order."""
EARLIER = """\
The earlier search spent a third of its evaluations on orders even where none can gain."""
Kernels = Mapping[str, Mapping[str, Mapping[str, str]]]  # rows by kernel and lever


def section() -> str:
    """Markdown of the section."""
    sets: dict[str, dict[str, dict[str, Mapping[str, str]]]] = {}
    for card, words in (("h100", ""), ("h200", ", H200")):
        with (DATA / f"levers_{card}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                name = row["kernel"] + words + (", earlier search" if row["search"] == "earlier" else "")
                of = row["search"] if row["search"] in ("chosen", "likes") else "first"
                sets.setdefault(of, {}).setdefault(name, {})[row["levers"]] = row
    parts = [f"## {TITLE}", PRINTED, OURS, table(sets["first"]), f"{won(sets['first'])} {EARLIER}"]
    for name, words in (("chosen", CHOSEN), ("likes", LIKES)):
        parts += [words, table(sets[name]), won(sets[name])] if name in sets else []
    return "\n\n".join([*parts, terms()])


def table(kernels: Kernels) -> str:
    """Measured ratios of each lever, predicted ones in brackets; a lever that the kernel does not have is left out."""
    heads = ("kernel", "as it is [µs]", *(f"{arm} [x]" for arm in ARMS), "largest difference of outputs")
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for name, arms in kernels.items():
        times, prices = times_of(arms, "measured_us"), times_of(arms, "predicted_us")
        cells = [name, f"{times['as it is']:.1f} ({prices['as it is']:.1f})"]
        for arm in ARMS:
            has = arm in times
            ratios = (f"{one['as it is'] / one[arm]:.2f}" for one in (times, prices) if has)
            cells.append("{} ({})".format(*ratios) if has else "none")
        cells.append(f"{max(float(row['outputs_differ_by']) for row in arms.values()):.0e}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def times_of(arms: Mapping[str, Mapping[str, str]], column: str) -> dict[str, float]:
    """One figure of each lever."""
    return {arm: float(row[column]) for arm, row in arms.items()}


def won(kernels: Kernels) -> str:
    """In how many rows both are measured faster than a lever alone, and in how many they are the same instance."""
    wins = same = 0
    for arms in (one for one in kernels.values() if "both" in one):
        times, prices = times_of(arms, "measured_us"), times_of(arms, "predicted_us")
        alone = [arm for arm in ("order", "configuration") if arm in arms]
        differ = prices["both"] not in [prices[arm] for arm in alone]
        same += not differ
        wins += differ and times["both"] < min(times[arm] for arm in alone)
    said = f"Both are measured faster than either lever alone in {wins} of {len(kernels)} rows, and are the same "
    return said + f"instance as one of them in {same}."


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
