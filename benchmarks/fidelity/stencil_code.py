"""How many loads the stencils of the H200 table have in flight, from the trips to memory that their code makes.

Each order of the table was compiled on its own, and the code differs: tiles of 8 x 512 make six trips to memory in some
orders and ten in others. ``data/machine/h200_stencil_code.csv`` has what `benchmarks.fidelity.trips` says of the source
of the table, as Triton 3.6.0 compiles it for sm_90, by tile, order and registers;
`benchmarks.fidelity.compile_stencils` writes it again.
"""

from __future__ import annotations

import csv
import math
import re
from functools import cache
from pathlib import Path

TABLE = Path(__file__).parent / "data" / "machine" / "h200_stencil_code.csv"


def in_flight(rows: int, cols: int, order: str, registers: int, *, loads: int, usual: int) -> int:
    """Loads in flight with which ``loads``, one behind the other, make no more trips than the compiled code does.

    Parameters
    ----------
    rows, cols : int
        Of a tile.
    order : str
        As the table names it, such as ``band8grp4``.
    registers : int
        A thread.
    loads : int
        Of one tile.
    usual : int
        The answer for code that the table has not.
    """
    trips = _trips().get((rows, cols, re.sub(r"\d+", "", order), registers))
    return usual if trips is None else math.ceil(loads / trips)


@cache
def _trips() -> dict[tuple[int, int, str, int], float]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            (int(one["rows"]), int(one["cols"]), one["order"], int(one["registers"])): float(one["near_trips"])
            for one in csv.DictReader(file)
        }
