"""Result of a verification: a `Verdict` and its `Counterexample`, and the three words for what is known.

*proved*: on every launch of the domain that is named; *refuted*: a counter-example is shown; *tested*: on so many
launches, the largest of so many workgroups, and nothing is known of others.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.language.rules import MAX_STEPS, MAX_STEPS_PER_PID, MEAN_STEPS_PER_PID

PROVED, TESTED, REFUTED = "proved", "tested", "refuted"
EVERY_GRID = "every grid"  # proved; what is only tested holds on
EVERY_GRID_TRIED = "every grid tried"
THIS_GRID_ONLY = "this grid only"
NOWHERE = "nowhere"
UNNAMED = "no simple condition"
# Faults, in the order of the numbers that the compiled code writes. The words are stable.
FAULTS = ("", "overflow", "division-by-zero", "signed-division", "shift", "step-limit")
FAULT_TEXT = {
    "overflow": "a value leaves the signed 32-bit range",
    "division-by-zero": "a division or remainder by zero",
    "signed-division": "// or % of operands with opposite signs, where Python rounds down and a GPU towards zero",
    "shift": "a shift by less than 0 or more than 31 bits",
    "step-limit": f"more than {MAX_STEPS_PER_PID} steps in one workgroup: shorten the loops",
}


@dataclass(frozen=True)
class Fault:
    """Why a run stopped: a code of `FAULTS`, the workgroup and the line of the text."""

    code: str
    pid: int
    line: int


@dataclass(frozen=True)
class OutOfRange:
    """The first workgroup whose result lies outside the grid."""

    pid: int
    name: str
    value: int
    extent: int


@dataclass(frozen=True, eq=False)
class Execution:
    """Result of one run of a program over a grid."""

    # (num_pids,) int64 array: logical tile of each workgroup, -1 where a coordinate is out of range; undefined from a
    # fault on
    ids: np.ndarray
    fault: Fault | None
    out_of_range: OutOfRange | None
    steps: int  # instructions executed


@dataclass(frozen=True)
class Counterexample:
    """Why a candidate is not a permutation of one grid."""

    # one of ``collision``, ``out-of-range``, ``overflow``, ``division-by-zero``, ``signed-division``, ``shift``,
    # ``step-limit`` and ``deadlock``, a permutation that hands out a tile before one that it waits for; stable
    code: str
    message: str  # A sentence with the grid and the XCDs in it
    pids: tuple[int, ...]  # the hardware ids at fault: two that collide, or the one that fails
    tile: int | None = None  # the logical tile that both compute
    missing: int | None = None  # the first tile that no workgroup computes
    distinct_tiles: int = 0  # tiles that are computed; 0 if evaluation stopped
    line: int = 0  # line of the text at fault; 0 if none


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate is a bijection, and where.

    Parameters
    ----------
    bijective : bool
        At the target grid, and an order in which no program may wait for ever. Decided by trying every workgroup, but
        for ``sampled``.
    domain : str
        ``every grid`` (proved), ``every grid tried``, a condition such as ``num_pids % num_xcds == 0`` that is
        sufficient (if ``status`` is proved; on every grid tried if it is tested), ``this grid only``, ``nowhere``, or
        ``no simple condition`` where other grids passed and no condition known to `lattice` separates them. If
        ``complete`` is false it is never ``every grid tried`` nor a condition that was tested: ``this grid only`` if
        bijective here, otherwise ``nowhere`` (none tried passed) or ``no simple condition``.
    counterexample : Counterexample or None
        Of the target grid.
    distinct_tiles : int
        Tiles of the target grid that are computed.
    n_workgroups : int
        Of the target grid.
    tested, passed : int
        Grids times XCD counts, the target included.
    lattice_counterexample : Counterexample or None
        Of the first other grid that fails.
    complete : bool
        Whether every other grid was tried. False if the step budget of the lattice was exhausted; the grid on which
        that happened is not in ``tested``.
    status : {"proved", "tested", "refuted"}
        ``refuted`` if it is no bijection of the target grid. Otherwise what ``domain`` rests on: a proof for every
        launch of it, or the launches tried. The target grid itself is proved in both cases: all of it was tried.
    largest : int
        Workgroups of the largest launch tried.
    covers : str
        Sizes for which the proof holds, where there is one: beyond them a value may leave 32 bits.
    sampled : bool
        Whether a sample of the target grid's workgroups was tried, and no proof speaks of all.
    """

    bijective: bool
    domain: str
    counterexample: Counterexample | None
    distinct_tiles: int
    n_workgroups: int
    tested: int
    passed: int
    lattice_counterexample: Counterexample | None = None
    complete: bool = True
    status: str = TESTED
    largest: int = 0
    covers: str = ""
    sampled: bool = False

    def as_dict(self) -> dict:
        """Return plain data for JSON; the keys are stable, and ``sampled`` is there where it is true."""
        return {key: value for key, value in asdict(self).items() if key != "sampled" or value}


def gap_of(
    ids: np.ndarray, owner: np.ndarray, clash: int, out_of_range: OutOfRange | None, grid: Grid, num_xcds: int
) -> Counterexample:
    """Reason why tiles are not a permutation of a grid.

    ids : (num_pids,) int64, tile of each workgroup, -1 out of range; owner : (num_pids,) int32, its first, -1 for none
    """
    missing = owner < 0
    distinct = int(grid.num_pids - missing.sum())
    gaps = f"{_missing_text(missing)} computed by nobody {where_text(grid, num_xcds)}"
    gaps += f"; {distinct} of {grid.num_pids} tiles are computed"
    first = int(np.argmax(missing))
    if out_of_range:
        lost = out_of_range
        message = f"pid {lost.pid} computes {lost.name} = {lost.value}, outside 0..{lost.extent - 1}; {gaps}"
        return Counterexample("out-of-range", message, (lost.pid,), None, first, distinct)
    tile = int(ids[clash])
    message = f"pid {clash} and pid {owner[tile]} both compute tile {tile}; {gaps}"
    return Counterexample("collision", message, (clash, int(owner[tile])), tile, first, distinct)


def where_text(grid: Grid, num_xcds: int) -> str:
    """Grid and XCD count, as every message names them."""
    return f"(grid {grid}, {num_xcds} XCD{'s' * (num_xcds != 1)})"


def _missing_text(missing: np.ndarray) -> str:
    """First run of missing tiles, and how many others there are."""
    first = int(np.argmax(missing))
    after = missing[first:]
    length = len(after) if after.all() else int(np.argmin(after))
    others = int(missing.sum()) - length
    named = f"tiles {first}..{first + length - 1}" if length > 1 else f"tile {first}"
    if others:
        return f"{named} and {others} others are"
    return f"{named} are" if length > 1 else f"{named} is"


@dataclass
class Budget:
    """Steps left for judging one candidate: reading it, compiling it, and running it on every launch that is tried."""

    left: int = MAX_STEPS  # whoever works on the candidate takes from it

    @classmethod
    def at(cls, num_pids: int) -> Budget:
        """Budget of a candidate at a grid."""
        return cls(max(MAX_STEPS, MEAN_STEPS_PER_PID * num_pids))

    def part(self, most: int) -> Budget:
        """Budget of a part of the work: at most what is left."""
        return Budget(min(most, self.left))
