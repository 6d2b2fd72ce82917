"""Reader of rocprofv3's ``counter_collection.csv``, old and new headers: columns by name, a row a dispatch and counter.

Source: ROCm 7 writes Accum_VGPR_Count and two timestamps and calls an agent "Agent 2"; ROCm 6 lacks the three columns
and numbers agents. A ``_sum`` counter is already over all channels of all XCDs.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from .dispatches import Dispatch

NEEDED = ("Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value")
_KEPT = (
    *("Agent_Id", "Grid_Size", "Workgroup_Size", "LDS_Block_Size", "Scratch_Size"),
    *("VGPR_Count", "Accum_VGPR_Count", "SGPR_Count"),
)


def read_counters(path: Path) -> tuple[list[Dispatch], list[str]]:
    """Dispatches of one file, and what was wrong with it.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dispatches : list of Dispatch
        Those whose rows are whole; a file cut short loses its last row only.
    notes : list of str
        Missing columns, rows left out, counters that were given twice.
    """
    found: dict[int, Dispatch] = {}
    notes: list[str] = []
    for number, row in enumerate(_rows(path, notes), start=2):
        try:
            key, value = int(row["Dispatch_Id"]), float(row["Counter_Value"])
            begin, end = row.get("Start_Timestamp"), row.get("End_Timestamp")
            duration = float(end) - float(begin) if begin and end else None
        except (TypeError, ValueError):
            notes.append(f"{path.name}:{number}: incomplete row left out")
            continue
        one = found.setdefault(key, Dispatch(key, row["Kernel_Name"], {}, duration, _about(row)))
        name = row["Counter_Name"]
        # without _sum a counter has one row for each channel and XCD
        one.counters[name] = one.counters.get(name, 0.0) + value
    return list(found.values()), notes


def _about(row: dict[str, str]) -> dict[str, str]:
    return {name: row[name] for name in _KEPT if row.get(name)}


def _rows(path: Path, notes: list[str]) -> Iterator[dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        notes.append(f"{path.name}: {error.strerror}")
        return
    lines = text.splitlines()
    if lines and not text.endswith("\n"):
        notes.append(f"{path.name}: ends within a line, which is left out")
        lines.pop()
    reader = csv.DictReader(lines, restval=None)
    missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
    if missing:
        notes.append(f"{path.name}: no column {', '.join(missing)}: no counters of rocprofv3")
        return
    yield from reader
