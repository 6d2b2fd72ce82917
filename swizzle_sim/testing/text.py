"""A text of the closed language as a candidate, with values for the names that the grid does not give."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.ir import GRID_NAMES
from swizzle_sim.swizzle.swizzle import Swizzle
from swizzle_sim.swizzle.verdict import Counterexample
from swizzle_sim.swizzle.vm import permutation_of
from swizzle_sim.testing.module import printable
from xcd_model.errors import LanguageError, UnknownName


@dataclass(frozen=True)
class Text:
    """A text, and where its lines came from.

    Parameters
    ----------
    text : str
        In the language.
    name, filename : str
        What reports and errors call it.
    lines : tuple of int
        For each line of ``text`` its line in the file; empty where they are the same.
    origin : tuple of str
        Lines of the file, for the caret.
    answers : tuple of str
        The names that hold the tile in the file, where it is a kernel.
    """

    text: str
    name: str
    filename: str
    lines: tuple[int, ...] = ()
    origin: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    def with_values(self, sizes: Mapping[str, int | str]) -> Text:
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


class TextCandidate:
    """A text, parsed.

    Parameters
    ----------
    text : Text
    sizes : mapping of str to int or str
        Values of names that the text reads; a str is an expression of the language.
    also : iterable of str
        Names that may have a value though the text does not read them, as the launch or the kernel does.

    Raises
    ------
    LanguageError
        If the text is outside the language.
    UnknownName
        If ``sizes`` gives a name that the text does not read.
    """

    def __init__(self, text: Text, sizes: Mapping[str, int | str], also: Iterable[str] = ()):
        self.name = text.name
        self.plain = self._parse(text)
        self._refuse_unread(sizes, (*self.plain.form.inputs, *also))
        self.text = text.with_values(sizes)
        self.swizzle = self._parse(self.text) if self.text is not text else self.plain
        self.sizes = {name: int(value) for name, value in sizes.items() if not isinstance(value, str)}
        self.form = self.swizzle.form
        self.reads = self.form.inputs

    def _parse(self, text: Text) -> Swizzle:
        try:
            return Swizzle.parse(text.text, text.name, text.filename)
        except LanguageError as error:
            raise text.placed(error) from None

    def _refuse_unread(self, sizes: Iterable[str], known: tuple[str, ...]) -> None:
        for name in sizes:
            if name not in known:
                raise UnknownName(f"name read by {self.name}", name, {one for one in known if one.isidentifier()})

    def counterexample(self, grid: Grid, num_xcds: int, sizes: Mapping[str, int]) -> Counterexample | None:
        """Say what keeps the text from being a permutation of a grid, if anything.

        Raises
        ------
        LanguageError
            With code ``name`` if the grid lacks a name that it reads and no value is given, ``limit`` if the grid is
            too large to decide.
        """
        try:
            found = permutation_of(self.swizzle.program, grid, num_xcds, {**self.sizes, **sizes})[1]
        except LanguageError as error:
            raise self.text.placed(error) from None
        if found is None or not self.text.lines or not found.line:
            return found
        line = self.text.line(found.line)
        return replace(found, line=line, message=found.message.replace(f"line {found.line}:", f"line {line}:", 1))
