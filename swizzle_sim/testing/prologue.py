"""The program-id prologue of a ``@triton.jit`` function, read out of its file as a text of the language.

The file is parsed, never imported. The prologue is the backward slice, from the tile's coordinates to
``tl.program_id``, of the statements before the first memory access; functions of the same file that it calls are put
in place. A function that takes the id as a parameter and returns the tile (``remap_xcd(pid, ...)``) is its own
prologue. Whatever else is needed is refused with its line.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from swizzle_sim.swizzle.ir import GRID_NAMES
from swizzle_sim.testing.directive import names_in
from swizzle_sim.testing.inlining import Inliner, assign, parameters_of
from swizzle_sim.testing.module import Module, read_module
from swizzle_sim.testing.slicing import loaded, slice_of, stored
from swizzle_sim.testing.text import Text

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
    text : Text
        In the language; its last lines assign the coordinates.
    function : str
    line : int
        Of the function.
    axes : int
        Axes of the launch that it asks for.
    launch : str
        Launch grid as an expression of the kernel's sizes, where the source says it (``num_pid_m = tl.cdiv(M, B)``);
        empty otherwise.
    parameters : tuple of str
        Of the function.
    """

    text: Text
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
    module = read_module(path)
    reader = _Reader(module, module.function(function), frozenset(given))
    return reader.prologue(names_in(answer))


class _Reader:
    """Reads one function of one module."""

    def __init__(self, module: Module, function: ast.FunctionDef, given: frozenset[str]):
        self.module, self.function, self.given = module, function, given
        self.parameters = tuple(one.arg for one in parameters_of(function))
        self.inliner = Inliner(module.functions, module.filename)

    def prologue(self, wanted: tuple[str, ...]) -> Prologue:
        if self.module.asks_for_id(self.function):
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
        launch = self.module.launch(self.function, answers, axes, self._known())
        text = self._text([*constants, *body, *self._answer(answers, axes)], tuple(answers))
        return Prologue(text, self.function.name, self.function.lineno, axes, launch, self.parameters)

    def _axes(self, body: list[ast.stmt]) -> int:
        """Axes that the slice asks for, or that the parameters of a function without program ids are named after."""
        if not self.module.asks_for_id(self.function):
            return 3 if {"pid_z", "z"} & set(self.parameters) else 2 if {"pid_y", "y"} & set(self.parameters) else 1
        return 1 + max([0, *(self.module.axis(call) for stmt in body for call in self.module.id_calls(stmt))])

    def _of_kernel(self, wanted: tuple[str, ...]) -> tuple[list[ast.stmt], list[str]]:
        """Slice of a kernel that asks for its own program id, and the names of its tile."""
        body = self.function.body
        end = next((k for k, stmt in enumerate(body) if self.module.touches_memory(stmt)), len(body))
        before = [stmt for stmt in body[:end] if not self.module.spelling.is_note(stmt)]
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
        kept = slice_of(before, set(answers))[0]
        if not wanted and len(kept) == 1 and isinstance(kept[0], ast.Assign) and self.module.is_id(kept[0].value):
            self.refuse(
                kept[0], f"{answers[0]} is the program id as it came: say which names hold the tile, if others do"
            )
        return kept, answers

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
                case ast.Assign([ast.Name(name)], ast.Call() as call) if name in names and self.module.is_id(call):
                    axis.setdefault(name, self.module.axis(call))
        if set(axis) == set(names) and sorted(axis.values()) == list(range(len(names))):
            return sorted(names, key=lambda name: axis[name])
        return names

    def _constants(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Assignments for the module's constants and the function's defaults that the slice reads."""
        read, known = {name for stmt in body for name in loaded(stmt)}, self._known()
        return [assign(name, known[name], known[name]) for name in sorted(read & known.keys())]

    def _known(self) -> dict[str, ast.expr]:
        """Integers that the file gives names to, where the caller does not."""
        constants = {name: value for name, value in self.module.constants.items() if name not in self.parameters}
        # A default number of XCDs is one of those to try; a constant of the file is what the kernel runs with.
        defaults = {name: one for name, one in self.module.defaults(self.function).items() if name not in GRID_NAMES}
        return {name: value for name, value in {**constants, **defaults}.items() if name not in self.given}

    def _answer(self, answers: list[str], axes: int) -> list[ast.stmt]:
        """Last statements: the coordinates under the language's names."""
        group = ("pid",) if len(answers) == 1 else CANONICAL[0] if axes == 1 else CANONICAL[1]
        place = ast.Constant(0, lineno=0)
        taken = [assign(f"tile_{k}", ast.Name(name, ast.Load()), place) for k, name in enumerate(answers)]
        given = [assign(name, ast.Name(f"tile_{k}", ast.Load()), place) for k, name in enumerate(group[: len(answers)])]
        return [*taken, *given]

    def _text(self, body: list[ast.stmt], answers: tuple[str, ...]) -> Text:
        written: list[tuple[str, int]] = []
        for stmt in body:
            _write(stmt, 0, written)
        name = f"{Path(self.module.filename).name}::{self.function.name}"
        text = "".join(f"{line}\n" for line, _ in written)
        return Text(text, name, self.module.filename, tuple(line for _, line in written), self.module.lines, answers)

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        """Raise a `LanguageError` that shows the line of a node."""
        raise self.module.error(node, message)


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
