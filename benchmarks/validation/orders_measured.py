"""Sentences of ``data/README.md`` on orders that an H100 measured: what choosing by the model loses, size by size."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from .rows import DATA

WITHIN = 1.01  # times the best order's time
REPLAYED = 0.1  # relative error of replayed reads, up to which they are near
Rows = Sequence[Mapping[str, str]]


def table(name: str) -> list[dict[str, str]]:
    """Rows of a table of the folder; none where it was not measured."""
    path = DATA / name
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []


def losses(rows: Rows) -> Iterator[tuple[str, str, float, bool]]:
    """Kernel, sizes, measured time of the chosen order over the best that the policy has, and whether that is near.

    Near is within a percent, or no slower than the slowest quarter of the best order's own samples.
    """
    for (kernel, sizes), each in groupby(rows, key=lambda row: (row["kernel"], row["sizes"])):
        of = [row for row in each if row["in_policy"] == "1"]
        best = min(of, key=lambda row: float(row["measured_us"]))
        (taken,) = (float(row["measured_us"]) for row in of if row["chosen"] == "1")
        near = taken <= max(WITHIN * float(best["measured_us"]), float(best["third_quartile_us"]))
        yield kernel, sizes, taken / float(best["measured_us"]), near


def policy_words(name: str) -> str:
    """What the choices of a table of policies lose."""
    said = []
    for kernel, found in groupby(losses(table(name)), key=lambda one: one[0]):
        each = list(found)
        near, worst = sum(one[3] for one in each), max(each, key=lambda one: one[2])
        behind = f", at worst {100 * worst[2] - 100:.1f} % behind ({worst[1]})" if near < len(each) else ""
        said.append(f"{near} of {len(each)} sizes of {kernel}{behind}")
    return f"`{name}`: the policy's choice is near its best order at {', and '.join(said)}." if said else ""


def gain_words(name: str) -> str:
    """What reordered launches of a recorded model gain, as predicted and as measured."""
    said = []
    for launch, found in groupby(table(name), key=lambda row: row["launch"]):
        launched, ordered = found
        ratios = [float(launched[key]) / float(ordered[key]) for key in ("predicted_us", "measured_us")]
        said.append(f"{ratios[0]:.3f} and {ratios[1]:.3f} ({launch}, `{ordered['order']}`)")
    return f"`{name}`: speedups as predicted and as measured: {'; '.join(said)}." if said else ""


def sequence_words(name: str) -> str:
    """How far replayed reads of consumers behind their producers are from counted ones."""
    rows, others = table(name), []
    for row in rows:
        keys = ("after_predicted_bytes", "after_counted_bytes", "alone_counted_bytes")
        told, counted, alone = (float(row[key]) for key in keys)
        if abs(told / counted - 1) > REPLAYED:
            pair = f"{row['producer']} to {row['consumer']}"
            others.append(f"{pair} is told {100 * (told - counted) / alone:+.1f} % of what it reads alone")
    near = len(rows) - len(others)
    said = f"within {100 * REPLAYED:g} % of the counted ones at {near} of {len(rows)}"
    return f"`{name}`: reads are {'; '.join([said, *others])}."


def words() -> str:
    """The part of the README."""
    policies = map(policy_words, (f"policies_{name}.csv" for name in ("h100", "again_h100", "more_h200", "other_h200")))
    return "\n\n".join(filter(None, [*policies, gain_words("gains_h100.csv"), sequence_words("sequences_h100.csv")]))
