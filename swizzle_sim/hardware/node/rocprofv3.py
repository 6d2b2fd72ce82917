"""AMD's rocprofv3: its options, its passes, and where it puts its files.

Sources: ROCm documentation of rocprofv3; rocm-systems PR 9324 (four TCC counters a pass) and PR 8331 (asking for more
used to hang), issue threads on ratios of counters from different passes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .dispatches import Dispatch, name_pattern
from .processes import run
from .rocprof_rows import read_counters

OUT = "pass"


class Rocprofv3:
    """Counts with rocprofv3, at most four TCC counters a run."""

    name = "rocprofv3"
    passes = (
        ("TCC_HIT_sum", "TCC_MISS_sum", "TCC_REQ_sum", "TCC_READ_sum"),
        ("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum", "TCC_EA0_RDREQ_DRAM_sum"),
        ("TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum", "TCC_REQ_sum", "TCC_ATOMIC_sum"),
        ("TCP_TCC_READ_REQ_sum",),
    )
    cold = "a buffer of twice the caches is read before each counted launch; the L2s are cold as on every launch"

    def version(self, program: str, log: Path) -> str:
        """Version line of ``rocprofv3 --version``."""
        said = run([program, "--version"], log=log, limit_s=60)
        lines = [line.strip() for line in said.tail.splitlines() if re.search(r"\d+\.\d+", line)]
        return "; ".join(lines[:3]) if said.state == "ok" else ""

    def command(
        self, program: str, counters: Sequence[str], folder: Path, function: str, work: Sequence[str]
    ) -> list[str]:
        """Words of one counting run, CSV output, filtered by kernel name."""
        return [
            program,
            "--pmc",
            *counters,
            "--kernel-include-regex",
            name_pattern(function),
            "--output-format",
            "csv",
            "-d",
            str(folder),
            "-o",
            OUT,
            "--",
            *work,
        ]

    def read(self, folder: Path) -> tuple[list[Dispatch], list[str]]:
        """Launches of every ``counter_collection.csv`` below a folder; some versions add a level of folders."""
        files = sorted(folder.rglob("*counter_collection.csv"))
        if not files:
            others = ", ".join(sorted(path.name for path in folder.rglob("*") if path.is_file())[:6]) or "nothing"
            return [], [f"no counter_collection.csv; there is {others}"]
        dispatches: list[Dispatch] = []
        notes: list[str] = []
        for path in files:
            found, said = read_counters(path)
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
