"""Decides whether one run is a permutation of one grid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import njit

from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.lower import Program
from swizzle_sim.swizzle.machine import MAX_STEPS_PER_PID, Fault, OutOfRange, Run, run
from swizzle_sim.swizzle.verdict import Counterexample

_FAULT_TEXT = {
    "overflow": "a value leaves the signed 32-bit range",
    "division-by-zero": "a division or remainder by zero",
    "signed-division": "// or % of operands with opposite signs, where Python rounds down and a GPU towards zero",
    "shift": "a shift by less than 0 or more than 31 bits",
    "step-limit": f"more than {MAX_STEPS_PER_PID} steps in one workgroup: shorten the loops",
}


def permutation_of(
    program: Program,
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int] | None = None,
    max_steps: int | None = None,
) -> tuple[Run, Counterexample | None]:
    """Evaluate a program on a grid and say what keeps it from being a permutation, if anything.

    Raises
    ------
    LanguageError
        With code ``name`` if the grid or the kernel lacks a name that the candidate uses, ``limit`` if the run was cut.
    """
    result = run(program, grid, num_xcds, sizes, max_steps)
    where = f"(grid {grid}, {num_xcds} XCD{'s' * (num_xcds != 1)})"
    if result.fault:
        return result, _of_fault(result.fault, where)
    owner = np.full(grid.num_pids, -1, np.int32)
    distinct, clash = _census(result.ids, owner)
    if distinct == grid.num_pids:
        return result, None
    missing = owner < 0
    gaps = f"{_missing_text(missing)} computed by nobody {where}; {distinct} of {grid.num_pids} tiles are computed"
    first_missing = int(np.argmax(missing))
    if result.out_of_range:
        return result, _of_range(result.out_of_range, gaps, first_missing, distinct)
    tile = int(result.ids[clash])
    message = f"pid {clash} and pid {owner[tile]} both compute tile {tile}; {gaps}"
    return result, Counterexample("collision", message, (clash, int(owner[tile])), tile, first_missing, distinct)


def _of_fault(fault: Fault, where: str) -> Counterexample:
    message = f"pid {fault.pid}, line {fault.line}: {_FAULT_TEXT[fault.code]} {where}"
    return Counterexample(fault.code, message, (fault.pid,), line=fault.line)


def _of_range(lost: OutOfRange, gaps: str, missing: int, distinct: int) -> Counterexample:
    message = f"pid {lost.pid} computes {lost.name} = {lost.value}, outside 0..{lost.extent - 1}; {gaps}"
    return Counterexample("out-of-range", message, (lost.pid,), None, missing, distinct)


def _missing_text(missing: np.ndarray) -> str:
    """Name the first run of missing tiles and count the others."""
    first = int(np.argmax(missing))
    after = missing[first:]
    length = len(after) if after.all() else int(np.argmin(after))
    others = int(missing.sum()) - length
    named = f"tiles {first}..{first + length - 1}" if length > 1 else f"tile {first}"
    if others:
        return f"{named} and {others} others are"
    return f"{named} are" if length > 1 else f"{named} is"


@njit(cache=True, nogil=True)
def _census(ids, owner):
    """Count distinct tiles, and find the first workgroup whose tile is taken.

    ids   : (n,) int64, tile of each workgroup, -1 where out of range
    owner : (n,) int32, -1s; output: first workgroup of each tile
    """
    distinct, clash = 0, -1
    for pid in range(ids.size):
        tile = ids[pid]
        if tile < 0:
            continue
        if owner[tile] < 0:
            owner[tile] = pid
            distinct += 1
        elif clash < 0:
            clash = pid
    return distinct, clash
