"""A plain Python function as a candidate: called for every workgroup, on whole arrays where it takes them.

It is the caller's own code and runs as such. Python's integers have no width and ``//`` rounds down, so a value that a
32-bit GPU integer would not hold, or a ``//`` of operands with opposite signs, passes here and is found only in a text
of the language or a Triton function.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from swizzle_sim.language.grid import Grid, bind
from swizzle_sim.language.ir import AXES, COORDINATES, GRID_NAMES, Form
from swizzle_sim.language.verdict import Budget, Counterexample, OutOfRange, where_text
from swizzle_sim.language.vm import counterexample_of
from swizzle_sim.testing.called import Died
from swizzle_sim.testing.expression import refuse_more, value_of
from xcd_model.errors import LanguageError, UnknownName

GRID = "grid"  # a parameter of this name gets the launch, a tuple of sides
_ONE_BY_ONE = 256  # workgroups up to which each is called for: exact, and fast enough
_PROBES = 9  # workgroups at which a whole-array answer is compared with single calls


class FunctionCandidate:
    """A function whose parameters are named after what they get."""

    most_workgroups = 150_000  # it may be called for each
    counted: tuple[str, Form] | None = None
    names: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    strides: tuple[str, ...] = ()
    tiles: tuple[str, ...] = ()

    def __init__(self, function: Callable[..., Any], sizes: Mapping[str, int | str], name: str = ""):
        self.function, self.sizes = function, dict[str, Any](sizes)
        self.name = name or getattr(function, "__name__", type(function).__name__)
        named = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        parameters = [one for one in inspect.signature(function).parameters.values() if one.kind not in named]
        wanted = [one for one in parameters if one.default is one.empty or one.name in {*GRID_NAMES, GRID, *self.sizes}]
        names = [one.name for one in wanted]
        for given in self.sizes:
            if given not in names:
                raise UnknownName(f"parameter of {self.name}", given, [one.name for one in parameters])
        self._positional = [one.name for one in wanted if one.kind is one.POSITIONAL_ONLY]
        self.reads = tuple(names)
        self._arrays = True
        aliases = {value for value in self.sizes.values() if isinstance(value, str) and value in GRID_NAMES}
        inputs = {*aliases, *(name for name in names if name != GRID and name not in self.sizes)}
        self.form = Form((), self._results(), tuple(sorted(inputs)))

    def counterexample(
        self, grid: Grid, num_xcds: int, sizes: Mapping[str, int], budget: Budget | None = None
    ) -> Counterexample | None:
        """Counterexample where the function is no permutation of a grid; None if it is one; in no budget."""
        refuse_more(grid)
        values = self._values(grid, num_xcds, sizes)
        answers = self._whole(values, grid) if self._arrays and grid.num_pids > _ONE_BY_ONE else None
        if answers is None:
            answers = []
            for pid in range(grid.num_pids):
                try:
                    answers.append(self._call(_at(values, pid)))
                except Died:
                    raise
                except Exception as error:
                    said = f"pid {pid}: {self.name} raises {type(error).__name__}: {error} {where_text(grid, num_xcds)}"
                    return Counterexample("raised", said, (pid,))
        return _coverage_counterexample(self._columns(answers, grid), grid, num_xcds)

    def _results(self) -> tuple[str, ...]:
        """Coordinates that it answers on the first kind of small grid that it takes."""
        for grid in (Grid((6,), (2, 3)), Grid((2, 3)), Grid((2, 3, 2))):
            try:
                answer = self._call(_at(self._values(grid, 2, {}), 0))
            except Died:
                raise
            except Exception:  # not this kind; if it is no kind, trying it says why
                continue
            names = ["pid", *_axes(grid)]
            return tuple(names[1 : 1 + len(answer)] or names[:1]) if isinstance(answer, tuple) else tuple(names[:1])
        return ("pid",)

    def _values(self, grid: Grid, num_xcds: int, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Arguments: an int, a tuple, or one number a workgroup."""
        pids = np.arange(grid.num_pids, dtype=np.int64)
        own = {**self.sizes, **sizes}
        plain = [name for name in self.reads if name not in own and name != GRID]
        bound = bind(plain, grid, num_xcds, {})
        values: dict[str, Any] = dict(bound.constants)
        digits = dict(bound.digits)
        for name in self.reads:
            given = own.get(name)
            if isinstance(given, str) and given in COORDINATES:
                digits[name] = bind([given], grid, num_xcds).digits[given]
            elif given is not None:
                values[name] = value_of(given, grid, num_xcds, {})
        if GRID in self.reads and GRID not in own:
            values[GRID] = grid.launch
        return values | {name: (pids // digit.stride) % digit.extent for name, digit in digits.items()}

    def _call(self, values: Mapping[str, Any]) -> Any:
        first = [values[name] for name in self._positional]
        return self.function(*first, **{name: values[name] for name in self.reads if name not in self._positional})

    def _whole(self, values: Mapping[str, Any], grid: Grid) -> list | None:
        """Answers by one call on arrays; None where the function does not take them, or answers otherwise."""
        try:
            with np.errstate(all="raise"):
                answer = self._call(values)
            parts = answer if isinstance(answer, tuple) else (answer,)
            columns = [np.broadcast_to(np.asarray(part), (grid.num_pids,)) for part in parts]
            if all(np.issubdtype(column.dtype, np.integer) for column in columns):
                lists = [column.tolist() for column in columns]
                rows = list(zip(*lists, strict=True)) if answer is parts else lists[0]
                probes = np.unique(np.linspace(0, grid.num_pids - 1, _PROBES).astype(int)).tolist()
                if all(self._call(_at(values, pid)) == rows[pid] for pid in probes):
                    return rows
        except Died:
            raise
        except Exception:  # whatever it is, single calls say it better
            pass
        self._arrays = False
        return None

    def _columns(self, answers: list, grid: Grid) -> list[tuple[str, np.ndarray, int, int]]:
        digits = grid.coordinates
        parts = len(answers[0]) if isinstance(answers[0], tuple) else 0
        names = ["pid"] if parts == 0 else _axes(grid)
        if parts and parts != len(names):
            raise LanguageError(
                f"{self.name} answers {parts} coordinates, and a grid of {grid} has {len(names)} ({', '.join(names)})",
                filename=self.name,
                code="result",
            )
        rows = [answer if isinstance(answer, tuple) else (answer,) for answer in answers]
        columns = []
        for k, name in enumerate(names):
            numbers = [self._whole_number(row[k] if k < len(row) else None, pid) for pid, row in enumerate(rows)]
            columns.append((name, np.array(numbers, object), digits[name].stride, digits[name].extent))
        return columns

    def _whole_number(self, value: Any, pid: int) -> int:
        try:
            return operator.index(value)
        except TypeError:
            raise LanguageError(
                f"{self.name} answers {value!r} for pid {pid}: an answer is an integer or a tuple of them",
                filename=self.name,
                code="result",
            ) from None


def _axes(grid: Grid) -> list[str]:
    return ["pid_m", "pid_n"] if grid.tiles else [f"pid_{axis}" for axis in AXES[: len(grid.launch)]]


def _at(values: Mapping[str, Any], pid: int) -> dict[str, Any]:
    return {name: int(value[pid]) if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _coverage_counterexample(
    columns: list[tuple[str, np.ndarray, int, int]], grid: Grid, num_xcds: int
) -> Counterexample | None:
    """Counterexample of answers that are no permutation of a grid, in the words of a verdict; None if they are one.

    A column is a coordinate of the answer: name, (num_pids,) int array, stride, extent.
    """
    inside = np.ones(grid.num_pids, bool)
    for _, values, _, extent in columns:
        inside &= (values >= 0) & (values < extent)
    tiles = np.zeros(grid.num_pids, np.int64)
    for _, values, stride, _ in columns:
        tiles += np.where(inside, values, 0).astype(np.int64) * stride
    out_of_range = None
    if not inside.all():
        pid = int(np.argmin(inside))
        name, values, _, extent = next(one for one in columns if not 0 <= one[1][pid] < one[3])
        out_of_range = OutOfRange(pid, name, values[pid], extent)
    return counterexample_of(np.where(inside, tiles, -1), out_of_range, grid, num_xcds)
