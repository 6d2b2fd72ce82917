"""What an SM's L1 holds beside shared memory, and how much shared memory the driver takes for a launch.

    python -m benchmarks.fidelity.measure_l1 FOLDER

Needs nvcc, ncu and a GPU whose counters may be read; takes half a minute. Compiles and runs `l1.cu`, writes ``l1.csv``,
``l1_drawn.csv`` and ``carve_outs.csv`` into the folder, and prints with how many lines each carve-out begins to miss.
The tables of H200s are ``h200_l1.csv`` and so on in ``benchmarks/fidelity/data/machine``: the GPU's description has the
L1 from the first, no model has the second yet (decision 0028), and `xcd_model.nvidia.shared_memory` has its rule from
the third.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from benchmarks.fidelity.nvcc import compiled, folder_asked, profiled, run
from swizzle_sim.hardware.node.counted_launch import CountedLaunch

SOURCE = Path(__file__).with_name("l1.cu")
LINE_BYTES = 128
HIT_CYCLES = 50.0  # a load that the L1 answers takes 45, one that the L2 answers 280
COLUMNS = {
    "threads": "launch__block_size",
    "registers": "launch__registers_per_thread",
    "shared_bytes": "launch__shared_mem_per_block",
    "carve_out_bytes": "launch__shared_mem_config_size",
}


def main() -> None:
    """Measure, or exit with status 1 and a line that says what is missing."""
    folder = folder_asked("benchmarks.fidelity.measure_l1")
    folder.mkdir(parents=True, exist_ok=True)
    with compiled(SOURCE) as program:
        (folder / "l1.csv").write_text(run([program]), encoding="utf-8")
        (folder / "l1_drawn.csv").write_text(run([program, "drawn"]), encoding="utf-8")
        _, launches = profiled([program, "launches"], COLUMNS.values())
    with (folder / "carve_outs.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(carve_outs(launches))
    with (folder / "l1.csv").open(encoding="utf-8", newline="") as file:
        for line in words_of(csv.DictReader(file)):
            print(line)


def carve_outs(launches: Iterable[CountedLaunch]) -> Iterator[list[int]]:
    """Threads, registers, shared memory and carve-out of each launch."""
    for one in launches:
        yield [int(one.counters[name]) for name in COLUMNS.values()]


def most_held(lines: Iterable[Mapping[str, str]]) -> dict[tuple[int, int], int]:
    """Longest ring that the L1 answers, by (carve-out asked for [percent], bytes between its places)."""
    found: dict[tuple[int, int], int] = {}
    missed: set[tuple[int, int]] = set()
    for line in lines:
        key = (int(line["carve_out_pct"]), int(line["stride_bytes"]))
        hit = float(line["cycles"]) <= HIT_CYCLES
        if hit and key not in missed:
            found[key] = max(found.get(key, 0), int(line["places"]))
        elif key in found:
            missed.add(key)
    return found


def words_of(lines: Iterable[Mapping[str, str]]) -> list[str]:
    """One line of words for each kind of ring."""
    return [
        f"carve-out {percent} %, {stride} B apart: {places} held, {places * min(stride, LINE_BYTES) / 1024:g} KiB"
        for (percent, stride), places in most_held(lines).items()
    ]


if __name__ == "__main__":
    main()
