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
    """Extract the prologue of one function of a file of Python, C or C++, which is parsed alone.

    ``function`` may be ``Class.method`` or ``outer.inner``; in its place, ``lines`` are those of two comments around
    statements. ``answer`` names what holds the tile, in the order of the grid's sides: by default ``pid_m, pid_n``,
    ``pid_x, pid_y`` or ``pid``, or what is returned. Parameters that are ``given`` have a value whatever their
    defaults. ``tiles`` is what each coordinate counts up to: needed for three coordinates of one id, and for a launch
    with more workgroups than tiles. `LanguageError` names the line and the reason of what is outside the language.
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
