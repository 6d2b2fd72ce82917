"""Write how many trips the stencils of the H200 table make, from their source: no GPU needed.

    python -m benchmarks.fidelity.compile_stencils KERNELS.py TABLE.csv

``KERNELS.py`` holds ``stencil_kernel`` as the table's launches had it. Needs Triton 3.6.0, as they had: another version
compiles other code, which the registers show. Triton brings the disassembler. What it writes is
``benchmarks/fidelity/data/machine/h200_stencil_code.csv``, see `benchmarks.fidelity.stencil_code`.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.fidelity.compiled import compiled
from benchmarks.fidelity.trips import NEAR, instructions, is_load, trips

TILES = ((8, 512), (16, 256), (32, 128), (32, 32))
ORDERS = ("row", "col", "grp", "band", "bandgrp", "morton", "scatter")  # the source numbers them so
CONSTANTS = ("ORDER", "G", "BM", "BN")
POINTERS_AND_SIZES = {"x": "*fp32", "y": "*fp32", "M": "i32", "N": "i32"}
NAMES = ("rows", "cols", "order", "registers", "loads", "trips", "near_trips")


def main() -> None:
    """Compile every tile in every order, and write a line of each; exit with a line that says what is missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity.compile_stencils", description=__doc__)
    parser.add_argument("kernels", type=Path, metavar="KERNELS.py", help="where stencil_kernel is")
    parser.add_argument("table", type=Path, metavar="TABLE.csv", help="to write")
    asked = parser.parse_args()
    if importlib.util.find_spec("triton") is None:
        sys.exit("Triton is not installed: pip install triton==3.6.0")
    if not asked.kernels.is_file():
        sys.exit(f"there is no file {asked.kernels}")
    found = importlib.util.spec_from_file_location("kernels", asked.kernels)
    if found is None or found.loader is None:
        sys.exit(f"{asked.kernels} is no Python file")
    kernels = importlib.util.module_from_spec(found)
    found.loader.exec_module(kernels)
    with asked.table.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(NAMES)
        for rows, cols in TILES:
            for number, order in enumerate(ORDERS):
                registers, code = code_of(kernels.stencil_kernel, (number, 8, rows, cols))
                loads = sum(is_load(opcode) for opcode, _ in instructions(code))
                near = f"{trips(code, near=NEAR):.1f}"
                table.writerow((rows, cols, order, registers, loads, round(trips(code)), near))


def code_of(kernel: Any, constants: tuple[int, ...]) -> tuple[int, str]:
    """Registers a thread, and machine code as ``nvdisasm`` prints it."""
    import triton

    made = compiled(kernel, POINTERS_AND_SIZES, dict(zip(CONSTANTS, constants, strict=True)), "sm_90")
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        words = ([tools / "cuobjdump", "--dump-resource-usage", file.name], [tools / "nvdisasm", "-c", file.name])
        usage, code = (subprocess.run(one, capture_output=True, text=True, check=True).stdout for one in words)
    registers = re.search(r"REG:(\d+)", usage)
    if registers is None:
        sys.exit("cuobjdump names no registers")
    return int(registers.group(1)), code


if __name__ == "__main__":
    main()
