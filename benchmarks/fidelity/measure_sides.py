"""Which bits of an address say on which side of an NVIDIA GPU's L2 a line is at home, and what each side holds.

    python -m benchmarks.fidelity.measure_sides FOLDER

Needs nvcc, ncu and a GPU whose counters may be read, with 4 GiB of memory; takes 40 s. Compiles and runs
`sides.cu`: for clocks and homes, then once for each counter, since the caches must not be touched between passes.
Writes into the folder ``side_clocks.csv`` (clocks of an atomic and of reads, by side), ``side_homes.csv`` (the bits,
and how many blocks of 4 KiB they explain) and ``sides.csv`` (what the last pass of each kind read from memory, did not
find on its own side, and found on the other). The tables of one H200 are ``h200_side_clocks.csv`` and so on in
``benchmarks/fidelity/data/machine``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.fidelity.homes import homes_of
from benchmarks.fidelity.measure_l2 import write_passes
from benchmarks.fidelity.nvcc import compiled, folder_asked, run

SOURCE = Path(__file__).with_name("sides.cu")
COUNTERS = {  # column, and bytes of one
    "dram__bytes_read.sum": ("memory_mib", 1),
    "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum": ("missed_near_mib", 32),
    "lts__t_sectors_srcunit_ltcfabric_lookup_hit.sum": ("held_far_mib", 32),
}


def main() -> None:
    """Measure, or exit with status 1 and a line that says what is missing."""
    folder = folder_asked("benchmarks.fidelity.measure_sides")
    folder.mkdir(parents=True, exist_ok=True)
    with compiled(SOURCE) as program:
        with tempfile.TemporaryDirectory() as place:
            blocks = Path(place) / "homes"
            clocks = run([program, "homes", str(blocks)])
            found = homes_of(np.fromfile(blocks, np.uint8))
        (folder / "side_clocks.csv").write_text(clocks, encoding="utf-8")
        row = f"{found.bits:#x},{found.first_page},{found.blocks},{found.explained}"
        (folder / "side_homes.csv").write_text(f"bits,first_page,blocks,explained\n{row}\n", encoding="utf-8")
        write_passes(folder / "sides.csv", COUNTERS, program, "passes")


if __name__ == "__main__":
    main()
