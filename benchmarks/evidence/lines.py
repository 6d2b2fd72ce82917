"""``python -m swizzle_benchmarks.evidence.lines [REVISION]``: Python lines by room, of the tree or of a revision.

Rooms are folders of the wheel (xcd_model, swizzle_sim, agent, benchmarks/suite), tests of the product, and what stays
in the repository: evidence, validation, laboratory and their tests. *Code* is a line that is neither blank, nor a
comment, nor of a docstring.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
WHEEL = ("xcd_model", "swizzle_sim", "agent", "benchmarks/suite", "benchmarks")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Lines(NamedTuple):
    """Lines of some files, by kind."""

    files: int = 0
    all: int = 0
    code: int = 0
    docstring: int = 0
    comment: int = 0

    def plus(self, other: Lines) -> Lines:
        """Lines of both."""
        return Lines(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def lines_of(source: str) -> Lines:
    """Lines of one file."""
    documented = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.string.strip() and token.type != tokenize.ENDMARKER:
            code.update(range(token.start[0], token.end[0] + 1))
    return Lines(
        1, len(source.splitlines()), len(code - documented), len(documented), len(comments - code - documented)
    )


def room_of(path: str) -> str:
    """Room that a file belongs to, with a star where it is in the wheel."""
    folder = PurePosixPath(path).parent
    parts = folder.parts
    if parts[:1] == ("swizzle_sim",) or parts[:1] == ("xcd_model",):
        return "/".join(parts[:2]) + " *"
    if str(folder) in WHEEL:
        return f"{folder} *"
    return "/".join(parts[:2]) if parts[:1] == ("benchmarks",) else parts[0] if parts else "."


def sources(revision: str | None) -> Iterator[tuple[str, str]]:
    """Path and text of every Python file and stub that git tracks."""
    if revision is None:
        names = _git("ls-files", "*.py", "*.pyi").splitlines()
        yield from ((name, (ROOT / name).read_text(encoding="utf-8")) for name in names if (ROOT / name).exists())
        return
    for name in _git("ls-tree", "-r", "--name-only", revision).splitlines():
        if name.endswith((".py", ".pyi")):
            yield name, _git("show", f"{revision}:{name}")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Print a table."""
    rooms: dict[str, Lines] = {}
    for path, text in sources(sys.argv[1] if sys.argv[1:] else None):
        room = room_of(path)
        rooms[room] = rooms.get(room, Lines()).plus(lines_of(text))
    print(f"{'room (* in the wheel)':32}" + "".join(f"{name:>11}" for name in Lines._fields))
    for room, found in sorted(rooms.items(), key=lambda one: ("*" not in one[0], one[0])):
        print(f"{room:32}" + "".join(f"{count:11,}" for count in found))
    wheel = Lines()
    for room, found in rooms.items():
        wheel = wheel.plus(found) if room.endswith("*") else wheel
    print(f"{'the wheel':32}" + "".join(f"{count:11,}" for count in wheel))


if __name__ == "__main__":
    main()
