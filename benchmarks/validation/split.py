"""The split of measured kernels: those that constants were fitted to, and those held out, with the reason of each."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from .rows import DATA, Row

HALVES = ("fit", "held out")
LATER = "added later: no constant was set from it"


@dataclass(frozen=True)
class Place:
    """Half that a kernel of a GPU belongs to, one of `HALVES`, which rows are fit all the same, and why."""

    half: str
    fit_rows: str  # pattern of ids
    reason: str


@cache
def split() -> dict[tuple[str, str], Place]:
    """Place of each (GPU, kernel) that ``data/split.csv`` names.

    Notes
    -----
    A kernel that a constant was set from, or that a search for one has looked at, is in the fit half and stays there.
    "By lot" is a generator seeded with 6, over the kernels of a GPU in the order of their names.
    """
    with (DATA / "split.csv").open(encoding="utf-8", newline="") as file:
        return {
            (line["gpu"], line["kernel"]): Place(line["half"], line["fit_rows"], line["reason"])
            for line in csv.DictReader(file)
        }


def place_of(gpu: str, kernel: str) -> Place:
    """Place of a kernel; held out where the table does not name it."""
    return split().get((gpu, kernel), Place("held out", "", LATER))


def half_of(row: Row) -> str:
    """Half that a row belongs to."""
    place = place_of(row.gpu, row.kernel)
    return "fit" if fnmatchcase(row.id, place.fit_rows) else place.half


def named_rows(pattern: str, rows: Iterable[Row]) -> list[Row]:
    """Rows whose id a ``fitted_to`` of a constant matches; ``data/...`` is a table of calibration data and has none."""
    return [row for row in rows if fnmatchcase(row.id, pattern)]
