"""What there is to check in a file: its text, its marked functions and statements, its remaps."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from swizzle_sim.testing.directive import BEGIN, END, Options, bracket, is_directive, read_directives
from swizzle_sim.triton_source.likeness import likeness
from swizzle_sim.triton_source.source_file import SOURCES, SourceFile, read_source
from xcd_model.errors import LanguageError
from xcd_model.files import read_text

TEXTS = (".txt", ".swizzle")
SUFFIXES = (*TEXTS, *SOURCES)  # of what is read in a folder


@dataclass(frozen=True)
class Target:
    """One thing to check."""

    path: Path
    kind: str  # A function is read in the text of its file; plain Python with a mark may be called in place of it
    name: str  # ``file`` or ``file::function``
    function: str = ""  # empty for a text
    line: int = 1  # where it begins, counted from 1
    text: str = ""  # of a text
    # whether it has to hold: a text, or a function with a ``# swizzle:`` comment. A function without one is checked if
    # it can be, and skipped if not.
    marked: bool = True
    # whether it looks like a remap. What only takes an id apart is no loss where it cannot be read.
    likely: bool = True
    until: int = 0  # last line of statements between ``# swizzle: begin`` and ``# swizzle: end``; 0 for a function
    options: Options = field(default_factory=Options)
    is_called: bool = False  # whether plain Python with a mark is called, in a process of its own, and not read


def targets_of(path: Path, function: str = "") -> list[Target]:
    """Return what there is to check in one file, in text order, or one function of it, whatever it looks like."""
    if path.suffix in SOURCES:
        return _of_source(path, function)
    try:
        text = read_text(path, "utf-8-sig")
    except UnicodeDecodeError as error:
        raise LanguageError(f"not UTF-8 text (byte {error.start})", filename=str(path), code="file") from None
    except OSError as error:
        raise LanguageError(f"cannot be read ({error.strerror})", filename=str(path), code="file") from None
    options = read_directives(enumerate(text.splitlines(), 1), str(path))
    return [] if options.off else [Target(path, "text", path.name, text=text, options=options)]


def is_there(path: str | Path) -> bool:
    """Whether there is a file or folder; a text that no path can be is none."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _of_source(path: Path, wanted: str) -> list[Target]:
    source = read_source(path)
    found = _enclosed(path, source)
    for name, node in source.every_function.items():
        if wanted and name != wanted:
            continue
        lines = _above(node, source)
        marked = bool(lines)
        options = read_directives(lines, str(path))
        is_read = source.is_read(name)
        kind = "" if marked and not is_read else likeness(source, name)
        if options.off or not (marked or kind or wanted):
            continue
        called = marked and not (is_read or source.in_c) and name in source.functions
        how, likely = "function" if called else "read", kind == "remap"
        found.append(Target(path, how, f"{path.name}::{name}", name, node.lineno, "", marked, likely, 0, options))
    return sorted(found, key=lambda one: one.line)


def _enclosed(path: Path, source: SourceFile) -> list[Target]:
    """Statements between ``# swizzle: begin`` and ``# swizzle: end``."""
    found: list[Target] = []
    begun = 0
    for number, line in enumerate(source.lines, 1):
        word = bracket(line)
        if (word == BEGIN and begun) or (word == END and not begun):
            raise LanguageError(
                f"swizzle: {word} without {END if begun else BEGIN}",
                filename=str(path),
                line=number,
                column=1,
                code="syntax",
            )
        if word == BEGIN:
            begun = number
        elif word == END:
            options = read_directives([(begun, source.lines[begun - 1])], str(path))
            name = f"line_{begun}"
            found.append(Target(path, "read", f"{path.name}::{name}", name, begun, until=number, options=options))
            begun = 0
    if begun:
        raise LanguageError("swizzle: begin without end", filename=str(path), line=begun, column=1, code="syntax")
    return found


def _above(node: ast.FunctionDef, source: SourceFile) -> list[tuple[int, str]]:
    """Comment lines right above a function and among its decorators."""
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    start = first - 1
    while start and _belongs(source.lines[start - 1].strip(), in_c=source.in_c):
        start -= 1
    lines = [(k + 1, source.lines[k]) for k in range(start, node.lineno - 1)]
    return [(k, line) for k, line in lines if is_directive(line) and not bracket(line)]


def _belongs(line: str, *, in_c: bool) -> bool:
    """Whether a line above a function is a comment on it, or in C the beginning of its declaration."""
    return line.startswith("//" if in_c else "#") or (in_c and bool(line) and line[-1] not in ";{}/" and line[0] != "#")
