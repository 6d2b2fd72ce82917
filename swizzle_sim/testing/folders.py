"""The files of a folder that are to be checked: not the hidden ones, nor what ``.gitignore`` or the caller excludes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pathspec import GitIgnoreSpec

from swizzle_sim.testing.files import SUFFIXES
from swizzle_sim.triton_source.likeness import MAY_HOLD_A_REMAP
from xcd_model.errors import OptionError
from xcd_model.files import read_bytes

# A swizzle differs from any other .txt in a folder by an assignment to a name that may be the answer, or a mark.
_A_SWIZZLE = re.compile(
    rb"^[ \t]*(#[ \t]*swizzle(-check|:)|(pid|pid_[mnxyz]|[xyz])[ \t]*(=|,|[-+*/%&|^<>]+=)[^=])", re.MULTILINE
)

Rules = tuple[tuple[Path, GitIgnoreSpec], ...]  # the last that says something about a path decides, as in git


def files_under(paths: Iterable[Path], *, exclude: Iterable[str] = ()) -> list[Path]:
    """Return files, and what is to be checked in folders, however deep."""
    try:
        excluded = GitIgnoreSpec.from_lines(exclude)
    except ValueError as error:
        raise OptionError(f"--exclude: {error}") from None
    found: list[Path] = []
    for path in paths:
        found += sorted(_inside(path, excluded)) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def _inside(folder: Path, excluded: GitIgnoreSpec) -> Iterator[Path]:
    unlisted: list[Path] = []
    rules = {folder: (*_rules_above(folder), *_rules_in(folder))}
    for where, folders, files in os.walk(folder, onerror=lambda error: unlisted.append(Path(error.filename))):
        here = Path(where)
        last: Rules = ((folder, excluded),)  # the caller's pattern wins over a file's
        folders[:] = [one for one in folders if not _left_out(here / one, (*rules[here], *last), "/")]
        for one in folders:
            rules[here / one] = (*rules[here], *_rules_in(here / one))
        for name in files:
            path = here / name
            if path.suffix not in SUFFIXES or not path.is_file() or _left_out(path, (*rules[here], *last)):
                continue
            needed = {".txt": _A_SWIZZLE, ".py": MAY_HOLD_A_REMAP}.get(path.suffix)
            if needed is None or _holds(path, needed):
                yield path
    yield from unlisted


def _rules_in(folder: Path) -> Rules:
    """Rules of a folder's own ``.gitignore``; none where it has none that can be read."""
    try:
        lines = read_bytes(folder / ".gitignore").decode(errors="replace").splitlines()
        return ((folder, GitIgnoreSpec.from_lines(lines)),)
    except (OSError, ValueError):
        return ()


def _rules_above(folder: Path) -> Rules:
    """Rules of the folders above, up to the root of the checkout; none outside of one."""
    here = Path(os.path.abspath(folder))  # as typed: a link that is resolved may lie in another checkout
    root = next((k for k, one in enumerate([here, *here.parents]) if (one / ".git").exists()), 0)
    rules = tuple(rule for one in reversed(list(here.parents)[:root]) for rule in _rules_in(one))
    return () if _ignored(here, rules, "/") else rules  # a folder that is named itself is not left out


def _left_out(path: Path, rules: Rules, end: str = "") -> bool:
    return path.name.startswith(".") or _ignored(path, rules, end)


def _ignored(path: Path, rules: Rules, end: str) -> bool:
    answer = False
    for base, spec in rules:
        inside = path if path.is_relative_to(base) else Path(os.path.abspath(path))
        said = spec.check_file(inside.relative_to(base).as_posix() + end).include
        answer = answer if said is None else said
    return answer


def _holds(path: Path, what: re.Pattern[bytes]) -> bool:
    """Whether a file holds bytes, or is no file of text that can be read: then reading it says why."""
    try:
        data = read_bytes(path)
    except OSError:
        return True
    return b"\0" in data or what.search(data) is not None
