"""Text of templates to `Template`; nothing of the text is ever executed.

A template is a head, ``template name(parameter: range, ...)`` with conditions behind ``requires``, and a body in the
closed language. The head is read here by its own small grammar, the body and the conditions by the language's parser.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NoReturn

from swizzle_sim.language.rules import MAX_TEXT_BYTES
from swizzle_sim.search.templates.template import ParameterRange, Template, read_range
from xcd_model.errors import LanguageError

_HEAD = re.compile(r"template\s+([A-Za-z_][A-Za-z0-9_]*)\s*\(([^()]*)\)\s*(.*)", re.DOTALL)
_START = re.compile(r"template\b")
_PARAMETER = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*:\s*(\S.*?)\s*", re.DOTALL)
_EXAMPLE = "template windowed(chunk: 1..512, window: powers 1..64) requires num_pids >= num_xcds"
MOST_TEMPLATES = 100


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
        text = Path(path).read_text(encoding="utf-8-sig")
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
