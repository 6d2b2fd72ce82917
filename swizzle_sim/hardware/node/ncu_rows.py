"""Reader of Nsight Compute's ``--csv --page raw``: a row of names, a row of units, a row for each launch."""

from __future__ import annotations

import csv
from pathlib import Path

from .dispatches import Dispatch

FIRST = '"ID"'
SCALE = {  # to counts, bytes and nanoseconds
    "": 1.0,
    "byte": 1.0,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
    "sector": 1.0,
    "request": 1.0,
    "inst": 1.0,
    "cycle": 1.0,
    "block": 1.0,
    "cluster": 1.0,
    "thread": 1.0,
    "warp": 1.0,
    "pass": 1.0,
    "SM": 1.0,
    "register/thread": 1.0,
    "byte/block": 1.0,
    "Kbyte/block": 1e3,
    "%": 1.0,
    "ns": 1.0,
    "us": 1e3,
    "usecond": 1e3,
    "ms": 1e6,
    "msecond": 1e6,
    "nsecond": 1.0,
    "s": 1e9,
    "second": 1e9,
}
OWN_WISH = "unmodified GPU clocks"  # ncu's remark on --clock-control none
SKIPPED = ("device__", "nvlink__", "numa__", "c2clink__", "profiler__")  # facts of the machine, not of a launch
DURATION = "gpu__time_duration.sum"
_KEPT = ("Grid Size", "Block Size", "Device", "CC", "launch__registers_per_thread")


def read_ncu(path: Path) -> tuple[list[Dispatch], list[str]]:
    """Launches of one file, and what was wrong with it; see `rocprof_rows.read_counters`."""
    notes: list[str] = []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        return [], [f"{path.name}: {error.strerror}"]
    start = next((i for i, line in enumerate(lines) if line.startswith(FIRST)), None)
    if start is None:
        said = [line for line in lines if line.startswith(("==ERROR==", "==WARNING=="))]
        return [], [f"{path.name}: no table of Nsight Compute", *said[:5]]
    warned = (line for line in lines[:start] if line.startswith(("==ERROR==", "==WARNING==")))
    notes += [line for line in warned if OWN_WISH not in line][:5]
    rows = list(csv.reader(line for line in lines[start:] if line.startswith('"')))
    if len(rows) < 2:
        return [], [*notes, f"{path.name}: no units and no launches"]
    names, units = rows[0], dict(zip(rows[0], rows[1], strict=False))
    found = []
    for number, cells in enumerate(rows[2:], start=1):
        if len(cells) != len(names):
            notes.append(f"{path.name}: launch {number} is incomplete and left out")
            continue
        found.append(_dispatch(dict(zip(names, cells, strict=True)), units, notes))
    return found, notes


def _dispatch(row: dict[str, str], units: dict[str, str], notes: list[str]) -> Dispatch:
    counters: dict[str, float] = {}
    for name, cell in row.items():
        if "__" not in name or name.startswith(SKIPPED):
            continue
        try:
            value = float(cell.replace(",", ""))
        except ValueError:
            continue  # "n/a", or a text such as a cluster mode
        unit = units.get(name, "")
        if unit in SCALE:
            counters[name] = value * SCALE[unit]
        elif f"unit {unit}" not in " ".join(notes):
            notes.append(f"{name}: unit {unit} is not known here; left out")
    about = {name: row[name] for name in _KEPT if row.get(name)}
    return Dispatch(int(row["ID"]), row.get("Kernel Name", ""), counters, counters.get(DURATION), about)
