"""Rows that others measured: one CSV, one line a number, and nothing accepted that could not be run again."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xcd_model.errors import SwizzleSimError

from .quantities import QUANTITIES

NEEDED = ("gpu", "driver", "compiler", "command")
COLUMNS = (
    *("id", "gpu", "driver", "compiler", "command", "kernel", "problem", "order", "mapping", "bijective"),
    *("resources", "quantity", "value", "low", "high", "baseline", "note"),
)


class ContributionError(SwizzleSimError):
    """A contributed row lacks something; names file, line, column and rule."""

    code = "contribution"


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Read contributed rows as keyword arguments of `swizzle_benchmarks.validation.rows.Row`."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = set(COLUMNS) - set(reader.fieldnames or ())
        if missing:
            raise ContributionError(f"{path.name}: no column {', '.join(sorted(missing))}; the columns are {COLUMNS}")
        for number, line in enumerate(reader, 2):
            yield row_of(f"{path.name}, line {number}", line)


def row_of(where: str, line: dict[str, str]) -> dict[str, Any]:
    """Read one row as keyword arguments of `swizzle_benchmarks.validation.rows.Row`."""
    for column in NEEDED:
        if not (line[column] or "").strip():
            raise ContributionError(
                f"{where}: {column} is empty; a row names its {', '.join(NEEDED)}, so that it can be measured again"
            )
    if line["quantity"] not in QUANTITIES:
        raise ContributionError(f"{where}: quantity {line['quantity']!r}; one of {', '.join(QUANTITIES)}")
    try:
        value = float(line["value"])
        numbers = {name: float(line[name]) if line[name] else value for name in ("low", "high")}
        baseline = float(line["baseline"]) if line["baseline"] else None
        problem = json.loads(line["problem"])
        resources = json.loads(line["resources"] or "{}")
    except ValueError as error:
        raise ContributionError(f"{where}: {error}; value, low, high are numbers, problem and resources JSON") from None
    if not isinstance(problem, dict) or not all(type(size) is int for size in problem.values()):
        raise ContributionError(f"{where}: problem = {line['problem']}: a JSON object of integers by size name")
    if line["bijective"] not in ("True", "False"):
        raise ContributionError(f"{where}: bijective = {line['bijective']!r}: True or False")
    return {
        **{name: line[name] for name in ("gpu", "kernel", "order", "mapping", "quantity")},
        "id": f"contributed/{line['id']}",
        "problem": problem,
        "resources": resources,
        "bijective": line["bijective"] == "True",
        "trust": "C" if line["bijective"] == "True" else "X",
        "unit": QUANTITIES[line["quantity"]].unit,
        "measured": value,
        "baseline": baseline,
        **numbers,
        "source": f"{line['gpu']}, driver {line['driver']}, {line['compiler']}: {line['command']}",
        "note": line["note"],
    }


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Append rows to a CSV of contributions, with a header if it is new, and read it back as a check."""
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if new:
            writer.writeheader()
        for row in rows:
            writer.writerow({name: row.get(name, "") for name in COLUMNS})
    list(read(path))
