"""Guard of the emitted helper: the domain on which the swizzle was tested, as a condition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from swizzle_sim.rewrite.normal import XCDS, normal_form
from swizzle_sim.swizzle.grid import Grid, bind, result_digits
from swizzle_sim.swizzle.ir import COUNTS, Form
from swizzle_sim.swizzle.lower import compile_form
from swizzle_sim.swizzle.parse import parse_condition
from swizzle_sim.swizzle.swizzle import Swizzle, verify
from swizzle_sim.swizzle.verdict import NOWHERE, THIS_GRID_ONLY, UNNAMED, Verdict, unconditional
from xcd_model.errors import NotBijective

_POWERS = (
    (re.compile(r"(\w+) and (\w+) powers of two"), r"\1 a power of two and \2 a power of two"),
    (re.compile(r"(\w+) a power of four"), r"\1 a power of two and (\1 & 1431655765) != 0"),
    (re.compile(r"(\w+) a power of two"), r"(\1 & (\1 - 1)) == 0"),
)


@dataclass(frozen=True)
class Guarded:
    """A swizzle in normal form that falls back to launch order wherever the swizzle was not found to hold.

    Parameters
    ----------
    swizzle : Swizzle
        Normal form, guard included, as a swizzle of its own.
    condition : str
        The guard in the closed language; empty where the swizzle is a bijection on every grid tested.
    verdict : Verdict
        Of the swizzle as it was given.
    grid : Grid
        The target grid, on which the swizzle is a bijection.
    num_xcds : int
    """

    swizzle: Swizzle
    condition: str
    verdict: Verdict
    grid: Grid
    num_xcds: int

    @property
    def form(self) -> Form:
        """What is emitted."""
        return self.swizzle.form


def guarded(
    swizzle: Swizzle,
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int],
    lattice: Iterable[tuple[Grid, Mapping[str, int] | None]] | None = None,
) -> Guarded:
    """Put a swizzle into normal form behind the weakest guard that passes every grid tested.

    Parameters
    ----------
    swizzle : Swizzle
    grid : Grid
        The target grid.
    num_xcds : int
    sizes : mapping of str to int
        The kernel's sizes.
    lattice : iterable of (Grid, sizes), optional
        Other launches of the same kernel.

    Raises
    ------
    NotBijective
        If it is no permutation of the target grid.
    LanguageError
        If it reads a name that neither the grid nor the kernel has.
    """
    others = None if lattice is None else list(lattice)
    verdict = verify(swizzle, grid, num_xcds, sizes, others)
    if not verdict.bijective:
        assert verdict.counterexample is not None
        raise NotBijective(f"not rewritten: {verdict.counterexample.message}")
    for condition in _conditions(swizzle.form, grid, num_xcds, sizes, verdict.domain):
        form = normal_form(swizzle.form, grid, parse_condition(condition) if condition else None)
        safe = Swizzle(swizzle.source, form, compile_form(form), swizzle.name, swizzle.filename)
        rechecked = verify(safe, grid, num_xcds, sizes, others)
        same = rechecked.bijective and np.array_equal(
            safe.permutation(grid, num_xcds, sizes), swizzle.permutation(grid, num_xcds, sizes)
        )
        if same and rechecked.passed == rechecked.tested:
            return Guarded(safe, condition, verdict, grid, num_xcds)
    raise NotBijective(f"not rewritten: no guard keeps {swizzle.name or 'the swizzle'} to the grids where it holds")


def _conditions(form: Form, grid: Grid, num_xcds: int, sizes: Mapping[str, int], domain: str) -> list[str]:
    """Guards to try, weakest first."""
    found = []
    if unconditional(domain):
        found.append("")
    elif domain not in (THIS_GRID_ONLY, NOWHERE, UNNAMED):
        for pattern, text in _POWERS:
            domain = pattern.sub(text, domain)
        found.append(domain)
    return [*found, _exactly(form, grid, num_xcds, sizes)]


def _exactly(form: Form, grid: Grid, num_xcds: int, sizes: Mapping[str, int]) -> str:
    """Return the condition that all that decides the permutation is as at the target grid."""
    reads = {name for name in form.inputs if name in COUNTS or name in sizes} - set(XCDS)
    results = result_digits(form.results, grid)
    names = {*results[0], *results[1]}
    reads |= {f"num_{name}" for name in names if name.startswith("pid_")}
    reads |= {"num_pids"} if len(grid.launch) == 1 else {f"num_pid_{axis}" for axis in "xyz"[: len(grid.launch)]}
    reads |= {"num_xcds"} if set(form.inputs) & set(XCDS) else set()
    values = bind(sorted(reads), grid, num_xcds, sizes).constants
    if len(grid.launch) > 1:  # there, m and n are names of x and y
        values = {name: value for name, value in values.items() if name not in ("num_pid_m", "num_pid_n")}
    return " and ".join(f"{name} == {value}" for name, value in values.items())
