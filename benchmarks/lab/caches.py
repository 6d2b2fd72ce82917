"""Capacity and replacement of an NVIDIA GPU's L1 and L2.

``l1`` compiles and runs `l1.cu` and counts its launches: ``l1.csv`` (cycles of a load by the length of its ring and by
carve-out), ``l1_drawn.csv`` (rings of drawn lines) and ``carve_outs.csv`` (shared memory that the driver takes for a
launch). The GPU's description takes the L1's size from the first; no model has the tags that the second shows
(decision 0022); `xcd_model.nvidia.shared_memory` has its rule from the third.

``l1-passes`` runs `l1_passes.cu`: ``l1_passes.csv`` has the cycles of a warp's load by where its lanes read.

``l2`` runs `l2.cu` once for each counter, since the caches must not be touched between passes: ``l2.csv`` has the bytes
read from memory, and those of sectors that missed in the L2, of the last pass of each kind.

``coalescer`` runs `coalescer.cu`: ``coalescer.csv`` has the bytes that SMs asked for and those that reached the L2.
``meeting`` runs `meeting.cu`: ``meeting.csv`` has the same, and how fast SMs that read alike go on.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from swizzle_sim.hardware.node.counted_launch import CountedLaunch

from .cuda_programs import compiled, cuda_source, outputs, profiled, run

LINE_BYTES = 128
HIT_CYCLES = 50.0  # a load that the L1 answers takes 45, one that the L2 answers 280
CARVE_OUT_COUNTERS = {
    "threads": "launch__block_size",
    "registers": "launch__registers_per_thread",
    "shared_bytes": "launch__shared_mem_per_block",
    "carve_out_bytes": "launch__shared_mem_config_size",
}


def l1(folder: Path) -> None:
    """Measure the L1s of an NVIDIA GPU and the shared memory that its driver takes for a launch."""
    with compiled(cuda_source("l1.cu")) as program:
        (folder / "l1.csv").write_text(run([program]), encoding="utf-8")
        (folder / "l1_drawn.csv").write_text(run([program, "drawn"]), encoding="utf-8")
        _, launches = profiled([program, "launches"], CARVE_OUT_COUNTERS.values())
    with (folder / "carve_outs.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(CARVE_OUT_COUNTERS)
        rows.writerows(carve_outs(launches))
    with (folder / "l1.csv").open(encoding="utf-8", newline="") as file:
        for line in words_of(csv.DictReader(file)):
            print(line)


def l1_passes(folder: Path) -> None:
    """Time one warp's loads from the L1 of an SM by where its lanes read."""
    (folder / "l1_passes.csv").write_text(outputs(cuda_source("l1_passes.cu"))[0], encoding="utf-8")


def carve_outs(launches: Iterable[CountedLaunch]) -> Iterator[list[int]]:
    """Threads, registers, shared memory and carve-out of each launch."""
    for one in launches:
        yield [int(one.counters[name]) for name in CARVE_OUT_COUNTERS.values()]


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


MIB = 1 << 20
SECTORS = "lts__t_sectors_srcunit_tex_op_read.sum"

L2_COUNTERS = {  # column, and bytes of one
    "dram__bytes_read.sum": ("memory_mib", 1),
    "lts__t_sectors_op_read_lookup_miss.sum": ("missed_mib", 32),
}


def l2(folder: Path) -> None:
    """Count the passes over a buffer that the L2 of an NVIDIA GPU answers, with stores and without."""
    with compiled(cuda_source("l2.cu")) as program:
        write_passes(folder / "l2.csv", L2_COUNTERS, program)


def coalescer(folder: Path) -> None:
    """Count the sectors that reach the L2 when several SMs read the same lines at the same time."""
    with compiled(cuda_source("coalescer.cu")) as program:
        kinds, sectors = counted_kinds([program], SECTORS, "--profile-from-start", "on")
    with (folder / "coalescer.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*kinds[0], "reached_bytes"])
        table.writerows([*kind.values(), int(32 * value)] for kind, value in zip(kinds, sectors, strict=True))


def meeting(folder: Path) -> None:
    """Time copies of SMs of a GPC that read the same, and count the sectors that reach the L2."""
    with compiled(cuda_source("meeting.cu")) as program:
        timed = csv.DictReader(run([program]).splitlines())
        _, sectors = counted_kinds([program], SECTORS, "--profile-from-start", "on")
    with (folder / "meeting.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*(timed.fieldnames or ()), "reached_bytes"])
        table.writerows([*line.values(), int(32 * value)] for line, value in zip(timed, sectors, strict=True))


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


def counted_kinds(words: list[str], counter: str, *profile: str) -> tuple[list[dict[str, str]], list[float]]:
    """Kinds of pass that a program printed, and what one counter came to in the last pass of each."""
    from_start = profile or ("--profile-from-start", "off")
    printed, launches = profiled(words, [counter], *from_start, "--cache-control", "none", "--clock-control", "none")
    lines = [line for line in printed.splitlines() if "," in line and not line.startswith("==")]
    kinds = list(csv.DictReader(lines))
    if len(launches) != len(kinds):
        sys.exit(f"{len(launches)} launches were counted, {len(kinds)} were made")
    return kinds, [one.counters[counter] for one in launches]
