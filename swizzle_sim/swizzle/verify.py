"""Exhaustive proof, or disproof, that a candidate is a bijection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from swizzle_sim.swizzle.domain import Trial, name_domain
from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.lattice import XCD_COUNTS, lattice_like
from swizzle_sim.swizzle.names import GRID_NAMES
from swizzle_sim.swizzle.permute import permutation_of
from swizzle_sim.swizzle.verdict import Counterexample, Verdict
from xcd_model.errors import LanguageError

if TYPE_CHECKING:
    from swizzle_sim.swizzle.swizzle import Swizzle

_LATTICE_STEPS = 100_000_000  # of all other grids together: well under a second
Point = tuple[Grid, Mapping[str, int] | None]


def verify(
    swizzle: Swizzle,
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int] | None = None,
    lattice: Iterable[Point] | None = None,
) -> Verdict:
    """Try every workgroup of the grid in hand, and of a lattice of other grids and XCD counts.

    Parameters
    ----------
    swizzle : Swizzle
    grid : Grid
        The grid in hand; it alone decides ``bijective``.
    num_xcds : int
    sizes : mapping of str to int, optional
        The kernel's size names at the grid in hand.
    lattice : iterable of (Grid, sizes), optional
        Other launches of the same kernel; each is tried with 1, 2, 3, 4, 6, 8 and ``num_xcds`` XCDs. By default
        small grids of the same kind; a candidate that reads kernel sizes is then tried on the grid in hand only, as
        those sizes belong to it.

    Returns
    -------
    Verdict

    Raises
    ------
    LanguageError
        With code ``name`` if a grid or the kernel lacks a name that the candidate uses, ``limit`` if the grid in hand
        is too large to decide for this many steps.
    """
    try:
        counterexample = permutation_of(swizzle.program, grid, num_xcds, sizes)[1]
    except LanguageError as error:
        raise error.placed(swizzle.filename, swizzle.source) from None
    trials = [Trial(grid, num_xcds, counterexample is None)]
    first_failing: Counterexample | None = None
    complete = counterexample is None or counterexample.code != "step-limit"
    if complete:  # what is too slow here is too slow anywhere: no lattice
        others, first_failing, complete = _try_lattice(swizzle, grid, num_xcds, _points(swizzle, grid, sizes, lattice))
        trials += others
    distinct = grid.num_pids if counterexample is None else counterexample.distinct_tiles
    return Verdict(
        bijective=counterexample is None,
        domain=name_domain(trials, swizzle.form, complete),
        counterexample=counterexample,
        distinct_tiles=distinct,
        n_workgroups=grid.num_pids,
        tested=len(trials),
        passed=sum(trial.passed for trial in trials),
        lattice_counterexample=first_failing,
        complete=complete,
    )


def _try_lattice(
    swizzle: Swizzle, grid: Grid, num_xcds: int, points: Iterable[Point]
) -> tuple[list[Trial], Counterexample | None, bool]:
    """Try other launches with each XCD count; returns trials, first counter-example and whether all were tried."""
    trials: list[Trial] = []
    first_failing: Counterexample | None = None
    asks = any(name.lower() == "num_xcds" for name in swizzle.form.inputs)
    steps = _LATTICE_STEPS
    for other, sizes in points:
        here: list[Trial] = []  # a grid counts only with all its XCD counts: some of them alone would mislead
        failure, failures = None, []
        for rank, xcds in enumerate(sorted({*XCD_COUNTS, num_xcds})):
            if asks or rank == 0:  # a candidate that never asks how many XCDs there are is the same for all counts
                try:
                    run, failure = permutation_of(swizzle.program, other, xcds, sizes, steps)
                except LanguageError as error:
                    if error.code != "limit":
                        raise
                    return trials, first_failing, False
                steps -= run.steps
            if (other, xcds) != (grid, num_xcds):
                here.append(Trial(other, xcds, failure is None))
                failures += [failure] if failure else []
        trials += here
        first_failing = first_failing or next(iter(failures), None)
    return trials, first_failing, True


def _points(
    swizzle: Swizzle,
    grid: Grid,
    sizes: Mapping[str, int] | None,
    lattice: Iterable[Point] | None,
) -> Iterable[Point]:
    """Return other launches to try; sizes belong to the grid in hand, so a sized candidate has no default others."""
    if lattice is not None:
        return lattice
    if any(name not in GRID_NAMES for name in swizzle.form.inputs):
        return [(grid, sizes)]
    return [(other, None) for other in lattice_like(grid)]
