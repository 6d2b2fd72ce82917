"""A text of the closed language, and the lines of a file that it came from."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace

from swizzle_sim.language.ir import GRID_NAMES
from swizzle_sim.triton_source.source_file import printable
from xcd_model.errors import LanguageError


@dataclass(frozen=True)
class MappedText:
    """A text, and where its lines came from."""

    text: str  # in the language
    name: str  # what reports and errors call it
    filename: str
    lines: tuple[int, ...] = ()  # for each line of ``text`` its line in the file; empty where they are the same
    origin: tuple[str, ...] = ()  # lines of the file, for the caret
    answers: tuple[str, ...] = ()  # the names that hold the tile in the file, where it is a kernel

    def with_values(self, sizes: Mapping[str, int | str]) -> MappedText:
        """Put assignments in front for values that are expressions, or that stand for a name of the grid."""
        given = {name: value for name, value in sizes.items() if isinstance(value, str) or name in GRID_NAMES}
        if not given:
            return self
        lines = self.lines or tuple(range(1, self.text.count("\n") + 2))
        origin = self.origin or tuple(self.text.splitlines())
        prelude = "".join(f"{name} = {value}\n" for name, value in given.items())
        return replace(
            self, text=prelude + textwrap.dedent(self.text), lines=(*[0] * len(given), *lines), origin=origin
        )

    def line(self, line: int) -> int:
        """Line of the file that a line of the text came from, 0 where none."""
        if not self.lines:
            return line
        return self.lines[line - 1] if 1 <= line <= len(self.lines) else 0

    def placed(self, error: LanguageError) -> LanguageError:
        """Same error, at the line of the file."""
        if not self.lines and error.filename != "<candidate>":
            return error
        line, origin = self.line(error.line), self.origin or tuple(self.text.splitlines())
        shown = printable(origin[line - 1]) if 0 < line <= len(origin) else ""
        column = len(shown) - len(shown.lstrip()) + 1
        return LanguageError(
            error.message, filename=self.filename, line=line, column=column, source_line=shown, code=error.code
        )


def written_line(stmt: ast.stmt, depth: int, out: list[tuple[str, int]]) -> None:
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
            written_line(one, depth + 1, out)
