"""What reads a kernel's or helper's prologue: `read_prologue`, and the `Prologue` that it gives."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from swizzle_sim.triton_source.prologue_reader import PrologueReader
from swizzle_sim.triton_source.prologue_text import Premise, Prologue
from swizzle_sim.triton_source.source_file import read_source

_BETWEEN = re.compile(r",(?![^(]*\))")  # a comma that stands in no bracket

__all__ = ["Premise", "Prologue", "names_in", "read_prologue"]


def read_prologue(
    path: str | Path,
    function: str,
    answer: Sequence[str] | str | None = None,
    given: Collection[str] = (),
    tiles: Sequence[str] | str | None = None,
    lines: tuple[int, int] = (0, 0),
) -> Prologue:
    """Extract the prologue of one function.

    Parameters
    ----------
    path : str or Path
        Python file, or one of C or C++; it is parsed, not imported or compiled.
    function : str
        Its name; ``Class.method`` or ``outer.inner`` for one inside another.
    answer : sequence of str or str, optional
        Names that hold the tile, in the order of the grid's sides. By default ``pid_m, pid_n``, or ``pid_x, pid_y``,
        or ``pid``, whichever the kernel assigns; of a function with ``return``, what it returns.
    given : collection of str
        Parameters that the caller gives a value: their defaults do not count.
    tiles : sequence of str or str, optional
        What each coordinate counts up to: an expression a coordinate. Needed for three coordinates of one id, and for
        a launch with more workgroups than tiles.
    lines : (int, int), optional
        In place of a function: the lines of two comments, between which the statements are read.

    Returns
    -------
    Prologue

    Raises
    ------
    LanguageError
        If the file cannot be read, has no such function, or its prologue is outside the language; names the line and
        the reason.
    """
    source = read_source(path)
    if lines[1]:
        source = source.between(lines[0], lines[1], function)
    reader = PrologueReader(source, function, frozenset(given))
    return reader.prologue(names_in(answer), names_in(tiles))


def names_in(given: Iterable[str] | str | None) -> tuple[str, ...]:
    """Names, or expressions, of a text such as ``"row, col"`` or ``"cdiv(M, 64), 8"``, or of any iterable."""
    parts = _BETWEEN.split(given) if isinstance(given, str) else given or ()
    return tuple(part.strip() for part in parts if part.strip())
