"""The program-id prologue of a ``@triton.jit`` function, read out of its file as a text of the language.

The file is parsed, never imported. The prologue is the backward slice, from the tile's coordinates to
``tl.program_id``, of the statements before the first memory access; functions of the same file that it calls are put
in place. A function that takes the id as a parameter and returns the tile (``remap_xcd(pid, ...)``) is its own
prologue. Whatever else is needed is refused with its line.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from swizzle_sim.swizzle.ir import GRID_NAMES
from swizzle_sim.triton_source.canonical import Canonical, canonical_functions
from swizzle_sim.triton_source.definitions import assigned_once
from swizzle_sim.triton_source.inlining import Inliner, assign, loaded, slice_of, stored
from swizzle_sim.triton_source.mapped_text import MappedText
from swizzle_sim.triton_source.source_file import (
    SourceFile,
    defaults_of,
    is_integer,
    literal_axis,
    parameters_of,
    read_source,
    tuned_values,
)

_LATE = (
    "after the first memory access (line {line}); if the kernel loops over tiles, move what computes one into a "
    "@triton.jit function and check that"
)
CANONICAL = (("pid_m", "pid_n"), ("pid_x", "pid_y", "pid_z"), ("x", "y", "z"), ("pid",))


@dataclass(frozen=True)
class Prologue:
    """What a Triton function computes its tile with.

    Parameters
    ----------
    text : MappedText
        In the language; its last lines assign the coordinates.
    function : str
    line : int
        Of the function.
    axes : int
        Axes of the launch whose program id it reads.
    launch : str
        Launch grid as an expression of the kernel's sizes, where the source has it (``num_pid_m = tl.cdiv(M, B)``);
        empty otherwise.
    parameters : tuple of str
        Of the function.
    """

    text: MappedText
    function: str
    line: int
    axes: int
    launch: str
    parameters: tuple[str, ...]


def read_prologue(
    path: str | Path, function: str, answer: Sequence[str] | str | None = None, given: Collection[str] = ()
) -> Prologue:
    """Extract the prologue of one function.

    Parameters
    ----------
    path : str or Path
        Python file; it is parsed, not imported.
    function : str
        Name of a ``@triton.jit`` function at its top level.
    answer : sequence of str or str, optional
        Names that hold the tile, in the order of the grid's sides. By default ``pid_m, pid_n``, or ``pid_x, pid_y``,
        or ``pid``, whichever the kernel assigns; of a function with ``return``, what it returns.
    given : collection of str
        Parameters that the caller gives a value: their defaults do not count.

    Returns
    -------
    Prologue

    Raises
    ------
    LanguageError
        If the file cannot be read, has no such function, or its prologue is outside the language; names the line and
        the reason.
    """
    reader = _PrologueReader(read_source(path), function, frozenset(given))
    return reader.prologue(names_in(answer))


def names_in(given: Iterable[str] | str | None) -> tuple[str, ...]:
    """Names of a text such as ``"row, col"``, or of any iterable."""
    parts = given.split(",") if isinstance(given, str) else given or ()
    return tuple(part.strip() for part in parts if part.strip())


class _PrologueReader:
    """Reads the prologue of one function of a file."""

    def __init__(self, source: SourceFile, name: str, given: frozenset[str]):
        self.source, self.given = source, given
        self.reads_id = bool(source.program_ids(source.kernel(name)))
        functions = canonical_functions(source)
        self.function = functions[name]
        self.parameters = tuple(one.arg for one in parameters_of(self.function))
        self.inliner = Inliner(functions, source.filename)

    def prologue(self, wanted: tuple[str, ...]) -> Prologue:
        if self.reads_id:
            body, answers = self._of_kernel(wanted)
        else:
            body, answers = self.inliner.returned(self.function)
        body, _ = slice_of(self.inliner.block(body), set(answers))
        axes = self._axes(body)
        if len(answers) not in (1, axes, axes + 1) or (axes > 1 and len(answers) > axes):
            self.refuse(
                self.function,
                f"{', '.join(answers)}: {len(answers)} coordinates, and the launch's axes are {axes}; one "
                "axis alone holds at most two, row by row",
            )
        constants = self._constants(body)
        launch = self._launch(answers, axes)
        text = self._text([*constants, *body, *self._answer(answers, axes)], tuple(answers))
        return Prologue(text, self.function.name, self.function.lineno, axes, launch, self.parameters)

    def _axes(self, body: list[ast.stmt]) -> int:
        """Axes that the slice reads, or that the parameters of a function without program ids are named after."""
        if not self.reads_id:
            return 3 if {"pid_z", "z"} & set(self.parameters) else 2 if {"pid_y", "y"} & set(self.parameters) else 1
        return 1 + max([0, *(_axis(call) for stmt in body for call in self.source.id_calls(stmt))])

    def _launch(self, answers: list[str], axes: int) -> str:
        """Launch grid in the kernel's sizes, where ``num_pid_m`` and ``num_pid_n`` (x, y, z) are assigned once."""
        known = self._known()
        names = {*self.parameters, *known}
        sides = {
            name: ast.unparse(_Filled(known).visit(copy.deepcopy(value)))
            for name, value in assigned_once(self.function).items()
            if _over(value, names)
        }
        wanted = [f"num_{name}" for name in answers]
        if not all(name in sides for name in wanted) or len(wanted) < 2:
            return ""
        return (" * " if axes == 1 else ", ").join(f"({sides[name]})" for name in wanted)

    def _of_kernel(self, wanted: tuple[str, ...]) -> tuple[list[ast.stmt], list[str]]:
        """Slice of a kernel that reads its own program id, and the names of its tile."""
        body = self.function.body
        end = next((k for k, stmt in enumerate(body) if self.source.touches_memory(stmt)), len(body))
        before = [stmt for stmt in body[:end] if not self.source.aliases.is_note(stmt)]
        after = body[end:]
        answers = list(wanted) or self._answers(before, after)
        for name in answers:
            late = next((stmt for stmt in after if name in stored(stmt)), None)
            if late:
                self.refuse(late, f"{name!r} is assigned {_LATE.format(line=after[0].lineno)}")
            if not any(name in stored(stmt) for stmt in before):
                self.refuse(self.function, f"{name!r} is not assigned before the first memory access")
        last = max(k for k, stmt in enumerate(before) if stored(stmt) & set(answers))
        for stmt in before[: last + 1]:
            for one in ast.walk(stmt):
                if isinstance(one, ast.Return):
                    self.refuse(one, "the kernel may return here before its tile is known: return after that")
        found = slice_of(before, set(answers))[0]
        if not wanted and len(found) == 1 and isinstance(found[0], ast.Assign) and self.source.is_id(found[0].value):
            self.refuse(
                found[0], f"{answers[0]} is the program id as it came: say which names hold the tile, if others do"
            )
        return found, answers

    def _answers(self, before: list[ast.stmt], after: list[ast.stmt]) -> list[str]:
        """Names of the tile, by their spelling."""
        given = {name for stmt in (*before, *after) for name in stored(stmt)}
        for group in CANONICAL:
            found = [name for name in group if name in given]
            if len(found) > 1 or found == ["pid"]:
                return self._in_launch_order(found, before)
        single = [name for group in CANONICAL for name in group if name in given]
        if not single:
            self.refuse(
                self.function,
                f"{self.function.name} assigns neither pid, nor pid_m and pid_n, nor pid_x and pid_y: say which names "
                "hold the tile, such as answer=tile_m,tile_n",
            )
        return single[:1]

    def _in_launch_order(self, names: list[str], before: list[ast.stmt]) -> list[str]:
        """Coordinates in the order of the axes they were first read from, where each was read from one."""
        axis: dict[str, int] = {}
        for stmt in before:
            match stmt:
                case ast.Assign([ast.Name(name)], ast.Call() as call) if name in names and self.source.is_id(call):
                    axis.setdefault(name, _axis(call))
        if set(axis) == set(names) and sorted(axis.values()) == list(range(len(names))):
            return sorted(names, key=lambda name: axis[name])
        return names

    def _constants(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Assignments for the module's constants and the function's defaults that the slice reads."""
        read, known = {name for stmt in body for name in loaded(stmt)}, self._known()
        return [assign(name, known[name], known[name]) for name in sorted(read & known.keys())]

    def _known(self) -> dict[str, ast.expr]:
        """Integers that the file gives names to, where the caller does not."""
        spelling = Canonical(self.source.aliases)
        values = {name: spelling.visit(copy.deepcopy(value)) for name, value in self.source.constants.items()}
        constants = {name: value for name, value in values.items() if name not in self.parameters}
        # A default number of XCDs is one of those to try; a constant of the file is what the kernel runs with.
        defaults = {
            name: value
            for name, value in {**defaults_of(self.function), **tuned_values(self.function)}.items()
            if name not in GRID_NAMES
        }
        return {
            name: value
            for name, value in {**constants, **defaults}.items()
            if name not in self.given and is_integer(value)
        }

    def _answer(self, answers: list[str], axes: int) -> list[ast.stmt]:
        """Last statements: the coordinates under the language's names."""
        group = ("pid",) if len(answers) == 1 else CANONICAL[0] if axes == 1 else CANONICAL[1]
        place = ast.Constant(0, lineno=0)
        taken = [assign(f"tile_{k}", ast.Name(name, ast.Load()), place) for k, name in enumerate(answers)]
        given = [assign(name, ast.Name(f"tile_{k}", ast.Load()), place) for k, name in enumerate(group[: len(answers)])]
        return [*taken, *given]

    def _text(self, body: list[ast.stmt], answers: tuple[str, ...]) -> MappedText:
        written: list[tuple[str, int]] = []
        for stmt in body:
            _write(stmt, 0, written)
        name = f"{Path(self.source.filename).name}::{self.function.name}"
        text = "".join(f"{line}\n" for line, _ in written)
        lines = tuple(line for _, line in written)
        return MappedText(text, name, self.source.filename, lines, self.source.lines, answers)

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        """Raise a `LanguageError` that shows the line of a node."""
        raise self.source.error(node, message)


def _write(stmt: ast.stmt, depth: int, out: list[tuple[str, int]]) -> None:
    """Print a statement one line each, and remember where each line stood."""
    indent, line = "    " * depth, getattr(stmt, "lineno", 0)
    if isinstance(stmt, ast.If):
        out.append((f"{indent}if {ast.unparse(stmt.test)}:", line))
        blocks = [stmt.body, stmt.orelse]
    elif isinstance(stmt, ast.For):
        out.append((f"{indent}for {ast.unparse(stmt.target)} in {ast.unparse(stmt.iter)}:", line))
        blocks = [stmt.body]
    else:
        out += [(indent + part, line) for part in ast.unparse(stmt).splitlines()]
        return
    for k, block in enumerate(blocks):
        if k and block:
            out.append((f"{indent}else:", line))
        for one in block or ([] if k else [ast.Pass()]):
            _write(one, depth + 1, out)


def _axis(call: ast.Call) -> int:
    """Axis of a call of ``tl.program_id``, 0 where it is no literal: the language refuses that by itself."""
    return literal_axis(call) or 0


def _over(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression reads only these names, and calls only ``cdiv``."""
    return all(
        one.id in names or one.id in ("tl", "cdiv", "min", "max") for one in ast.walk(node) if isinstance(one, ast.Name)
    ) and not any(
        isinstance(one, ast.Call) and ast.unparse(one.func) not in ("tl.cdiv", "cdiv") for one in ast.walk(node)
    )


class _Filled(ast.NodeTransformer):
    """Puts known values in place of names."""

    def __init__(self, known: dict[str, ast.expr]):
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.known.get(node.id, node)
