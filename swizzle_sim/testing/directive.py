"""``# swizzle:`` comments: the launches on which a file's swizzle has to hold, and what its names mean.

``# swizzle: GROUP_SIZE_M=8 grids=64x64,100x7 xcds=1,8 where="num_pids % num_xcds == 0"``

``# swizzle-check:`` is the same, ``//`` begins it in C. ``# swizzle: begin`` and ``# swizzle: end`` enclose statements
that are a swizzle by themselves.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from swizzle_sim.triton_source.prologue import names_in
from xcd_model.errors import OptionError

# The short word begins ordinary remarks too: those with a key, or one of its own words, are read.
_COMMENT = re.compile(
    r"^\s*(?:#|//)\s*(?:swizzle-check\s*(?::(.*))?|swizzle:\s*((?:off|begin|end)\b.*|[A-Za-z_]\w*=(?!=).*))$"
)
KEYS = ("grids", "xcds", "where", "launch", "tiles", "answer")
OFF, BEGIN, END = "off", "begin", "end"


@dataclass(frozen=True)
class Options:
    """Where a swizzle has to hold, and what its names mean."""

    grids: tuple[str, ...] = ()  # grids such as ``"64x64"``; empty for small ones of all shapes
    xcds: tuple[int, ...] = ()  # XCD counts; empty for 1, 2, 3, 4, 6 and 8
    where: str = ""  # condition of the language over the grid's counts; empty for always
    launch: str = ""  # launch grid as an expression of sizes
    tiles: tuple[str, ...] = ()  # what each coordinate of the tile counts up to, where the launch does not tell
    answer: tuple[str, ...] = ()  # names that hold the tile
    # dict of str to (int, str or tuple of int): values of other names
    sizes: dict[str, int | str | tuple[int, ...]] = field(default_factory=dict)
    off: bool = False  # not to be checked
    guessed: str = ""  # those of the sizes that were guessed, as a comment
    unsure: str = ""  # what to say where the launch that was guessed fails: that may be the guess's fault
    own: dict[str, int] = field(default_factory=dict)  # defaults of the function's parameters that are sizes

    @property
    def single(self) -> dict[str, int | str]:
        """Sizes with one value."""
        return {name: value for name, value in self.sizes.items() if not isinstance(value, tuple)}

    @property
    def several(self) -> dict[str, tuple[int, ...]]:
        """Sizes with several values, each to be tried."""
        return {name: value for name, value in self.sizes.items() if isinstance(value, tuple)}

    def over(self, others: Options) -> Options:
        """These options where they say something, the others elsewhere."""
        said = {key: getattr(self, key) or getattr(others, key) for key in (*KEYS, "off")}
        return Options(**said, sizes={**others.sizes, **self.sizes})


def is_directive(line: str) -> bool:
    """Whether a line is such a comment."""
    return _COMMENT.match(line) is not None


def bracket(line: str) -> str:
    """``begin`` or ``end`` where a line is a comment with that word, else nothing."""
    match = _COMMENT.match(line)
    word = ((match.group(1) or match.group(2) or "").split() or [""])[0] if match else ""
    return word if word in (BEGIN, END) else ""


def read_directives(lines: Iterable[tuple[int, str]], filename: str) -> Options:
    """Options of the comments among some numbered lines."""
    options = Options()
    for number, line in lines:
        match = _COMMENT.match(line)
        if match:
            options = _read(match.group(1) or match.group(2) or "", options, f"{filename}:{number}")
    return options


def options_of_words(words: Iterable[str], **given: str | int | None) -> Options:
    """Options of a command line: sizes as ``NAME=VALUE``, and the keys of a comment."""
    options = Options()
    for word in words:
        key, _, value = word.partition("=")
        if not key.isidentifier() or not value:
            raise OptionError(f"{word!r}: a size is written NAME=VALUE, such as M=4096 or GRID_MN=num_pids")
        if key in options.sizes:
            raise OptionError(f"{key} is given twice: {options.sizes[key]} and {value}")
        options = replace(options, sizes={**options.sizes, key: size_value(value)})
    for key, one in given.items():
        options = _with(options, key, str(one), "command line") if one else options
    return options


def _read(text: str, options: Options, place: str) -> Options:
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        raise OptionError(f"{place}: swizzle: {error}") from None
    for word in words:
        key, equals, value = word.partition("=")
        if word == OFF:
            options = replace(options, off=True)
        elif word in (BEGIN, END):
            continue
        elif not equals or not value or not key.isidentifier():
            raise OptionError(f"{place}: swizzle: {word!r} is not KEY=VALUE; keys are {', '.join(KEYS)}, or a size")
        else:
            options = _with(options, key, value.strip(), place)
    return options


def _with(options: Options, key: str, value: str, place: str) -> Options:
    parts = tuple(part.strip() for part in value.split(","))
    plain: dict[str, Any] = {"where": value, "launch": value, "grids": parts}
    plain |= {"answer": names_in(value), "tiles": names_in(value)}
    if key in plain:
        return replace(options, **{key: plain[key]})
    if key == "xcds":
        if not all(_is_int(part) for part in parts):
            raise OptionError(f"{place}: swizzle: xcds={value}: XCD counts are integers, such as xcds=1,8")
        return replace(options, xcds=tuple(map(int, parts)))
    return replace(options, sizes={**options.sizes, key: size_value(value)})


def size_value(text: str) -> int | str | tuple[int, ...]:
    """Value of a size as it is typed: an integer, several, or an expression."""
    parts = [part.strip() for part in text.split(",")]
    if not all(_is_int(part) for part in parts):
        return {"True": 1, "False": 0}.get(text, text)
    return int(parts[0]) if len(parts) == 1 else tuple(map(int, parts))


def _is_int(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20
