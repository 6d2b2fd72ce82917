"""Latencies and bandwidths of an NVIDIA GPU's memory levels: compile `machine.cu`, run it, keep what it says.

    python -m benchmarks.fidelity.measure_machine FOLDER

Needs nvcc and a GPU. Runs it three times, writes ``machine.csv`` into the folder and prints the middle of the
repetitions; the table of one H200 is ``benchmarks/fidelity/data/machine/h200.csv``, and `xcd_model/spec/gpus/h200.toml`
takes its latencies from it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

from benchmarks.fidelity.nvcc import folder_asked, outputs

SOURCE = Path(__file__).with_name("machine.cu")
RUNS = 3


def main() -> None:
    """Measure, or exit with status 1 and a line that says what is missing."""
    folder = folder_asked("benchmarks.fidelity.measure_machine")
    made = [numbered(run, text.splitlines()) for run, text in enumerate(outputs(SOURCE, runs=RUNS), 1)]
    folder.mkdir(parents=True, exist_ok=True)
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


if __name__ == "__main__":
    main()
