"""Guard of the emitted helper: the domain on which the swizzle was tested, as a condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from swizzle_sim.language.fold import folded
from swizzle_sim.language.grid import Grid, bind, result_digits
from swizzle_sim.language.ir import COUNTS, Form
from swizzle_sim.language.lattice import unconditional
from swizzle_sim.language.lower import compile_form
from swizzle_sim.language.parse import parse_condition
from swizzle_sim.language.swizzle import Swizzle, verify
from swizzle_sim.language.variables import XCDS
from swizzle_sim.language.verdict import NOWHERE, THIS_GRID_ONLY, UNNAMED, Verdict
from swizzle_sim.rewrite.normal import HANDED, at_launch, normal_form
from xcd_model.errors import NotBijective, RewriteError

# `Emission`: how a swizzle is spelled in a kernel, in a form for every size or folded to a launch.

ELSEWHERE = ("any", "general", "launch-order")


@dataclass(frozen=True)
class Emission:
    """One spelling."""

    # whether counts and sizes are constants of the launch, behind a condition that this is the launch
    folded: bool = False
    # what a folded form does at other sizes: ``"general"``, the swizzle's general form, or ``"launch-order"``
    elsewhere: str = "general"
    # whether (pid_m, pid_n) are handed over where the kernel would take them out of a program id again
    handed: bool = False

    @property
    def name(self) -> str:
        """As `RemapPrice.emission` has it; `named` reads it."""
        first = f"this launch, else {self.elsewhere.replace('-', ' ')}" if self.folded else "general"
        return f"{first}; pid_m, pid_n" if self.handed else first


GENERAL = Emission()
ALL = (
    Emission(folded=True),
    Emission(folded=True, elsewhere="launch-order"),
    GENERAL,
    Emission(folded=True, handed=True),
    Emission(folded=True, elsewhere="launch-order", handed=True),
    Emission(handed=True),
)
FOR_ALL_SIZES = tuple(one for one in ALL if not one.folded)


def emissions(elsewhere: str = "any") -> tuple[Emission, ...]:
    """Spellings to try, preferred ones first."""
    if elsewhere not in ELSEWHERE:
        raise RewriteError(f"elsewhere = {elsewhere!r}: one of {', '.join(ELSEWHERE)}")
    return tuple(one for one in ALL if elsewhere in ("any", one.elsewhere))


def named(name: str) -> Emission:
    """Spelling of a name."""
    for one in ALL:
        if one.name == name:
            return one
    raise RewriteError(f"no emission is called {name!r}; there is: {' / '.join(one.name for one in ALL)}")


@dataclass(frozen=True)
class Guarded:
    """A swizzle in normal form that falls back to launch order wherever the swizzle was not found to hold."""

    swizzle: Swizzle  # normal form, guard included, as a swizzle of its own
    # the guard in the closed language; empty where the swizzle is a bijection on every grid tested. Of a folded form,
    # the launch that it is folded to.
    condition: str
    verdict: Verdict  # of the swizzle as it was given
    grid: Grid  # the target grid, on which the swizzle is a bijection
    num_xcds: int
    emission: Emission = GENERAL  # how it is spelled

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
    emission: Emission = GENERAL,
) -> Guarded:
    """Put a swizzle into normal form behind the weakest guard that passes every grid tested, ``lattice`` among them."""
    others = None if lattice is None else list(lattice)
    verdict = verify(swizzle, grid, num_xcds, sizes, others)
    if not verdict.bijective:
        assert verdict.counterexample is not None
        raise NotBijective(f"not rewritten: {verdict.counterexample.message}")
    if emission.handed and not (grid.tiles and set(swizzle.form.results) <= set(HANDED)):
        raise RewriteError("pid_m and pid_n can be handed over where the swizzle computes them on one axis of tiles")
    order = swizzle.permutation(grid, num_xcds, sizes)

    def holds(form: Form) -> Swizzle | None:
        safe = Swizzle(swizzle.source, form, compile_form(form), swizzle.name, swizzle.filename)
        again = verify(safe, grid, num_xcds, sizes, others)
        same = again.bijective and again.passed == again.tested
        return safe if same and np.array_equal(safe.permutation(grid, num_xcds, sizes), order) else None

    for condition in _conditions(swizzle.form, grid, num_xcds, sizes, verdict.domain):
        guard = parse_condition(condition) if condition else None
        general = normal_form(swizzle.form, grid, guard, handed=emission.handed)
        if found := holds(general):
            break
    else:
        raise NotBijective(f"not rewritten: no guard keeps {swizzle.name or 'the swizzle'} to the grids where it holds")
    if emission.folded:
        condition = _exactly(swizzle.form, grid, num_xcds, sizes, fewest=True)
        short = folded(normal_form(swizzle.form, grid, handed=emission.handed), grid, num_xcds, sizes)
        elsewhere = general if emission.elsewhere == "general" else None
        found = holds(at_launch(short, elsewhere, grid, parse_condition(condition)))
        if found is None:  # would be a defect of the folding, never of a swizzle
            raise RewriteError(f"{swizzle.name or 'the swizzle'} folded to {grid} is another order: please report this")
    return Guarded(found, condition, verdict, grid, num_xcds, emission)


def _conditions(form: Form, grid: Grid, num_xcds: int, sizes: Mapping[str, int], domain: str) -> list[str]:
    """Guards to try, weakest first."""
    found = []
    if unconditional(domain):
        found.append("")
    elif domain not in (THIS_GRID_ONLY, NOWHERE, UNNAMED):
        found.append(domain)
    return [*found, _exactly(form, grid, num_xcds, sizes)]


def _exactly(form: Form, grid: Grid, num_xcds: int, sizes: Mapping[str, int], *, fewest: bool = False) -> str:
    """Return the condition that all that decides the permutation is as at the target grid.

    With ``fewest`` it leaves out what follows from the rest: rows of tiles, from tiles and columns.
    """
    reads = {name for name in form.inputs if name in COUNTS or name in sizes} - set(XCDS)
    results = result_digits(form.results, grid)
    names = {*results[0], *results[1]}
    reads |= {f"num_{name}" for name in names if name.startswith("pid_")}
    reads |= {"num_pids"} if len(grid.launch) == 1 else {f"num_pid_{axis}" for axis in "xyz"[: len(grid.launch)]}
    reads |= {"num_xcds"} if set(form.inputs) & set(XCDS) else set()
    values = bind(sorted(reads), grid, num_xcds, sizes).constants
    if len(grid.launch) > 1:  # there, m and n are names of x and y
        values = {name: value for name, value in values.items() if name not in ("num_pid_m", "num_pid_n")}
    if fewest and {"num_pids", "num_pid_n"} <= values.keys():
        values.pop("num_pid_m", None)
    return " and ".join(f"{name} == {value}" for name, value in values.items())
