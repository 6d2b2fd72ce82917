"""How long a read takes while all SMs load memory, and how soon a workgroup follows another on its SM.

    python -m benchmarks.fidelity.measure_waits FOLDER

Needs nvcc and an NVIDIA GPU with 6 GiB of memory; takes ten seconds. Compiles and runs `waits.cu`, writes ``waits.csv``
and ``starts.csv`` into the folder, and prints what a GPU's description takes from them. The tables of one H200 are
``h200_waits.csv`` and ``h200_starts.csv`` in ``benchmarks/fidelity/data/machine``.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

from benchmarks.fidelity.nvcc import compiled, folder_asked, run

SOURCE = Path(__file__).with_name("waits.cu")
SPARE = 0.6  # of the most that a mix of reads and writes reaches: beyond it requests queue up behind each other


def main() -> None:
    """Measure, or exit with status 1 and a line that says what is missing."""
    folder = folder_asked("benchmarks.fidelity.measure_waits")
    folder.mkdir(parents=True, exist_ok=True)
    with compiled(SOURCE) as program:
        (folder / "waits.csv").write_text(run([program]), encoding="utf-8")
        (folder / "starts.csv").write_text(run([program, "starts"]), encoding="utf-8")
    with (folder / "waits.csv").open(encoding="utf-8", newline="") as file:
        for (loads, stores, piece), wait_ns in mixed_waits(csv.DictReader(file)).items():
            print(
                f"{loads} loads, {stores} stores, pieces of {piece} B: {wait_ns:.0f} ns for memory that is always busy"
            )
    with (folder / "starts.csv").open(encoding="utf-8", newline="") as file:
        gaps = [float(line["gap_cycles"]) for line in csv.DictReader(file)]
    print(f"from one workgroup to the next: {min(gaps):.0f} to {max(gaps):.0f} cycles, median {median(gaps):.0f}")


def mixed_waits(lines: Iterable[Mapping[str, str]]) -> dict[tuple[int, int, int], float]:
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


if __name__ == "__main__":
    main()
