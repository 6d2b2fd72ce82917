"""A candidate in the one shape that a kernel can call: coordinates of the launch in, the same coordinates out.

A candidate may read any of the grid's names and answer in several ways. Here it becomes a form that takes ``pid`` and
answers ``pid`` on a one-dimensional launch, and takes and answers ``pid_x, pid_y[, pid_z]`` on others, with only those
counts that a kernel can know. What is added is built of the closed language's own nodes, never of text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial, reduce

from swizzle_sim.language.grid import Grid
from swizzle_sim.language.ir import (
    AXES,
    COORDINATES,
    COUNTS,
    GRID_NAMES,
    Assign,
    Binary,
    Cond,
    Expr,
    Form,
    If,
    Int,
    Name,
    Stmt,
    names_read,
)
from swizzle_sim.language.variables import XCDS, assigned, live_before, used

HANDED = ("pid_m", "pid_n")


def axes_of(grid: Grid) -> tuple[str, ...]:
    """Coordinates that the remapped kernel reads: ``pid``, or one name an axis."""
    return ("pid",) if len(grid.launch) == 1 else tuple(f"pid_{axis}" for axis in AXES[: len(grid.launch)])


def normal_form(form: Form, grid: Grid, guard: Cond | None = None, *, handed: bool = False) -> Form:
    """Rewrite a form to take and answer `axes_of` its grid."""
    terms = _Terms(form, grid, set(names_read(guard)) if guard else set(), handed)
    body = (*terms.coordinates(), *form.body, *terms.answer())
    if guard is not None:
        body = (If(guard, body, _decoded() if handed else ()),)
    return _whole((*terms.counts(), *body), grid, handed, form.inputs)


def at_launch(folded: Form, elsewhere: Form | None, grid: Grid, guard: Cond) -> Form:
    """Form that is one where a condition holds, and elsewhere another: by default what the hardware gave."""
    handed = folded.results == HANDED
    terms = _Terms(Form((), axes_of(grid), ()), grid, set(names_read(guard)), False)
    other = elsewhere.body if elsewhere is not None else _decoded() if handed else ()
    body = (*terms.counts(), If(guard, folded.body, other))
    return _whole(body, grid, handed, (*names_read(guard), *(elsewhere.inputs if elsewhere else ())))


def _whole(body: tuple[Stmt, ...], grid: Grid, handed: bool, inputs: Iterable[str]) -> Form:
    """Form of a body; ``inputs`` are names that a kernel supplies beside the grid's: a loop may make all others."""
    axes = axes_of(grid)
    results = HANDED if handed else axes
    live = live_before(body, results) & {*inputs, *GRID_NAMES}
    return Form(body, results, tuple(sorted(live | set(axes))))


def _decoded() -> tuple[Stmt, ...]:
    """Tile that the hardware's id counts, row by row."""
    pid, columns = Name("pid"), Name("num_pid_n")
    return Assign("pid_m", Binary("//", pid, columns)), Assign("pid_n", Binary("%", pid, columns))


class _Terms:
    """The statements around a candidate's own."""

    def __init__(self, form: Form, grid: Grid, guarded: set[str], handed: bool):
        self.form, self.grid, self.handed = form, grid, handed
        self.flat, self.tiled = len(grid.launch) == 1, grid.tiles is not None
        self.busy = used(form) | COORDINATES | COUNTS | guarded
        self.changed = assigned(form.body)
        self.reads = (set(form.inputs) | guarded) & COUNTS - set(XCDS)
        self.saved: dict[str, str] = {}
        self.own: dict[str, str] = {}

    def counts(self) -> list[Stmt]:
        """Counts under the names that the candidate uses, and copies of those it changes."""
        made: list[Stmt] = []
        meanings = {name: self._count(name) for name in sorted(self.reads)}
        made += [Assign(name, term) for name, term in meanings.items() if term != Name(name)]
        copies: list[Stmt] = [Assign(copy, Name(name)) for name, copy in sorted(self.saved.items())]
        return [*copies, *made]

    def coordinates(self) -> list[Stmt]:
        """Coordinates under the names that the candidate reads, and those that it leaves alone."""
        named = {name: self._coordinate(name) for name in sorted(set(self.form.inputs) & COORDINATES)}
        flat_tiles = self.flat and self.tiled and self.form.results[0] in HANDED
        left_alone = [name for name in HANDED if flat_tiles and name not in self.form.results]
        self.own = {name: self._fresh(f"own_{name}") for name in left_alone}
        made: list[Stmt] = [Assign(own, self._coordinate(name)) for name, own in self.own.items()]
        return made + [Assign(name, term) for name, term in named.items() if name not in axes_of(self.grid)]

    def answer(self) -> list[Stmt]:
        """The launch's own coordinates from those the candidate computed."""
        results = self.form.results
        axes = axes_of(self.grid)
        if self.handed:
            return [Assign(name, Name(self.own[name])) for name in HANDED if name not in results]
        if results[0] == "pid":
            return [] if self.flat else self._split()
        if self.flat and self.tiled and results[0] in HANDED:
            row, col = self._result("pid_m"), self._result("pid_n")
            return [Assign("pid", _sum(_product(row, self._stable("num_pid_n")), col))]
        if self.flat:
            return [Assign("pid", Name(results[0]))]
        return [Assign(axis, Name(name)) for name in results if (axis := axes[_axis(name)]) != name]

    def _split(self) -> list[Stmt]:
        pid, x, y = Name("pid"), self._stable("num_pid_x"), self._stable("num_pid_y")
        if len(self.grid.launch) == 2:
            return [Assign("pid_x", Binary("%", pid, x)), Assign("pid_y", Binary("//", pid, x))]
        return [
            Assign("pid_x", Binary("%", pid, x)),
            Assign("pid_y", Binary("%", Binary("//", pid, x), y)),
            Assign("pid_z", Binary("//", pid, _product(x, y))),
        ]

    def _result(self, name: str) -> Name:
        return Name(name if name in self.form.results else self.own[name])

    def _fresh(self, name: str) -> str:
        while name in self.busy:
            name += "_"
        self.busy.add(name)
        return name

    def _stable(self, name: str) -> Name:
        """Return a count as it was before the candidate's own statements."""
        self.reads.add(name)
        if name not in self.changed:
            return Name(name)
        if name not in self.saved:
            self.saved[name] = self._fresh(f"all_{name}")
        return Name(self.saved[name])

    def _count(self, name: str) -> Expr:
        sides = [f"num_pid_{axis}" for axis in AXES[: len(self.grid.launch)]]
        if self.flat:
            if name in ("num_pid_m", "num_pid_n") and self.tiled:
                return Name(name)
            return Int(1) if name in ("num_programs(1)", "num_programs(2)") else Name("num_pids")
        if name == "num_pids":
            return _product(*map(Name, sides))
        axis = _axis(name)
        return Name(sides[axis]) if axis < len(sides) else Int(1)

    def _coordinate(self, name: str) -> Expr:
        axes = axes_of(self.grid)
        if self.flat:
            if self.tiled and name in ("pid_m", "pid_n"):
                return Binary("//" if name == "pid_m" else "%", Name("pid"), self._stable("num_pid_n"))
            return Int(0) if name in ("program_id(1)", "program_id(2)") else Name("pid")
        if name == "pid":
            x, y = self._stable("num_pid_x"), self._stable("num_pid_y")
            inner: Expr = Name("pid_y")
            if len(axes) == 3:
                inner = _sum(inner, _product(y, Name("pid_z")))
            return _sum(Name("pid_x"), _product(x, inner))
        axis = _axis(name)
        return Name(axes[axis]) if axis < len(axes) else Int(0)


def _axis(name: str) -> int:
    """Axis that a name such as ``pid_y``, ``num_pid_m`` or ``num_programs(2)`` stands for."""
    last = name[-2] if name.endswith(")") else name[-1]
    return {"x": 0, "m": 0, "0": 0, "y": 1, "n": 1, "1": 1, "z": 2, "2": 2}[last]


def _sum(left: Expr, right: Expr) -> Expr:
    return Binary("+", left, right)


def _product(*parts: Expr) -> Expr:
    return reduce(partial(Binary, "*"), parts)


def reads_of(forms: Iterable[str]) -> list[str]:
    """Names that are neither coordinates nor counts: the kernel's own sizes."""
    return [name for name in forms if name not in COORDINATES | COUNTS]
