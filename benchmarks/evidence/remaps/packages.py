"""What `check` finds in folders of other people's code: one row a folder, then why functions were skipped.

python -m swizzle_benchmarks.evidence.remaps.packages FOLDER ...        # or files that `check --json` wrote

Nothing is fetched, imported or run: the folders are checkouts or unpacked wheels.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from swizzle_sim.testing.codes import RULES
from swizzle_sim.testing.folders import files_under
from swizzle_sim.testing.run import check_files

_HEAD = (
    "| folder | found | proved | tested | refuted | skipped | not read |\n| --- | --- | --- | --- | --- | --- | --- |\n"
)


def main() -> None:
    """Print the table."""
    given = [Path(word) for word in sys.argv[1:]]
    found = {path.stem if path.suffix == ".json" else path.name: list(_results(path)) for path in given}
    print(table(found))


def _results(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.suffix == ".json":
        yield from json.loads(path.read_text(encoding="utf-8"))["results"]
        return
    files = [(file, "") for file in files_under([path])]
    for of_file in check_files(files):
        yield from map(asdict, of_file)


def table(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Rows of folders, one for all, and the reasons of what is skipped."""
    every = [one for results in found.values() for one in results]
    rows = [_row(name, results) for name, results in found.items()] + [_row("all", every)]
    return _HEAD + "".join(rows) + "\n" + reasons(every)


def reasons(results: Iterable[Mapping[str, Any]]) -> str:
    """Table of what functions were skipped for."""
    meanings = {rule.code: rule.meaning for rule in RULES}
    counts = Counter(meanings[one["rule"]] for one in results if one["status"] == "skipped")
    lines = [f"| {reason} | {count} |\n" for reason, count in counts.most_common()]
    return "| skipped for | functions |\n| --- | --- |\n" + "".join(lines)


def _row(name: str, results: Iterable[Mapping[str, Any]]) -> str:
    counts = Counter(one["verdict"] or one["status"] for one in results)
    columns = [counts[key] for key in ("proved", "tested", "refuted", "skipped", "error")]
    return f"| {name} | {sum(counts.values())} | {' | '.join(map(str, columns))} |\n"


if __name__ == "__main__":
    main()
