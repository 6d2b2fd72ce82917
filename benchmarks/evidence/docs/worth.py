"""What each figure is worth, by GPU and class of kernels: the table of `docs/believe.md`."""

from __future__ import annotations

import csv
from statistics import median

from swizzle_benchmarks.validation.amd import scores
from swizzle_benchmarks.validation.gains import OF_PAGE
from swizzle_benchmarks.validation.ranked_pairs import COIN
from swizzle_sim.search.ranking import WORK_CLASSES, Evidence, default_objectives, evidence_of

from .. import PAGES

NAMED = {"mi300x": tuple(WORK_CLASSES), "mi355x": ("compute",), "h200": ("",), "h100": ("",)}
COUNTED = {"mi300x": "l2_hit_pct", "mi355x": "l2_hit_pct", "h200": "dram_read_bytes"}
CAUSAL = 5  # of the sizes of dense attention
NAMES = (
    *("GPU", "kernels", "hits [points] or reads [%] off by", "pairs by hits", "pairs by time", "decides"),
    "predicted over measured time",
)


def table() -> str:
    """Markdown table: a line for each class of kernels whose orders were measured on a GPU."""
    lines = [_line(device, one) for device, classes in NAMED.items() for one in classes]
    head = [f"| {' | '.join(NAMES)} |", "| --- " * len(NAMES) + "|"]
    return "\n".join((*head, *lines[:2], _tuned(), *lines[2:]))


def _line(device: str, work_class: str) -> str:
    words = WORK_CLASSES.get(work_class, "all")
    hits, time = (_pairs(evidence_of(device, name, work_class)) for name in ("l2_hit_rate", "time"))
    decides = default_objectives(device, "timed", work_class)[0].spoken
    return f"| {device} | {words} | {_off(device, work_class)} | {hits} | {time} | {decides} | {_times(device)} |"


def _pairs(known: Evidence) -> str:
    """Pairs of measured times that come the right way round."""
    if not known.pairs or (known.objective != "time" and not known.work_class):  # not pairs of times
        return "-"
    coin = "; a coin" * (known.right <= COIN * known.pairs)
    return f"{known.right:g} of {known.pairs}{coin}"


def _rows(device: str, quantity: str) -> list[dict[str, str]]:
    """Permutations of a GPU whose quantity was predicted and measured, of ``fidelity.csv``."""
    with (PAGES / "fidelity.csv").open(encoding="utf-8", newline="") as file:
        return [
            line
            for line in csv.DictReader(file)
            if (line["gpu"], line["quantity"], line["variant"], line["bijective"])
            == (device, quantity, "timed", "True")
            and line["error"]
        ]


def _off(device: str, work_class: str) -> str:
    """Median error of a class of kernels, regardless of sign, and of how many rows."""
    errors = [
        abs(float(line["error"]))
        for line in _rows(device, COUNTED.get(device, ""))
        if work_class in ("", _class(line["workload"]))
    ]
    return f"{median(errors):.1f} of {len(errors)}" if errors else "-"


def _class(workload: str) -> str:
    """Class of a workload of ``fidelity.csv``: causal attention is uneven."""
    if "attention_dense" in workload and workload.rpartition(":")[2].split("x")[CAUSAL] == "1":
        return "uneven"
    return next((of for name, of in OF_PAGE.items() if name in workload), "memory")


def _times(device: str) -> str:
    """Median of predicted over measured time, where launches were timed."""
    ratios = [float(line["predicted"]) / float(line["measured"]) for line in _rows(device, "time_us")]
    return f"{median(ratios):.2f} of {len(ratios)}" if ratios else "-"


def _tuned() -> str:
    """GEMMs that a tuner ordered on the MI300X: chance that the larger gain is of the row whose order won."""
    lines = scores.replayed()
    rows = scores.tuned_rows(lines)
    hits, time = (str(scores.within(rows, scores.COSTS[name])) for name in ("hits", "time"))
    ratios = [one for each in scores.absolute(lines).values() for one in each]
    measured = f"{median(ratios):.2f} of {len(ratios)}"
    return f"| mi300x | tuned GEMMs, chance (a coin: 0.5) | - | {hits} | {time} | | {measured} |"
