"""`Template`, a swizzle of the closed language with declared parameters, and its text; nothing of it is ever executed.

A template is a head, ``template name(parameter: range, ...)`` with conditions behind ``requires``, and a body in the
closed language. The head is read here by its own small grammar, the body and the conditions by the language's parser.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from swizzle_sim.language.ir import GRID_NAMES, Cond
from swizzle_sim.language.parse import parse_condition, parse_form
from swizzle_sim.language.rules import MAX_TEXT_BYTES
from xcd_model.errors import LanguageError
from xcd_model.files import read_text

MOST_VALUES = 1 << 16  # of one parameter
_NUMBER = r"(\d{1,10})"
_SPAN = re.compile(rf"(powers\s+)?{_NUMBER}\s*\.\.\s*{_NUMBER}(?:\s+step\s+{_NUMBER})?")
_LIST = re.compile(r"[\[{]([\s\d,]*)[\]}]")
_HEAD = re.compile(r"template\s+([A-Za-z_][A-Za-z0-9_]*)\s*\(([^()]*)\)\s*(.*)", re.DOTALL)
_START = re.compile(r"template\b")
_PARAMETER = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*:\s*(\S.*?)\s*", re.DOTALL)
_EXAMPLE = "template windowed(chunk: 1..512, window: powers 1..64) requires num_pids >= num_xcds"
MOST_TEMPLATES = 100
FORMS = "low..high, low..high step n, powers low..high, or {1, 2, 5}"


@dataclass(frozen=True)
class ParameterRange:
    """Values of one parameter."""

    name: str
    values: tuple[int, ...]  # rising, each once, none negative
    text: str  # as it was written

    @property
    def middle(self) -> int:
        """Value nearest the geometric middle: where a search begins."""
        low, high = max(1, self.values[0]), max(1, self.values[-1])
        return min(self.values, key=lambda value: abs(max(1, value) ** 2 - low * high))

    @property
    def is_span(self) -> bool:
        """Whether it contains every integer between its ends."""
        return self.values[-1] - self.values[0] + 1 == len(self.values)


def read_range(name: str, text: str, filename: str = "<template>") -> ParameterRange:
    """Read the values of a parameter."""
    written = " ".join(text.split())
    try:
        return ParameterRange(name, read_values(written), written)
    except ValueError as rule:
        shown = written if len(written) <= 60 else written[:57] + "..."
        raise LanguageError(f"parameter {name}: {shown!r}: {rule}", filename=filename, code="parameter") from None


def read_values(written: str, forms: str = FORMS) -> tuple[int, ...]:
    """Values of a range, rising; ``forms`` names the notations that the message offers."""
    if span := _SPAN.fullmatch(written):
        values = _of_span(span)
    elif listed := _LIST.fullmatch(written):
        words = [word.strip() for word in listed[1].split(",")]
        if words and not words[-1]:
            words.pop()
        if not all(word.isdigit() and len(word) <= 10 for word in words):
            raise ValueError(f"a list holds integers of at least 0; write {forms}")
        values = tuple(sorted({int(word) for word in words}))
    else:
        raise ValueError(f"write {forms}")
    if not values:
        raise ValueError("there is no value in it")
    if values[-1] >= 2**31:
        raise ValueError("a value fits a signed 32-bit integer")
    return values


def _of_span(span: re.Match) -> tuple[int, ...]:
    low, high, step = int(span[2]), int(span[3]), int(span[4] or 1)
    if low > high:
        raise ValueError(f"{low} is more than {high}, so there is no value in it")
    if step < 1 or (span[1] and span[4]):
        raise ValueError("a step is at least 1, and powers take none")
    if span[1]:
        return tuple(2**k for k in range(32) if low <= 2**k <= high)
    if (high - low) // step >= MOST_VALUES:
        raise ValueError(f"over {MOST_VALUES} values: use a step, powers or a list")
    return tuple(range(low, high + 1, step))


@dataclass(frozen=True)
class Template:
    """A swizzle with parameters; a value for each makes a candidate."""

    name: str
    ranges: tuple[ParameterRange, ...]  # one per parameter, in declaration order
    requires: tuple[str, ...]  # conditions of the language over parameters, the grid's counts and the kernel's sizes
    body: str  # statements of the language; they read the parameters as variables
    # pattern of a candidate's name, as `str.format` takes it; by default ``name(parameter=value, ...)``
    called: str = ""
    filename: str = field(default="<template>", compare=False)  # name of the text in errors

    def __post_init__(self):
        inputs = parse_form(self.body, self.filename).inputs
        seen: set[str] = set()
        for one in self.ranges:
            if one.name in GRID_NAMES:
                self._refuse(f"parameter {one.name}: that is a name of the grid, so rename the parameter")
            if one.name in seen:
                self._refuse(f"parameter {one.name} is declared twice")
            seen.add(one.name)
            if one.name not in inputs:
                self._refuse(
                    f"parameter {one.name} is declared, but the template does not use it: it is never read before it "
                    "is assigned"
                )
        _ = self.conditions

    def _refuse(self, message: str) -> None:
        raise LanguageError(f"template {self.name}: {message}", filename=self.filename, code="parameter")

    @cached_property
    def conditions(self) -> tuple[Cond, ...]:
        """`requires`, parsed."""
        return tuple(self._condition(text) for text in self.requires)

    def _condition(self, text: str) -> Cond:
        try:
            return parse_condition(text)
        except LanguageError as error:
            raise LanguageError(
                f"template {self.name}: requires {text}: {error.message}", filename=self.filename, code=error.code
            ) from None

    @property
    def size(self) -> int:
        """Combinations of values, before constraints."""
        return math.prod(len(one.values) for one in self.ranges)

    def source(self, values: Mapping[str, int]) -> str:
        """Text of the candidate with these values, in the closed language."""
        given = "".join(f"{one.name} = {values[one.name]}\n" for one in self.ranges)
        return f"# {self.title(values)}\n{given}{self.body}"

    def title(self, values: Mapping[str, int]) -> str:
        """Name of the candidate with these values."""
        if self.called:
            return self.called.format(**values)
        given = ", ".join(f"{one.name}={values[one.name]}" for one in self.ranges)
        return f"{self.name}({given})" if given else self.name

    @property
    def text(self) -> str:
        """The template as `read_template` takes it."""
        declared = ", ".join(f"{one.name}: {one.text}" for one in self.ranges)
        needed = "".join(f"\n    requires {condition}" for condition in self.requires)
        indented = "".join(f"    {line}\n" if line.strip() else "\n" for line in self.body.splitlines())
        return f"template {self.name}({declared}){needed}\n{indented}"


def read_templates(text: str, filename: str = "<template>") -> list[Template]:
    """Read every template of a text."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        _refuse(f"the text has more than {MAX_TEXT_BYTES} bytes", filename, 0, code="limit")
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if _START.match(line.strip())]
    before = [line for line in lines[: starts[0] if starts else None] if line.strip() and line.strip()[0] != "#"]
    if not starts or before:
        _refuse(f"not a template: it begins with a head, such as\n    {_EXAMPLE}", filename, 1)
    if len(starts) > MOST_TEMPLATES:
        _refuse(f"{len(starts)} templates; at most {MOST_TEMPLATES} are read", filename, 0, code="limit")
    return [
        _read(lines[first:last], first, filename) for first, last in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]


def read_template(text: str, filename: str = "<template>") -> Template:
    """Read one template; raises as `read_templates`, and if there are several."""
    found = read_templates(text, filename)
    if len(found) > 1:
        _refuse(f"{len(found)} templates where one is expected", filename, 0)
    return found[0]


def load_templates(path: str | Path) -> list[Template]:
    """Templates of a file."""
    try:
        text = read_text(path, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise LanguageError(f"cannot be read ({why})", filename=str(path), code="file") from None
    return read_templates(text, str(path))


def _read(lines: list[str], first: int, filename: str) -> Template:
    """Template of its lines, of which the first is line ``first`` + 1 of the file."""
    while not lines[-1].strip() or lines[-1].lstrip()[0] == "#":  # a comment above the next template
        lines = lines[:-1]
    n_head = _head_lines(lines)
    head = "\n".join(line.strip() for line in lines[:n_head])
    found = _HEAD.fullmatch(head)
    if found is None:
        _refuse(f"the head of a template has the form\n    {_EXAMPLE}", filename, first + 1)
    name, declared, rest = found.groups()
    body = textwrap.dedent("\n".join(lines[n_head:])).strip("\n")
    if not body.strip():
        _refuse(f"template {name} has no statements below its head", filename, first + 1)
    skipped = next(i for i, line in enumerate(lines[n_head:]) if line.strip())
    try:
        return Template(
            name, _ranges(name, declared, filename), _conditions(rest, filename, first + 1), f"{body}\n", "", filename
        )
    except LanguageError as error:
        if not error.line:
            raise
        line = error.line + first + n_head + skipped
        source = lines[min(line - first, len(lines)) - 1]
        column = error.column + len(source) - len(source.lstrip())
        raise LanguageError(
            error.message, filename=filename, line=line, column=column, source_line=source, code=error.code
        ) from None


def _head_lines(lines: list[str]) -> int:
    """Lines of the head: until its brackets close, and those that begin with ``requires``."""
    end, depth = 0, 0
    for line in lines:
        depth, end = depth + line.count("(") - line.count(")"), end + 1
        if depth <= 0:
            break
    while end < len(lines) and lines[end].strip().startswith("requires"):
        end += 1
    return end


def _ranges(template: str, declared: str, filename: str) -> tuple[ParameterRange, ...]:
    ranges = []
    for piece in re.split(r",(?![^\[{]*[\]}])", declared) if declared.strip() else ():
        found = _PARAMETER.fullmatch(piece)
        if found is None:
            _refuse(
                f"template {template}: {piece.strip()!r} is not parameter: range, such as chunk: 1..512",
                filename,
                0,
                code="parameter",
            )
        ranges.append(read_range(found[1], found[2], filename))
    return tuple(ranges)


def _conditions(rest: str, filename: str, line: int) -> tuple[str, ...]:
    rest = rest.strip().removesuffix(":").strip()
    if not rest:
        return ()
    if not re.match(r"requires\b", rest):
        _refuse(f"behind the parameters only 'requires condition' may stand, not {rest[:40]!r}", filename, line)
    parts = [" ".join(part.split()).removesuffix(":") for part in re.split(r"\brequires\b", rest)[1:]]
    if not all(parts):
        _refuse("'requires' without a condition", filename, line)
    return tuple(parts)


def _refuse(message: str, filename: str, line: int, *, code: str = "syntax") -> NoReturn:
    raise LanguageError(message, filename=filename, line=line, column=1, code=code)
