"""Candidates of a check: a text, a family, a file, a Triton or a Python function, each tried on grids alike."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from swizzle_sim.language.families import family, is_spec
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.ir import Form
from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.language.verdict import Budget, Counterexample, where_text
from swizzle_sim.language.vm import counterexample_at, run
from swizzle_sim.testing.called import Called
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.expression import names_of, value_of
from swizzle_sim.testing.files import TEXTS, Target, is_there, targets_of
from swizzle_sim.testing.function import FunctionCandidate
from swizzle_sim.testing.grids_to_try import Point
from swizzle_sim.testing.guesses import CONDITION, as_comment, guess, is_chunk
from swizzle_sim.testing.padded import padded_counterexample
from swizzle_sim.triton_source.mapped_text import MappedText
from swizzle_sim.triton_source.places import OTHER
from swizzle_sim.triton_source.prologue import Prologue, names_in, read_prologue
from xcd_model.errors import LanguageError, OptionError, UnknownName


class Candidate(Protocol):
    """A swizzle that can be tried."""

    most_workgroups: int  # that are tried, all launches together, where nobody says which launches
    # launch in a kernel's sizes, and the form in the grid's counts of tiles that these give
    counted: tuple[str, Form] | None
    name: str
    names: tuple[str, ...]  # that hold the tile in a file
    strides: tuple[str, ...]  # arguments that have to keep tiles apart in memory
    assumed: tuple[str, ...]  # what is supposed
    tiles: tuple[str, ...]  # what its coordinates count up to, where workgroups without a tile return at once
    sizes: dict[str, Any]
    reads: tuple[str, ...]  # names that it takes a value from
    form: Form  # inputs and results at least

    def counterexample(
        self, grid: Grid, num_xcds: int, sizes: Mapping[str, int], budget: Budget | None = None
    ) -> Counterexample | None:
        """Counterexample where it is no permutation of a grid; None if it is one."""
        ...


class TextCandidate:
    """A text of the language, with values for the names that the grid does not give."""

    most_workgroups = 5_000_000  # about a second of the virtual machine

    def __init__(
        self,
        text: MappedText,
        sizes: Mapping[str, int | str],
        also: Iterable[str] = (),
        prologue: Prologue | None = None,
    ):
        self.name = text.name
        self.plain = self._parse(text)
        self._refuse_unread(sizes, (*self.plain.form.inputs, *also))
        self.text = text.with_values(sizes)
        self.swizzle = self._parse(self.text) if self.text is not text else self.plain
        self.sizes = {name: int(value) for name, value in sizes.items() if not isinstance(value, str)}
        self.form = self.swizzle.form
        self.reads = self.form.inputs
        self.assumed, self.strides = (prologue.assumed, prologue.strides) if prologue else ((), ())
        self.names = text.answers
        in_c = not text.filename.endswith((".py", *TEXTS))
        self._unmodelled = (
            () if prologue is None else (*_OF_C,) if in_c else ("signed-division", *("overflow",) * prologue.is_wide)
        )
        self.counted: tuple[str, Form] | None = None
        if prologue and prologue.counted:
            self.counted = prologue.launch, self._parse(prologue.counted.with_values(sizes)).form
        self._surplus = self._parse(prologue.surplus.with_values(sizes)) if prologue and prologue.surplus else None
        self._loop = prologue.loop if prologue else ""
        self.tiles = prologue.extents if prologue and prologue.surplus else ()
        self._given, self._place = sizes, prologue.place if prologue else None

    @classmethod
    def of(cls, swizzle: Swizzle) -> TextCandidate:
        """A swizzle that has been read."""
        return cls(MappedText(swizzle.source, swizzle.name or "the swizzle", swizzle.filename), {})

    def _parse(self, text: MappedText) -> Swizzle:
        try:
            return Swizzle.parse(text.text, text.name, text.filename)
        except LanguageError as error:
            raise text.placed(error) from None

    def _refuse_unread(self, sizes: Iterable[str], known: tuple[str, ...]) -> None:
        for name in sizes:
            if name not in known:
                raise UnknownName(f"name read by {self.name}", name, {one for one in known if one.isidentifier()})

    def counterexample(
        self, grid: Grid, num_xcds: int, sizes: Mapping[str, int], budget: Budget | None = None
    ) -> Counterexample | None:
        """Counterexample where the text is no permutation of a grid; None if it is one."""
        values = {**self.sizes, **sizes}
        try:
            if self.tiles and self._surplus:
                pair = (self.swizzle, self._surplus)
                return padded_counterexample(*pair, self.tiles, grid, num_xcds, values, budget)
            found = counterexample_at(self.swizzle.program, grid, num_xcds, values, budget)
        except LanguageError as error:
            raise self.text.placed(error) from None
        if found and self._surplus and found.code == "out-of-range":
            found = self._stores_nothing(found, self._surplus, grid, num_xcds, values)
        if found is None or not self.text.lines or not found.line:
            return found
        line = self.text.line(found.line)
        if found.code in self._unmodelled:
            said = _OF_C[found.code]
            raise LanguageError(said, filename=self.text.filename, line=line, column=1, code="unsigned")
        return replace(found, line=line, message=found.message.replace(f"line {found.line}:", f"line {line}:", 1))

    def stored_twice(self, points: Iterable[Point]) -> str:
        """Launch in which two workgroups store the same items, in words; empty where none is seen."""
        few = [one for one in points if one.grid.num_pids <= _FEW] if self._place else []
        for at in sorted(few, key=lambda one: one.rank):
            alike = set.intersection(*(self._alike(at, draw) for draw in range(6)))
            if alike and self._place:
                first, second = (k % at.grid.num_pids for k in min(alike))
                also = f" and pid {second}" if first != second else ", with two ids of another axis,"
                where = where_text(at.grid, at.num_xcds)
                return f"line {self._place.lines[-1]} stores the same items in pid {first}{also} {where}"
        return ""

    def _alike(self, at: Point, draw: int) -> set[tuple[int, int]]:
        """Pairs of workgroups that store to one place; those with a second id of another axis are counted behind."""
        assert self._place is not None
        own = {name: value_of(one, at.grid, at.num_xcds, {}) for name, one in self._given.items()}
        counts = {**at.grid.counts, "num_xcds": at.num_xcds, "NUM_XCDS": at.num_xcds, **own}
        known = {**{f"of_{name}": one for name, one in counts.items()}, **own, **at.sizes}
        ids: list[int] = []
        with contextlib.suppress(LanguageError):  # it is not plain enough to be worked out
            form = Swizzle.parse(self._place.text)
            free = sorted({*form.form.inputs} - known.keys())
            drawn = dict(zip(free, random.Random(draw).choices(range(11, 99), k=len(free)), strict=True))
            for other in range(1 + (OTHER in free)):
                sizes = {**drawn, **known, OTHER: other}
                found = run(form.program, _LINE, 1, sizes, None, range(at.grid.num_pids))
                ids += [] if found.fault or found.out_of_range else found.ids.tolist()
        return {(ids.index(one), k) for k, one in enumerate(ids) if ids.index(one) < k}

    def _stores_nothing(
        self, found: Counterexample, surplus: Swizzle, grid: Grid, num_xcds: int, values: Mapping[str, int]
    ) -> Counterexample:
        """A counterexample in other words, where its workgroup returns before its store, or an ``if`` is around it."""
        without = run(surplus.program, grid, num_xcds, values)
        if without.ids[found.pids[0]] == 0:
            return found
        if without.out_of_range and without.out_of_range.value < 0:
            said = f"{self._loop}, which is not {grid.num_pids} {where_text(grid, num_xcds)}"
            return replace(found, message=said)
        said = re.sub(r"computes \w+ = -1, outside 0\.\.\d+", "stores no tile", found.message)
        return replace(found, message=said)


_FEW = 40  # workgroups of a launch in which stores are compared
_LINE = Grid((2**31 - 1,))  # in which a number is a tile
_ASSIGNED = re.compile(r"^(\w+) = (\d+)$", re.MULTILINE)
# Faults of the language that are none of C: what C computes there, the language does not say.
_OF_C = {
    "shift": "an unsigned value would be negative here, or a shift is by less than 0 or more than 31: not modelled",
    "overflow": "a value leaves 32 bits here: not modelled",
    "signed-division": "a division of a negative value: not modelled",
    "division-by-zero": "a division by zero: not modelled",
}
Checkable = str | Path | Swizzle | Callable[..., Any]


def as_candidate(
    source: Checkable,
    sizes: Mapping[str, int | str | tuple[int, ...]] | None = None,
    answer: Sequence[str] | str | None = None,
    launch: str = "",
) -> tuple[Candidate, Options]:
    """Read a candidate.

    Parameters
    ----------
    source : str, Path, Swizzle or callable
        A text of the language or a family's spec; a file with a text; ``file.py::function``; a Triton function
        itself, whose file is read; any other Python function, which is called.
    sizes : mapping of str to (int, str or tuple of int), optional
        Values of names that the grid does not give.
    answer : sequence of str, optional
        See `read_prologue`.
    launch : str
        Launch grid as an expression of sizes.

    Returns
    -------
    candidate : Candidate
    options : Options
        The arguments, over what the file's own ``# swizzle-check:`` comments say.

    Raises
    ------
    LanguageError, UnknownName
        If it cannot be read.
    """
    given = Options(sizes=dict(sizes or {}), launch=launch, answer=names_in(answer))
    if not isinstance(source, str | Path | Swizzle):
        triton_function = _triton_function(source)
        if triton_function is None and callable(source):
            return FunctionCandidate(source, given.single), given
        if triton_function is None:
            raise OptionError(f"a candidate is a text, a path, a Swizzle or a function, not {source!r}")
        source = triton_function
    if isinstance(source, Swizzle):
        text = MappedText(source.source, source.name or "the swizzle", source.filename)
        return TextCandidate(text, given.single, names_of(launch)), given
    target = _target(source)
    if target is None:
        return TextCandidate(_text(str(source)), given.single, names_of(launch)), given
    return load(replace(target, options=given.over(target.options), marked=True, is_called=True))


def load(target: Target) -> tuple[Candidate, Options]:
    """Candidate of one target of a file, and its options."""
    options = target.options
    if target.kind == "text":
        text = MappedText(target.text, target.name, str(target.path))
        return TextCandidate(text, options.single, names_of(options.launch)), options
    if target.kind == "function" and target.is_called:
        return FunctionCandidate(Called(target.path, target.function), options.single, target.name), options
    return _load_read(target)


def _load_read(target: Target) -> tuple[Candidate, Options]:
    """Candidate of a function that is read, with guesses where its options leave a name without a value."""
    options = target.options

    def read(given: Iterable[str]) -> Prologue:
        lines = (target.line, target.until)
        return read_prologue(target.path, target.function, options.answer, tuple(given), options.tiles, lines)

    prologue = read(options.sizes)
    guesses = target.likely or target.marked  # of any other function nothing is supposed
    chunks = [name for name in prologue.defaults if is_chunk(name) and name not in options.sizes]
    own: dict[str, int] = {}
    if chunks and guesses:
        own = {name: int(value) for name, value in _ASSIGNED.findall(prologue.text.text) if name in chunks}
        prologue = read((*options.sizes, *chunks))
    options = replace(options, launch=options.launch or prologue.launch, own=own)
    sides = prologue.fixed_grid if guesses and not target.options.launch else ()
    grid = "x".join(map(str, sides * 2 if len(sides) == 1 else sides))
    fixed = f"{target.name}: {prologue.fixed} is a constant of the file, whatever the launch: say it, as grids=32x32"
    if grid and not options.grids:  # the one launch for which the file's constants make it
        options = replace(options, grids=(grid,), launch="", unsure=fixed if len(sides) == 1 else "")
    elif prologue.fixed and not (options.grids or target.options.launch):
        raise OptionError(fixed)
    if prologue.unsure and not target.options.tiles:
        options = replace(options, unsure=f"{target.name}: {prologue.unsure}")
    also = (*prologue.parameters, *prologue.free)
    inputs = TextCandidate(prologue.text, options.single, also).form.inputs
    known = {*options.sizes, *names_of(options.launch)}
    unknown = [one for one in inputs if one not in known] if guesses else []
    undecided = [one for one in unknown if CONDITION.match(one)]
    if undecided:  # right or wrong by a macro that whoever compiles it may give
        lines = [int(one.rpartition("_")[2]) for one in undecided]
        conditions = [f"{''.join(prologue.text.origin[k - 1 : k]).strip()!r} of line {k}" for k in lines]
        given = f"give {'=0 '.join(undecided)}=0, or 1"
        unsure = f"it is wrong on a side of {', '.join(conditions)}, which nothing decides: {given}"
        options = replace(options, unsure=f"{target.name}: {unsure}")
    guessed = guess(unknown, prologue.parameters, takes_id=prologue.takes_id)
    said = " ".join(part for part in (as_comment(guessed), f"grids={grid}" * bool(grid)) if part)
    options = replace(options, sizes={**guessed, **options.sizes}, guessed=said)
    return TextCandidate(prologue.text, options.single, also, prologue), options


def _text(source: str) -> MappedText:
    if "\n" not in source and "=" not in source.partition("(")[0] and is_spec(source):
        return MappedText(family(source), source, f"<{source}>")
    return MappedText(source, "the swizzle", "<candidate>")


def _target(source: Any) -> Target | None:
    """Target that a path or ``path::function`` names; None for a text."""
    path, _, function = str(source).partition("::")
    if isinstance(source, str) and not function and not is_there(path):
        if "\n" not in path and path.endswith((".py", *TEXTS)):
            raise LanguageError("no such file", filename=path, code="file")
        return None
    found = targets_of(Path(path), function)
    if function:
        for one in found:
            if one.function == function:
                return one
        there = ", ".join(one.function for one in targets_of(Path(path)) if one.function) or "none"
        raise LanguageError(f"no function {function} to check; there is {there}", filename=path, code="file")
    chosen = [one for one in found if one.marked] or found
    if len(chosen) != 1:
        there = ", ".join(one.function for one in chosen) or "none"
        raise LanguageError(
            f"say which function, as {path}::function; those with a mark, or @triton.jit, are: {there}",
            filename=path,
            code="file",
        )
    return chosen[0]


def _triton_function(function: Any) -> str | None:
    """``file::name`` of a Triton function, however often it is decorated; None for any other callable."""
    inner = function
    while hasattr(inner, "fn") and type(inner).__module__.startswith("triton."):
        inner = inner.fn
    code = getattr(inner, "__code__", None)
    return None if inner is function or code is None else f"{code.co_filename}::{inner.__name__}"
