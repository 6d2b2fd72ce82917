"""How many trips to memory a compiled NVIDIA kernel makes one after the other: its loads wait for what uses them.

    python -m benchmarks.fidelity.trips FILE.sass ...

Reads what ``nvdisasm`` prints of straight code. Instructions go out in order, a load's registers are there one trip
later, and whatever reads or overwrites them waits until then. A tile that is loaded in one go makes one trip; a
compiler that uses few registers makes many. Of a file it says how many loads there are, how many trips they make where
each takes as long, and how many where only the wide ones (128 bits) go to memory and the others find their lines in a
cache, in a tenth of the time.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

NEAR = 0.1  # of a trip: a load that a cache answers
_COMMENT = re.compile(r"/\*.*?\*/")
_INSTRUCTION = re.compile(r"^\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s+([^;]*);")
_REGISTER = re.compile(r"\bR(\d+)(\.64)?")
_WIDTH = {"128": 4, "64": 2}


def main() -> None:
    """Say it of each file; exit with status 2 without one, with 1 for a file that is missing or holds no loads."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity.trips", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.sass", help="what nvdisasm prints of a kernel")
    for name in parser.parse_args().files:
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
    """Time until the last instruction can go out, in trips to memory.

    Parameters
    ----------
    code : str
        Straight code: a jump is taken for an instruction that does nothing.
    near : float
        What a load of fewer than 128 bits takes, in trips.

    Returns
    -------
    trips : float
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


if __name__ == "__main__":
    main()
