"""NVIDIA's Nsight Compute: its options, its metrics, and its ``--csv --page raw``: names, units, a row for each launch.

An NVIDIA GPU has no XCDs. What is counted is its one L2 (look-ups in 32-byte sectors, those of SMs separate from
traffic between the L2's partitions) and the device memory.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from .counted_launch import CountedLaunch, name_pattern
from .processes import version_of

FIRST = '"ID"'
COUNTS = ("sector", "request", "inst", "cycle", "block", "cluster", "thread", "warp", "pass", "SM", "register/thread")
SCALE = {  # to counts, bytes and nanoseconds
    **dict.fromkeys(("", *COUNTS, "byte", "byte/block", "%", "ns", "nsecond"), 1.0),
    **{"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Kbyte/block": 1e3},
    **{"us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9},
}
OWN_WISH = "unmodified GPU clocks"  # ncu's remark on --clock-control none
SKIPPED = ("device__", "nvlink__", "numa__", "c2clink__", "profiler__")  # facts of the machine, not of a launch
DURATION = "gpu__time_duration.sum"
_KEPT = ("Grid Size", "Block Size", "Device", "CC", "launch__registers_per_thread")
TABLE = "table.csv"
LAUNCH = (  # what the compiled kernel occupies: known without counting
    "launch__registers_per_thread",
    "launch__shared_mem_per_block",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
)


def read_ncu(path: Path) -> tuple[list[CountedLaunch], list[str]]:
    """Launches of one file, and what was wrong with it; see `swizzle_sim.hardware.node.rocprofv3.read_counters`."""
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


def _dispatch(row: dict[str, str], units: dict[str, str], notes: list[str]) -> CountedLaunch:
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
    return CountedLaunch(int(row["ID"]), row.get("Kernel Name", ""), counters, counters.get(DURATION), about)


class NsightCompute:
    """Counts with ncu; it launches a kernel once for each group of metrics and restores memory between."""

    name = "ncu"
    usual = "/usr/local/cuda/bin/ncu"
    probe = (DURATION,)
    flushes = False
    metrics = (
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
    )
    cold = "ncu flushes the caches before each pass of a counted launch (--cache-control all), clocks left alone"

    def passes(self, _: str) -> list[tuple[str, ...]]:
        """All at once: ncu divides them itself."""
        return [self.metrics]

    def version(self, program: str, log: Path) -> str:
        """Version line of ``ncu --version``."""
        return version_of(program, log, lines=2)

    def command(
        self, program: str, counters: Sequence[str], folder: Path, function: str, work: Sequence[str]
    ) -> list[str]:
        """Words of one counting run, a table in base units in a file of its own."""
        return [
            *(program, "--metrics", ",".join(counters), "--kernel-name", f"regex:{name_pattern(function)}"),
            *("--target-processes", "all", "--cache-control", "all", "--clock-control", "none"),
            *("--csv", "--page", "raw", "--print-units", "base", "--log-file", str(folder / TABLE), *work),
        ]

    def read(self, folder: Path) -> tuple[list[CountedLaunch], list[str]]:
        """Launches of a run's table."""
        return read_ncu(folder / TABLE)

    def fallbacks(self, counters: Sequence[str]) -> list[tuple[str, ...]]:
        """Memory with time, then each metric of the L2 alone."""
        first = tuple(one for one in counters if one.startswith(("dram__", "gpu__", "launch__")))
        if len(counters) == 1 or tuple(counters) == first:
            return []
        return [first, *((one,) for one in counters if one not in first)]
