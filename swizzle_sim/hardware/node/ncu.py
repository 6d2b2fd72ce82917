"""NVIDIA's Nsight Compute: its options, its metrics, its table.

An NVIDIA GPU has no XCDs. What is counted is its one L2 (lookups in 32-byte sectors, those that SMs made apart from
traffic between the L2's partitions) and the device memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .dispatches import Dispatch, name_pattern
from .ncu_rows import DURATION, read_ncu
from .processes import run

TABLE = "table.csv"
LAUNCH = (  # what the compiled kernel occupies: known without counting
    "launch__registers_per_thread",
    "launch__shared_mem_per_block",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
)


class NsightCompute:
    """Counts with ncu; it launches a kernel again for each group of metrics and restores memory between."""

    name = "ncu"
    passes = (
        (
            "lts__t_sectors.sum",
            "lts__t_sectors_lookup_hit.sum",
            "lts__t_sectors_lookup_miss.sum",
            "lts__t_sectors_srcunit_tex.sum",
            "lts__t_sectors_srcunit_tex_op_read.sum",
            "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
            "lts__t_sectors_srcunit_ltcfabric.sum",
            "dram__bytes_read.sum",
            "dram__bytes_write.sum",
            DURATION,
            *LAUNCH,
        ),
    )
    cold = "ncu flushes the caches before each pass of a counted launch (--cache-control all), clocks left alone"

    def version(self, program: str, log: Path) -> str:
        """Version line of ``ncu --version``."""
        said = run([program, "--version"], log=log, limit_s=60)
        lines = [line.strip() for line in said.tail.splitlines() if re.search(r"\d+\.\d+", line)]
        return "; ".join(lines[:2]) if said.state == "ok" else ""

    def command(
        self, program: str, counters: Sequence[str], folder: Path, function: str, work: Sequence[str]
    ) -> list[str]:
        """Words of one counting run, a table in base units in a file of its own."""
        return [
            program,
            "--metrics",
            ",".join(counters),
            "--kernel-name",
            f"regex:{name_pattern(function)}",
            "--target-processes",
            "all",
            "--cache-control",
            "all",
            "--clock-control",
            "none",
            "--csv",
            "--page",
            "raw",
            "--print-units",
            "base",
            "--log-file",
            str(folder / TABLE),
            *work,
        ]

    def read(self, folder: Path) -> tuple[list[Dispatch], list[str]]:
        """Launches of a run's table."""
        return read_ncu(folder / TABLE)

    def fallbacks(self, counters: Sequence[str]) -> list[tuple[str, ...]]:
        """Memory with time, then each metric of the L2 alone."""
        first = tuple(one for one in counters if one.startswith(("dram__", "gpu__", "launch__")))
        if len(counters) == 1 or tuple(counters) == first:
            return []
        return [first, *((one,) for one in counters if one not in first)]
