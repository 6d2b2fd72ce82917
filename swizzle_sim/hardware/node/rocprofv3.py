"""AMD's rocprofv3: its options, its passes, where it puts its files, and its ``counter_collection.csv``.

Sources: ROCm documentation of rocprofv3; rocm-systems PR 9324 (four TCC counters a pass) and PR 8331 (requesting more
used to hang), issue threads on ratios of counters from different passes. ROCm 7 writes Accum_VGPR_Count and two
timestamps and calls an agent "Agent 2"; ROCm 6 lacks the three columns and numbers agents. A ``_sum`` counter is
already over all channels of all XCDs.
"""

from __future__ import annotations

import contextlib
import csv
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from .counted_launch import CountedLaunch, name_pattern
from .formulas import formulas_of
from .processes import version_of

NEEDED = ("Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value")
_KEPT = (
    *("Agent_Id", "Grid_Size", "Workgroup_Size", "LDS_Block_Size", "Scratch_Size"),
    *("VGPR_Count", "Accum_VGPR_Count", "SGPR_Count"),
)
_ROCPD_FACTS = tuple(name.lower() for name in _KEPT if name != "Agent_Id")
OUT = "pass"


def read_counters(path: Path) -> tuple[list[CountedLaunch], list[str]]:
    """Dispatches of one file, and what was wrong with it."""
    found: dict[int, CountedLaunch] = {}
    notes: list[str] = []
    for number, row in enumerate(_rows(path, notes), start=2):
        try:
            key, value = int(row["Dispatch_Id"]), float(row["Counter_Value"])
            begin, end = row.get("Start_Timestamp"), row.get("End_Timestamp")
            duration = float(end) - float(begin) if begin and end else None
        except (TypeError, ValueError):
            notes.append(f"{path.name}:{number}: incomplete row left out")
            continue
        one = found.setdefault(key, CountedLaunch(key, row["Kernel_Name"], {}, duration, _about(row)))
        name = row["Counter_Name"]
        # without _sum a counter has one row for each channel and XCD
        one.counters[name] = one.counters.get(name, 0.0) + value
    return list(found.values()), notes


def read_rocpd(path: Path) -> tuple[list[CountedLaunch], list[str]]:
    """Launches with their counters."""
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        rows = db.execute("SELECT * FROM counters_collection").fetchall()
    found: dict[int, CountedLaunch] = {}
    for row in map(dict, rows):
        one = found.setdefault(row["dispatch_id"], CountedLaunch(row["dispatch_id"], row["kernel_name"]))
        one.counters[row["counter_name"]] = one.counters.get(row["counter_name"], 0.0) + float(row["value"])
        if "start" in row and "end" in row:
            one.duration_ns = float(row["end"]) - float(row["start"])
        one.about = {name: str(row[name]) for name in _ROCPD_FACTS if row.get(name) is not None}
    return list(found.values()), []


def _about(row: dict[str, str]) -> dict[str, str]:
    return {name: row[name] for name in _KEPT if row.get(name)}


def _rows(path: Path, notes: list[str]) -> Iterator[dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        notes.append(f"{path.name}: {error.strerror}")
        return
    lines = text.splitlines()
    if lines and not text.endswith("\n"):
        notes.append(f"{path.name}: ends within a line, which is left out")
        lines.pop()
        if not lines:
            return
    reader = csv.DictReader(lines, restval=None)
    missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
    if missing:
        notes.append(f"{path.name}: no column {', '.join(missing)}: no counters of rocprofv3")
        return
    yield from reader


class Rocprofv3:
    """Counts with rocprofv3, at most four TCC counters a run."""

    name = "rocprofv3"
    usual = "/opt/rocm/bin/rocprofv3"
    probe = ("SQ_WAVES",)
    flushes = True
    cold = "a buffer of twice the caches is written before each counted launch; the L2s are cold as on every launch"

    def passes(self, arch: str) -> list[tuple[str, ...]]:
        """Hits and misses, reads, writes with atomics, and what L1s ask for: each in a run of its own."""
        read, written = (
            tuple(name for one in formulas_of(arch) if one.quantity == f"{what}_bytes" for name in one.terms)
            for what in ("read", "write")
        )
        more = {"gfx942": "TCC_EA0_RDREQ_DRAM_sum", "gfx950": "TCC_EA0_RDREQ_sum"}.get(arch)
        return [
            ("TCC_HIT_sum", "TCC_MISS_sum", "TCC_REQ_sum", "TCC_READ_sum"),
            (*read, *([more] if more else [])),
            (*written, "TCC_REQ_sum", "TCC_ATOMIC_sum"),
            ("TCP_TCC_READ_REQ_sum",),
        ]

    def version(self, program: str, log: Path) -> str:
        """Version line of ``rocprofv3 --version``."""
        return version_of(program, log, lines=3)

    def command(
        self, program: str, counters: Sequence[str], folder: Path, function: str, work: Sequence[str]
    ) -> list[str]:
        """Words of one counting run, CSV output, filtered by kernel name."""
        where = ("--output-format", "csv", "-d", str(folder), "-o", OUT)
        return [program, "--pmc", *counters, "--kernel-include-regex", name_pattern(function), *where, "--", *work]

    def read(self, folder: Path) -> tuple[list[CountedLaunch], list[str]]:
        """Launches of every ``counter_collection.csv`` below a folder; some versions add a level of folders."""
        files = sorted(folder.rglob("*counter_collection.csv"))
        files = files or sorted(folder.rglob("*.db"))  # what ROCm 7 writes by default, whatever was asked for
        if not files:
            others = ", ".join(sorted(path.name for path in folder.rglob("*") if path.is_file())[:6]) or "nothing"
            return [], [f"no counter_collection.csv and no rocpd file; there is {others}"]
        dispatches: list[CountedLaunch] = []
        notes: list[str] = []
        for path in files:
            try:
                found, said = (read_rocpd if path.suffix == ".db" else read_counters)(path)
            except sqlite3.Error as error:
                found, said = [], [f"{path.name}: {error}"]
            dispatches += found
            notes += said
        return dispatches, notes

    def fallbacks(self, counters: Sequence[str]) -> list[tuple[str, ...]]:
        """Hits with misses, which belong together; every other counter alone."""
        pair = ("TCC_HIT_sum", "TCC_MISS_sum")
        if len(counters) == 1:
            return []
        whole = all(one in counters for one in pair) and tuple(counters) != pair
        return [*([pair] if whole else []), *((one,) for one in counters if not (whole and one in pair))]
