"""Results of a check as they are printed: one line each, counts, and what to do about the skipped."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from swizzle_sim.base.text import one_line, visible
from swizzle_sim.cli.output import line
from swizzle_sim.testing.codes import RULES
from swizzle_sim.testing.run import CheckResult

_MEANINGS = {rule.code: rule.meaning for rule in RULES}
_WORDS = {"passed": "ok", "failed": "FAILED", "error": "error", "skipped": "skipped"}
NOTHING = (
    "nothing to check: no function looks like a remap; name one, as FILE.py::FUNCTION, with --answer for the names "
    "that hold its tile, write '# swizzle-check' above one that takes the id and returns the tile, name another "
    "folder, or pass --allow-skips"
)
_SKIPPED = (
    "{n} not checked, which is no pass: write the comment that is shown above the function, '# swizzle: off' "
    "above what is no remap, keep what is known with --write-baseline FILE, or pass --allow-skips"
)


def print_results(results: Sequence[CheckResult], *, statistics: bool = False) -> None:
    """Print a line for each result, errors on stderr, or one for each code, and how many of each kind there are."""
    shown = [one for one in results if not one.is_known]
    if statistics:
        for (rule, meaning), count in Counter(
            (one.rule, _MEANINGS[one.rule]) for one in shown if one.rule
        ).most_common():
            print(f"{count:6}  {rule}  {meaning}")
    for one in [] if statistics else shown:
        if one.status == "error":
            print(f"swizzle-sim: {_shown(one)} [{one.rule}]", file=sys.stderr)
        else:
            word = f"{_WORDS[one.status]} {one.rule}".rstrip()
            line(f"{_place(one)}: {word}: {_shown(one)}")
    if len(results) > 1:
        counts = counted(results)
        words = _WORDS | {"known": "in the baseline"}
        print(
            f"{len(results)} found: " + ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key])
        )


def print_advice(results: Sequence[CheckResult]) -> None:
    """Say on stderr why a check without a counter-example is no pass."""
    skipped = counted(results)["skipped"]
    if skipped or not results:
        print(f"swizzle-sim: {_SKIPPED.format(n=skipped) if skipped else NOTHING}", file=sys.stderr)


def print_annotations(results: Sequence[CheckResult], *, json: bool) -> None:
    """Print GitHub's annotations where GitHub runs this: on stderr, which it reads too, if stdout is a document."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from swizzle_sim.testing.formats import github_annotations

        for line in github_annotations(results):
            print(line, file=sys.stderr if json else sys.stdout)


def counted(results: Sequence[CheckResult]) -> dict[str, int]:
    """How many results there are of each status, and how many a baseline knows."""
    found = Counter("known" if one.is_known else one.status for one in results)
    return {status: found[status] for status in (*_WORDS, "known")}


def document(results: Sequence[CheckResult]) -> dict[str, Any]:
    """JSON of results."""
    return {"results": [asdict(one) for one in results], "counts": counted(results)}


def _place(one: CheckResult) -> str:
    return one_line(one.file) + (f":{one.line}" if one.line else "")


def _shown(one: CheckResult) -> str:
    """Message without the place that stands before it; of a skipped function one line, with the comment to add."""
    said = re.sub(rf"\A{re.escape(one.file)}:(\d+):\d+: ", lambda at: _elsewhere(at[1], one), one.message)
    for raw in sorted({one.file, one.name, Path(one.file).name}, key=len, reverse=True):
        said = said.replace(raw, one_line(raw)) if raw else said
    if one.status == "skipped":
        name = "" if one.name in said else f"{one_line(one.name)}: "
        advice = f"; add: {one.advice}" if one.advice else ""
        said = f"{name}{said.partition(chr(10))[0]}{advice}"
    # what a file says is no workflow command of GitHub
    return "\n".join(re.sub(r"\A(\s*)(::|##\[)", r"\1\\\2", visible(line)) for line in said.splitlines())


def _elsewhere(line: str, one: CheckResult) -> str:
    if one.status == "error":
        return f"{one.file}:{line}: "
    return "" if int(line) == one.line else f"line {line}: "
