"""`Swizzle`, a parsed and compiled candidate, and `verify`, the exhaustive proof that it is a bijection."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.text import cut, visible
from swizzle_sim.language.families import FAMILIES, family, is_spec, names_of
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.ir import Form
from swizzle_sim.language.lattice import XCD_COUNTS, Trial, kind_of_grid, lattice_like, name_domain
from swizzle_sim.language.lower import Bytecode, compile_form
from swizzle_sim.language.parse import parse_form
from swizzle_sim.language.rules import LATTICE_STEPS, MOST_TRIED, STEPS_PER_BYTE, STEPS_PER_INSTRUCTION
from swizzle_sim.language.verdict import (
    PROVED,
    REFUTED,
    TESTED,
    THIS_GRID_ONLY,
    Budget,
    Counterexample,
    Execution,
    Verdict,
)
from swizzle_sim.language.vm import Launch, are_permutations, counterexample_at, permutation_of
from xcd_model.errors import LanguageError, NotBijective, UnknownName
from xcd_model.files import read_text

LONGEST_NAME = 40  # of a typed text
Point = tuple[Grid, Mapping[str, int] | None]


@dataclass(frozen=True, eq=False)
class Swizzle:
    """A remapping in the closed language."""

    source: str  # the original text, its typed and its compiled form
    form: Form
    program: Bytecode
    name: str | None = None  # for reports
    filename: str = "<candidate>"  # of the text in errors
    # its latest run: whoever verifies a swizzle wants its permutation next, or the other way round
    _ran: dict[Any, tuple[Execution, Counterexample | None]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def parse(cls, text: str, name: str | None = None, filename: str = "<candidate>") -> Swizzle:
        """Read a text of the language, or the specification of a family, such as ``group_m(size=8)``.

        Opens no file, so a text may be a model's or a page's; `read` takes what a person names. Raises LanguageError
        for a text outside the closed language.
        """
        if is_spec(text) and names_of(text) <= FAMILIES.keys():
            try:
                text, name = family(text), name or text.strip()
            except UnknownName as error:  # of a parameter
                raise LanguageError(str(error), filename=filename, code="parameter") from None
        return cls(text, *_compiled(text, filename), name, filename)

    @classmethod
    def read(cls, given: str | os.PathLike[str] | Swizzle) -> Swizzle:
        """Swizzle that a person names: a file, the specification of a family, or a text of the language.

        Raises LanguageError where the file or its text cannot be read, UnknownName, with the nearest families, for what
        is none of the three.
        """
        if isinstance(given, Swizzle):
            return given
        where = os.fspath(given)
        if not isinstance(given, str) or os.path.isfile(where):  # unlike the path's own, False of a name too long
            return cls.parse(_text_of(Path(where)), Path(where).name, where)
        if is_text(where):
            return cls.parse(where, cut(" ".join(where.split()), LONGEST_NAME), "<typed>")
        if is_spec(where):  # before folders: one called like a family does not hide it
            return cls.parse(family(where), where, f"<{where}>")
        if os.path.exists(where):
            raise LanguageError("not a file", filename=where, code="file")
        if Path(where).suffix or "/" in where:
            raise LanguageError("no such file", filename=where, code="file")
        return cls.parse(family(where), where, f"<{where}>")

    def permutation(self, grid: Grid, num_xcds: int, sizes: Mapping[str, int] | None = None) -> np.ndarray:
        """Return the logical tile of every hardware workgroup.

        Parameters
        ----------
        grid : Grid
        num_xcds : int
        sizes : mapping of str to int, optional
            The kernel's size names.

        Returns
        -------
        tiles : (num_pids,) int64 array

        Raises
        ------
        NotBijective
            If it is no permutation of the grid; the message is the counter-example's.
        LanguageError
            With code ``name`` if the grid or the kernel lacks a name that the candidate uses, ``limit`` if the grid
            is too large for this many steps.
        """
        execution, counterexample = self._run(grid, num_xcds, sizes, self.budget(grid))
        if counterexample:
            raise NotBijective(counterexample.message)
        return execution.ids.copy()

    def budget(self, grid: Grid) -> Budget:
        """Return what reading and compiling it left for verifying it at a grid."""
        whole = Budget.at(grid.num_pids).left
        read = STEPS_PER_BYTE * len(self.source) + STEPS_PER_INSTRUCTION * len(self.program.code)
        return Budget(max(0, whole - read))

    def _run(
        self, grid: Grid, num_xcds: int, sizes: Mapping[str, int] | None, budget: Budget
    ) -> tuple[Execution, Counterexample | None]:
        """Run at the target grid, once where it is asked for again; errors point into the text."""
        key = grid, repr((num_xcds, sizes))  # as it is typed: True is no size and 8.0 no count, 1 and 8 are
        found = self._ran.get(key)
        if found is not None and found[0].steps <= budget.left:
            budget.left -= found[0].steps
            return found
        try:
            found = permutation_of(self.program, grid, num_xcds, sizes, budget)
        except LanguageError as error:
            raise error.placed(visible(self.filename), visible(self.source)) from None
        self._ran.clear()
        self._ran[key] = found
        return found

    def verify(
        self, grid: Grid, num_xcds: int, sizes: Mapping[str, int] | None = None, lattice: Iterable[Point] | None = None
    ) -> Verdict:
        """Prove or disprove that it is a bijection; see the function `verify`."""
        return verify(self, grid, num_xcds, sizes, lattice)


@lru_cache(maxsize=512)  # the same family is read for its order, its verdict and its report
def _compiled(text: str, filename: str) -> tuple[Form, Bytecode]:
    form = parse_form(text, filename)
    return form, compile_form(form)


def is_text(words: str) -> bool:
    """Whether words are a text of the language rather than a family or a file: they assign or compute something."""
    computes = re.search(r"\s(//|%|[*^&|]|<<|>>)\s", words)
    return "\n" in words.strip() or "=" in words.partition("(")[0] or computes is not None


def _text_of(path: Path) -> str:
    try:
        return read_text(path, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise LanguageError(f"not UTF-8 text (byte {error.start})", filename=str(path), code="file") from None
    except FileNotFoundError:
        raise LanguageError("no such file", filename=str(path), code="file") from None
    except OSError as error:
        raise LanguageError(f"cannot be read ({error.strerror})", filename=str(path), code="file") from None


def verify(
    swizzle: Swizzle,
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int] | None = None,
    lattice: Iterable[Point] | None = None,
    *,
    sample: bool = False,
) -> Verdict:
    """Try every workgroup of the target grid, and of a lattice of other grids and XCD counts.

    Parameters
    ----------
    swizzle : Swizzle
    grid : Grid
        The target grid; it alone decides ``bijective``.
    num_xcds : int
    sizes : mapping of str to int, optional
        The kernel's size names at the target grid.
    lattice : iterable of (Grid, sizes), optional
        Other launches of the same kernel; each is tried with 1, 2, 3, 4, 6, 8 and ``num_xcds`` XCDs. By default
        small grids of the same kind; a candidate that reads kernel sizes is then tried on the target grid only, as
        those sizes belong to it.
    sample : bool
        Whether a sample of the workgroups will do where there are more than `MOST_TRIED`.

    Returns
    -------
    Verdict

    Raises
    ------
    LanguageError
        With code ``name`` if a grid or the kernel lacks a name that the candidate uses, ``limit`` if the target
        grid is too large to decide within the budget.
    """
    budget = swizzle.budget(grid)
    sample = sample and grid.num_pids > MOST_TRIED
    if sample:
        counterexample = counterexample_at(swizzle.program, grid, num_xcds, sizes, budget)
    else:
        was_run = bool(swizzle._ran)
        counterexample = swizzle._run(grid, num_xcds, sizes, budget)[1]
        if was_run:  # for a permutation, which the caller has
            swizzle._ran.clear()
    trials = [Trial(grid, num_xcds, counterexample is None)]
    first_failing: Counterexample | None = None
    complete = counterexample is None or counterexample.code != "step-limit"
    if complete:  # a candidate that exceeds the budget here would anywhere
        points = _points(swizzle, grid, sizes, lattice)
        others, first_failing, complete = _try_lattice(swizzle, grid, num_xcds, points, budget.part(LATTICE_STEPS))
        trials += others
    domain = name_domain(trials, swizzle.form, complete)
    distinct = grid.num_pids if counterexample is None else counterexample.distinct_tiles
    return Verdict(
        bijective=counterexample is None,
        domain=domain,
        counterexample=counterexample,
        distinct_tiles=distinct,
        n_workgroups=grid.num_pids,
        tested=len(trials),
        passed=sum(trial.passed for trial in trials),
        lattice_counterexample=first_failing,
        complete=complete,
        status=REFUTED if counterexample else PROVED if domain == THIS_GRID_ONLY and not sample else TESTED,
        largest=max(trial.grid.num_pids for trial in trials),
        sampled=sample,
    )


def _try_lattice(
    swizzle: Swizzle, grid: Grid, num_xcds: int, points: Iterable[Point], budget: Budget
) -> tuple[list[Trial], Counterexample | None, bool]:
    """Try other launches with each XCD count; returns the trials, the first counter-example and whether all ran."""
    points, counts = list(points), sorted({*XCD_COUNTS, num_xcds})
    tried = counts if swizzle.form.reads_num_xcds else counts[:1]  # otherwise the result is the same for all counts
    launches = [(other, xcds, sizes) for other, sizes in points for xcds in tried]
    passed: list[bool] = []
    for _, kind in itertools.groupby(launches, key=lambda launch: kind_of_grid(launch[0])):
        passed += are_permutations(swizzle.program, list(kind), budget)
        if not budget.left:
            break
    whole = len(passed) // len(tried)  # a grid counts only with all its XCD counts: a part of them would mislead
    trials, failing = list[Trial](), list[Launch]()
    for k, (other, _) in enumerate(points[:whole]):
        for rank, xcds in enumerate(counts):
            at = len(tried) * k + rank % len(tried)
            if (other, xcds) != (grid, num_xcds):
                trials.append(Trial(other, xcds, passed[at]))
                failing += [] if passed[at] else [launches[at]]
    why = permutation_of(swizzle.program, *failing[0])[1] if failing else None
    return trials, why, whole == len(points)


def _points(
    swizzle: Swizzle, grid: Grid, sizes: Mapping[str, int] | None, lattice: Iterable[Point] | None
) -> Iterable[Point]:
    """Other launches to try; sizes belong to the target grid, so a candidate that reads them has no default others."""
    if lattice is not None:
        return lattice
    if swizzle.form.reads_sizes:
        return [(grid, sizes)]
    return [(other, None) for other in lattice_like(grid)]
