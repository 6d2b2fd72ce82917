"""Latencies and bandwidths of an NVIDIA GPU's memory levels: compile `machine.cu`, run it, keep what it says.

    python -m benchmarks.fidelity.measure_machine FOLDER

Needs nvcc and a GPU. Runs it three times, writes ``machine.csv`` into the folder and prints the middle of the
repetitions; the table of one H200 is ``benchmarks/fidelity/data/machine/h200.csv``, and `xcd_model/gpus/h200.toml`
takes its latencies from it.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).with_name("machine.cu")
RUNS = 3


def main() -> None:
    """Measure, or exit with status 1 and a line that says what is missing."""
    if len(sys.argv) != 2:
        sys.exit("python -m benchmarks.fidelity.measure_machine FOLDER")
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        sys.exit("nvcc is not on the PATH: CUDA's compiler builds the kernels")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "machine"
        _run([nvcc, "-O3", "-arch=native", "-o", str(program), str(SOURCE)])
        made = [numbered(run, _run([str(program)]).splitlines()) for run in range(1, RUNS + 1)]
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


def _run(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words[0]} failed with status {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


if __name__ == "__main__":
    main()
