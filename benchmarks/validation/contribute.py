"""Take measured rows in, checked: ``python -m swizzle_benchmarks.validation.contribute BUNDLE``.

Each row must name GPU, driver, compiler and command, a kernel that can be replayed here, and an order that is what it
says. All rows of a file are taken, or none. Of a run or a bundle that has results the rows are those that were counted.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from swizzle_sim.hardware.runs import agreements_in
from xcd_model import gpu
from xcd_model.errors import SwizzleSimError

from . import contributed
from .agreed import rows_of
from .contributed import ContributionError
from .rows import DATA, Row, all_rows
from .workloads import formulas
from .workloads.from_row import tiles_of, workload


def main(words: Sequence[str] | None = None) -> None:
    """Check files and append their rows."""
    parser = argparse.ArgumentParser(prog="python -m swizzle_benchmarks.validation.contribute", description=__doc__)
    parser.add_argument(
        "files", nargs="+", type=Path, help="run or bundle with results, or CSV of `swizzle_benchmarks.lab counters`"
    )
    parser.add_argument("--to", type=Path, default=DATA / "contributed.csv", help="table that they are added to")
    parser.add_argument("--check", action="store_true", help="check only")
    asked = parser.parse_args(words)
    try:
        lines = [line for file in asked.files for line in checked(file)]
        taken = _not_there_yet(lines, asked.to)
    except SwizzleSimError as error:
        sys.exit(str(error))
    if not asked.check:
        contributed.write(asked.to, taken)
    print(f"{len(taken)} rows {'are in order' if asked.check else f'added to {asked.to}'}")


def checked(path: Path) -> list[dict[str, str]]:
    """Lines of a file, or of the results in a folder, each of which can be replayed."""
    if not path.exists():
        raise ContributionError(f"{path}: no such file")
    lines = _lines(path)
    rows = {
        (row.workload, row.order, row.mapping, row.bijective): row
        for row in (Row(**contributed.row_of(f"{path.name}, line {n}", one)) for n, one in enumerate(lines, 2))
    }
    for row in rows.values():  # one of each order: rows that differ in quantity alone stand or fall together
        try:
            check(row)
        except SwizzleSimError as error:
            raise ContributionError(f"{path.name}: {row.id}: {error}") from None
    return lines


def _lines(path: Path) -> list[dict[str, str]]:
    if path.is_dir():
        return [row for found in agreements_in(path) for row in rows_of(found)]
    list(contributed.read(path))
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def check(row: Row) -> None:
    """Refuse a row that cannot be replayed, or whose order is not what it says."""
    tiles = tiles_of(row, workload(row), gpu(row.gpu).xcds)
    done = tiles[tiles != formulas.NOTHING]
    if row.bijective != (np.unique(done).size == done.size == tiles.size or tiles.ndim > 1):
        raise ContributionError(
            f"bijective = {row.bijective}: the order computes {np.unique(done).size} tiles with {tiles.size} workgroups"
        )


def _not_there_yet(lines: Sequence[dict[str, str]], where: Path) -> list[dict[str, str]]:
    known = {row.id.removeprefix("contributed/") for row in all_rows() if row.table == "contributed"}
    if where.exists():
        known |= {str(line["id"]).removeprefix("contributed/") for line in contributed.read(where)}
    for line in lines:
        if line["id"] in known:
            raise ContributionError(f"id {line['id']} is there already: another measurement needs another id")
        known.add(line["id"])
    return list(lines)


if __name__ == "__main__":
    main()
