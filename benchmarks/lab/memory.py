"""Latency and bandwidth of an NVIDIA GPU's memory levels, idle and under load.

``latency`` runs `machine.cu` three times into ``machine.csv`` and prints medians; ``waits`` runs `waits.cu` into
``waits.csv`` (read latency by loads, stores and bytes) and ``starts.csv`` (gap between two workgroups of an SM), and
prints what a GPU's description takes from them; ``fill`` runs `fill.cu` into ``fill.csv`` (bursts of copies to shared
memory).
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import linear_regression, median

from .cuda_programs import compiled, cuda_source, outputs, run

RUNS = 3


def latency(folder: Path) -> None:
    """Measure latencies and bandwidths of the memory levels."""
    printed = outputs(cuda_source("machine.cu"), runs=RUNS)
    made = [numbered(run, text.splitlines()) for run, text in enumerate(printed, 1)]
    lines = made[0][:1] + [line for run in made for line in run[1:]]
    (folder / "machine.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (folder / "machine.csv").open(encoding="utf-8", newline="") as file:
        for line in middles(csv.DictReader(file)):
            print(line)


def numbered(run: int, lines: list[str]) -> list[str]:
    """CSV lines with the number of their run in front."""
    return [f"run,{lines[0]}", *(f"{run},{line}" for line in lines[1:])]


def middles(lines: Iterable[Mapping[str, str]]) -> list[str]:
    """One line of words for each thing that was measured: the median of its repetitions, lowest and highest."""
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for line in lines:
        key = (line["what"], line["bytes"], line["together"], line["unit"])
        found.setdefault(key, []).append(float(line["value"]))
    return [
        f"{what}, {int(size) / 2**20:g} MiB, {together} SMs at one place: "
        f"{median(values):.1f} {unit} ({min(values):.1f} to {max(values):.1f})"
        for (what, size, together, unit), values in found.items()
    ]


SPARE = 0.6  # of the most that a mix of reads and writes reaches: beyond it requests queue up behind each other
LIGHT_BYTES = 16 << 10  # of bursts on an SM at a time


def waits(folder: Path) -> None:
    """Time reads under load, and the gap between two workgroups of an SM."""
    with compiled(cuda_source("waits.cu")) as program:
        (folder / "waits.csv").write_text(run([program]), encoding="utf-8")
        (folder / "starts.csv").write_text(run([program, "starts"]), encoding="utf-8")
    with (folder / "waits.csv").open(encoding="utf-8", newline="") as file:
        for (loads, stores, piece), wait_ns in turnarounds(csv.DictReader(file)).items():
            print(
                f"{loads} loads, {stores} stores, pieces of {piece} B: {wait_ns:.0f} ns for memory that is always busy"
            )
    with (folder / "starts.csv").open(encoding="utf-8", newline="") as file:
        gaps = [float(line["gap_cycles"]) for line in csv.DictReader(file)]
    print(f"from one workgroup to the next: {min(gaps):.0f} to {max(gaps):.0f} cycles, median {median(gaps):.0f}")


def turnarounds(lines: Iterable[Mapping[str, str]]) -> dict[tuple[int, int, int], float]:
    """How much longer a read takes for each whole that memory is busy, by (loads, stores, piece) [ns].

    Against the least loaded line of the same kind: the median over the heavier half of the loads up to `SPARE` of the
    most that was reached.
    """
    kinds: dict[tuple[int, int, int], list[tuple[float, float]]] = defaultdict(list)
    for line in lines:
        kind = (int(line["loads"]), int(line["stores"]), int(line["piece_bytes"]))
        kinds[kind].append((float(line["gb_per_s"]), float(line["wait_ns"])))
    found = {}
    for kind, points in kinds.items():
        most = max(rate for rate, _ in points)
        (idle_rate, idle_ns), *loaded = sorted(points)
        slopes = [(ns - idle_ns) / (rate - idle_rate) * most for rate, ns in loaded if rate <= SPARE * most]
        found[kind] = median(slopes[len(slopes) // 2 :])  # lighter ones differ by less than noise
    return found


def fill(folder: Path) -> None:
    """Time bursts of copies from the L2 and the L1 to shared memory."""
    with compiled(cuda_source("fill.cu")) as program:
        (folder / "fill.csv").write_text(run([program]), encoding="utf-8")
    with (folder / "fill.csv").open(encoding="utf-8", newline="") as file:
        for kind, (clocks, rate) in fills(csv.DictReader(file)).items():
            print(f"{', '.join(kind)}: {clocks:.0f} clocks, and one for each {rate:.1f} B of an SM")


def fills(lines: Iterable[Mapping[str, str]]) -> dict[tuple[str, ...], tuple[float, float]]:
    """Clocks that a burst takes at least, and bytes a clock of an SM that longer ones add, by kind: a straight line.

    Through bursts that leave the L2 half of what it gives out: of longer ones all SMs together take more time.
    A kind is (copies, SMs, workgroups an SM, threads, bursts ahead), in words.
    """
    kinds: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for line in lines:
        kind = (
            *(line["copies"], f"{line['sms']} SMs", f"{line['workgroups_per_sm']} workgroups an SM"),
            *(f"{line['threads']} threads", f"{line['ahead']} ahead"),
        )
        n_bytes = int(line["burst_bytes"]) * int(line["workgroups_per_sm"])
        if n_bytes <= LIGHT_BYTES:
            kinds[kind].append((float(n_bytes), float(line["clocks"])))
    found = {}
    for kind, points in kinds.items():
        slope, least = linear_regression(*zip(*points, strict=True))
        found[kind] = (least, 1 / slope)
    return found
