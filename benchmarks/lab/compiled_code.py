"""What Triton compiles a kernel to, for a GPU that need not be there: stores, and loads that wait for each other.

``fdtd-stores`` counts the stores of an FDTD kernel with border masks for gfx942. ``dependent-loads`` reads what
``nvdisasm`` prints and counts the round trips to memory that a thread makes one after the other. ``stencil-loads``
compiles the stencils of the H200 table from their source with Triton 3.6.0 (another version compiles other code, which
the registers show) and writes ``h200_stencil_code.csv``, which `swizzle_benchmarks.validation.workloads.h200` reads.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TARGETS = {"gfx942": ("hip", "gfx942", 64), "sm_90": ("cuda", 90, 32)}  # backend, architecture, lanes of a wave
WAVES = 4


def compiled(kernel: Any, arguments: Mapping[str, str], constants: Mapping[str, int], arch: str) -> Any:
    """Compile a kernel of four waves; needs Triton, with nothing interpreted."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    n = len(arguments)
    source = ASTSource(
        fn=kernel,
        signature={**arguments, **dict.fromkeys(constants, "constexpr")},
        constexprs={(n + i,): value for i, value in enumerate(constants.values())},
        attrs={(i,): [["tt.divisibility", 16]] for i in range(n)},
    )
    return triton.compile(source, target=GPUTarget(*TARGETS[arch]), options={"num_warps": WAVES})


def compiled_stores() -> Counter[str]:
    """Store instructions of the kernel as Triton compiles it for an MI300X, by opcode."""
    kernels = importlib.import_module("swizzle_benchmarks.lab.fdtd_triton")
    pointers, sizes = ("ex_ptr", "ey_ptr", "hz_ptr"), ("Nx", "Ny", "pitch")
    arguments = dict.fromkeys(pointers, "*fp32") | dict.fromkeys(sizes, "i32")
    made = compiled(kernels.fdtd_borders, arguments, {"BLOCK_X": 32, "BLOCK_Y": 32}, "gfx942")
    return Counter(re.findall(r"^\s+(global_store_\w+)", made.asm["amdgcn"], re.MULTILINE))


def fdtd_stores() -> None:
    """Print how many store instructions there are of each kind; exit with a line where Triton is missing."""
    if importlib.util.find_spec("triton") is None:
        sys.exit("Triton is not installed: pip install 'swizzle-sim[triton]'")
    for opcode, times in compiled_stores().items():
        print(f"{times} {opcode}")


NEAR = 0.1  # of a trip: a load that a cache answers
_COMMENT = re.compile(r"/\*.*?\*/")
_INSTRUCTION = re.compile(r"^\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s+([^;]*);")
_REGISTER = re.compile(r"\bR(\d+)(\.64)?")
_WIDTH = {"128": 4, "64": 2}


def dependent_loads(words: Sequence[str]) -> None:
    """Print them for each file; exit with status 2 without one, with 1 for a file that is missing or holds no loads."""
    parser = argparse.ArgumentParser(prog="python -m swizzle_benchmarks.lab dependent-loads", description=trips.__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.sass", help="what nvdisasm prints of a kernel")
    for name in parser.parse_args(words).files:
        if not name.is_file():
            sys.exit(f"there is no file {name}")
        code = name.read_text(encoding="utf-8")
        loads = sum(is_load(opcode) for opcode, _ in instructions(code))
        if not loads:
            sys.exit(f"{name}: no LDG in it; expected what nvdisasm prints")
        print(
            f"{name}: {loads} loads, {trips(code):.0f} trips, {trips(code, near=NEAR):.1f} where only wide ones are far"
        )


def instructions(code: str) -> list[tuple[str, str]]:
    """Opcode and operands of each instruction."""
    found = (_INSTRUCTION.match(_COMMENT.sub("", line)) for line in code.splitlines())
    return [(one.group(1), one.group(2)) for one in found if one]


def is_load(opcode: str) -> bool:
    """Whether an instruction loads registers from memory; one that loads shared memory does not."""
    return opcode.split(".", maxsplit=1)[0] == "LDG"


def trips(code: str, *, near: float = 1.0) -> float:
    """Round trips to memory that straight NVIDIA code makes one after the other.

    Instructions issue in order, a load's registers are there one round trip later, and whatever reads or overwrites
    them waits until then. A tile loaded in one go makes one trip; a compiler that uses few registers makes many.
    The result is the time until the last instruction can go out, in trips to memory.
    """
    ready: dict[int, float] = {}
    now = 0.0
    for opcode, operands in instructions(code):
        named = [(int(number), bool(pair)) for number, pair in _REGISTER.findall(operands)]
        width = next((n for bits, n in _WIDTH.items() if f".{bits}" in opcode), 1)
        written: list[int] = []
        read = [number + more for number, pair in named for more in range(2 if pair else 1)]
        if opcode.startswith(("ST", "RED", "ATOM")) and named:
            read += range(named[-1][0], named[-1][0] + width)
        elif named:
            written = list(range(named[0][0], named[0][0] + width))
        now = max([now, *(ready.get(number, 0.0) for number in (*read, *written))])
        takes = (near if width < 4 else 1.0) if is_load(opcode) else 0.0
        ready.update(dict.fromkeys(written, now + takes))
    return now


STENCIL_TILES = ((8, 512), (16, 256), (32, 128), (32, 32))
STENCIL_ORDERS = ("row", "col", "grp", "band", "bandgrp", "morton", "scatter")  # the source numbers them so
STENCIL_CONSTANTS = ("ORDER", "G", "BM", "BN")
POINTERS_AND_SIZES = {"x": "*fp32", "y": "*fp32", "M": "i32", "N": "i32"}
STENCIL_COLUMNS = ("rows", "cols", "order", "registers", "loads", "trips", "near_trips")


def stencil_loads(words: Sequence[str]) -> None:
    """Compile every tile in every order, and write a line of each; exit with a line that says what is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m swizzle_benchmarks.lab stencil-loads", description=stencil_loads.__doc__
    )
    parser.add_argument("kernels", type=Path, metavar="KERNELS.py", help="where stencil_kernel is")
    parser.add_argument("table", type=Path, metavar="TABLE.csv", help="to write")
    asked = parser.parse_args(words)
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
        table.writerow(STENCIL_COLUMNS)
        for rows, cols in STENCIL_TILES:
            for number, order in enumerate(STENCIL_ORDERS):
                registers, code = code_of(kernels.stencil_kernel, (number, 8, rows, cols))
                loads = sum(is_load(opcode) for opcode, _ in instructions(code))
                near = f"{trips(code, near=NEAR):.1f}"
                table.writerow((rows, cols, order, registers, loads, round(trips(code)), near))


def code_of(kernel: Any, constants: tuple[int, ...]) -> tuple[int, str]:
    """Registers a thread, and machine code as ``nvdisasm`` prints it."""
    import triton

    made = compiled(kernel, POINTERS_AND_SIZES, dict(zip(STENCIL_CONSTANTS, constants, strict=True)), "sm_90")
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
