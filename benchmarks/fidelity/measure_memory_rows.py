"""How far rows of the memory reach: whether pieces at drawn places gain from others that far away.

    python -m benchmarks.fidelity.measure_memory_rows FOLDER

Needs nvcc and an NVIDIA GPU with 5 GiB of memory; takes ten seconds. Compiles and runs `memory_rows.cu` and writes
``memory_rows.csv`` into the folder: for pairs of pieces by how far apart they lie, and for pieces in drawn order within
stretches of memory by how long those are, the time that a piece takes. The table of one H200 is
``h200_memory_rows.csv`` in ``benchmarks/fidelity/data/machine``.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.fidelity.nvcc import folder_asked, outputs

SOURCE = Path(__file__).with_name("memory_rows.cu")


def main() -> None:
    """Measure, or exit with status 1 and a line that says what is missing."""
    folder = folder_asked("benchmarks.fidelity.measure_memory_rows")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory_rows.csv").write_text(outputs(SOURCE)[0], encoding="utf-8")


if __name__ == "__main__":
    main()
