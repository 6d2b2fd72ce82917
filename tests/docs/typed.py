"""Commands as README and docs show them: lines of indented or fenced blocks that begin with a program."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ("swizzle-sim", "python", "make", "pip", "pytest")
_LINE = re.compile(rf"^(?:\$ |- run: |run: )?(?=(?:{'|'.join(PROGRAMS)})(?: |$))")
_FENCE = re.compile(r"^\s*(```+|~~~+)\s*(\S*)(.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
NOT_SHELL = ("python", "py", "toml", "json", "text", "html", "ini", "cfg")


@dataclass(frozen=True)
class Typed:
    """One command: its words, where it stands, and the lines of output shown under it."""

    page: str
    line: int
    text: str
    shown: tuple[str, ...] = field(default=(), compare=False)

    @property
    def words(self) -> list[str]:
        """Words as a shell would split them, without the comment."""
        return shlex.split(self.text, comments=True)


@dataclass(frozen=True)
class Block:
    """One indented or fenced block."""

    line: int
    language: str
    title: str
    lines: tuple[str, ...]


def pages() -> list[Path]:
    """README, CONTRIBUTING and every page of docs."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> Iterator[Block]:
    """Yield the code blocks of a page."""
    lines, i = text.splitlines(), 0
    while i < len(lines):
        fence = _FENCE.match(lines[i])
        if fence:
            first, mark = i + 1, fence[1]
            i += 1
            while i < len(lines) and not lines[i].strip().startswith(mark):
                i += 1
            inside = _unindented(lines[first:i])
            title = _TITLE.search(fence[3])
            yield Block(first + 1, fence[2], title[1] if title else "", inside)
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            first = i
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                i += 1
            inside = _unindented(lines[first:i])
            named = re.match(r"# (\w+\.txt)\b", inside[0])
            yield Block(first + 1, "", named[1] if named else "", inside)
            continue
        i += 1


def _unindented(lines: list[str]) -> tuple[str, ...]:
    edge = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return tuple(line[edge:].rstrip() for line in lines)


def typed_on(page: Path) -> Iterator[Typed]:
    """Yield the commands of one page."""
    name = page.relative_to(ROOT).as_posix()
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language in NOT_SHELL:
            continue
        i = 0
        while i < len(block.lines):
            at, line = i, block.lines[i].strip()
            i += 1
            start = _LINE.match(line)
            if not start:
                continue
            while line.endswith("\\") and i < len(block.lines):
                line = line[:-1] + " " + block.lines[i].strip()
                i += 1
            rest = block.lines[i:] if line.startswith("$ ") else ()
            shown = tuple(out.strip() for out in rest if out.strip() and out.strip() != "...")
            for part in _commands(line[start.end() :]):
                yield Typed(name, block.line + at, part, shown)


def _commands(line: str) -> list[str]:
    """Commands of one line, split at its semicolons; the comment goes."""
    parts: list[list[str]] = [[]]
    lexer = shlex.shlex(line, posix=False, punctuation_chars=";")
    lexer.whitespace_split, lexer.commenters = True, "#"
    for word in lexer:
        if word == ";":
            parts.append([])
        else:
            parts[-1].append(word)
    return [" ".join(part) for part in parts if part]


def all_typed() -> list[Typed]:
    """Every command of every page."""
    return [one for page in pages() for one in typed_on(page)]


def files_on(page: str) -> dict[str, str]:
    """Files that a page shows by name, such as ``mine.txt``; a prompt under one ends it."""
    found = [block for block in blocks((ROOT / page).read_text(encoding="utf-8")) if block.title]
    return {
        block.title: "".join(f"{line}\n" for line in itertools.takewhile(lambda one: one[:1] != "$", block.lines))
        for block in found
    }
