"""How much of what is read again the L2 of an NVIDIA GPU still holds, with stores beside it and without.

    python -m benchmarks.fidelity.measure_l2 FOLDER

Needs nvcc, ncu and a GPU whose counters may be read, with 5 GiB of memory; takes a minute. Compiles and runs `l2.cu`
once for each counter, since the caches must not be touched between passes, and writes ``l2.csv`` into the folder: bytes
read from memory, and of sectors that missed in the L2, of the last pass of each kind. The table of one H200 is
``h200_l2.csv`` in ``benchmarks/fidelity/data/machine``.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.fidelity.nvcc import compiled, folder_asked, profiled

SOURCE = Path(__file__).with_name("l2.cu")
MIB = 1 << 20
COUNTERS = {  # column, and bytes of one
    "dram__bytes_read.sum": ("memory_mib", 1),
    "lts__t_sectors_op_read_lookup_miss.sum": ("missed_mib", 32),
}


def main() -> None:
    """Measure, or exit with status 1 and a line that says what is missing."""
    folder = folder_asked("benchmarks.fidelity.measure_l2")
    folder.mkdir(parents=True, exist_ok=True)
    with compiled(SOURCE) as program:
        write_passes(folder / "l2.csv", COUNTERS, program)


def write_passes(path: Path, counters: Mapping[str, tuple[str, int]], *words: str) -> None:
    """Run a program once for each counter, and write a CSV line for each kind of pass that it prints.

    Parameters
    ----------
    path : Path
    counters : mapping of str to (str, int)
        Column [MiB] and bytes of one, by counter.
    *words : str
        The program's command line.
    """
    kinds, columns = [], {}
    for counter, (column, size) in counters.items():
        kinds, counted = counted_kinds(list(words), counter)
        columns[column] = [f"{size * value / MIB:.2f}" for value in counted]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*kinds[0], *columns])
        table.writerows(zip(*zip(*(kind.values() for kind in kinds), strict=True), *columns.values(), strict=True))


def counted_kinds(words: list[str], counter: str) -> tuple[list[dict[str, str]], list[float]]:
    """Kinds of pass that a program printed, and what one counter came to in the last pass of each."""
    plain = ["--profile-from-start", "off", "--cache-control", "none", "--clock-control", "none"]
    printed, launches = profiled(words, [counter], *plain)
    lines = [line for line in printed.splitlines() if "," in line and not line.startswith("==")]
    kinds = list(csv.DictReader(lines))
    if len(launches) != len(kinds):
        sys.exit(f"{len(launches)} launches were counted, {len(kinds)} were made")
    return kinds, [one.counters[counter] for one in launches]


if __name__ == "__main__":
    main()
