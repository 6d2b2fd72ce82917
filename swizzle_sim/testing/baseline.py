"""A baseline: the findings that a repository has when it begins to check, so that only new ones fail.

A line each, ``CODE PATH::NAME``, sorted, with paths from the folder of the file: lines of a source may move, and a
review shows what a change adds or mends. Two findings of one name are two lines.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from swizzle_sim.base.text import one_line
from swizzle_sim.testing.run import CheckResult
from xcd_model.errors import OptionError
from xcd_model.files import read_text

_ENTRY = re.compile(r"SW\d{3} (.+)::[^:]*$")
_HEAD = "# Known findings of swizzle-sim check, as --write-baseline has them: a line that is removed fails again.\n"


def written(results: Sequence[CheckResult], path: Path) -> bytes:
    """Return the baseline of results, to be stored at a path."""
    return "".join([_HEAD, *sorted(f"{_key(one, path)}\n" for one in results if one.rule)]).encode()


def against(results: Sequence[CheckResult], path: Path, checked: Iterable[Path]) -> tuple[list[CheckResult], list[str]]:
    """Results with those marked that a baseline knows, and its entries in checked places that are found no more."""
    try:
        lines = [line for line in read_text(path).splitlines() if line and not line.startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise OptionError(f"--baseline {path}: cannot be read ({said}); --write-baseline {path} makes it") from None
    strange = next((line for line in lines if not _ENTRY.match(line)), "")
    if strange:
        raise OptionError(f"--baseline {path}: {strange[:60]!r} is no entry, such as SW101 src/remap.py::naive")
    known = Counter(lines)
    marked = []
    for one in results:
        key = _key(one, path) if one.rule else ""
        marked.append(replace(one, is_known=known[key] > 0) if key else one)
        known[key] -= 1
    places = [os.path.abspath(one) for one in checked]
    return marked, [line for line in sorted((+known).elements()) if _lies_in(line, path, places)]


def _lies_in(line: str, path: Path, places: Iterable[str]) -> bool:
    """Whether the file of an entry is one of these places, or in one."""
    file = Path(os.path.abspath(path.parent / _ENTRY.sub(r"\1", line)))
    return any(file.is_relative_to(place) for place in places)


def _key(one: CheckResult, path: Path) -> str:
    file = os.path.relpath(one.file, path.parent).replace(os.sep, "/")
    return f"{one.rule} {one_line(file)}::{one_line(one.name.rpartition('::')[2])}"
