"""Try published kernels, as their packages have them, and write ``pages/kernels-tried.md``.

python -m swizzle_benchmarks.evidence.kernels_tried FOLDER                # fetch packages, try all without a result
python -m swizzle_benchmarks.evidence.kernels_tried FOLDER liger:rope     # this one
python -m swizzle_benchmarks.evidence.kernels_tried FOLDER --again        # anew
python -m swizzle_benchmarks.evidence.kernels_tried --page [FOLDER]       # the page, from FOLDER's results if given

Results are in ``FOLDER/results.json`` after each command, so an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from .page import PAGE, RESULTS, page
from .sources import KERNELS, NotFetched, sources_beside
from .trying import STEPS, Limits, try_kernel

Rows = dict[str, dict[str, Any]]


def main() -> None:
    """Do what the command line asks for."""
    words = argparse.ArgumentParser(prog="python -m swizzle_benchmarks.evidence.kernels_tried", description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    words.add_argument("folder", nargs="?", type=Path)
    words.add_argument("kernels", nargs="*", metavar="MODULE:VARIABLE", help="of kernels.toml; by default all")
    words.add_argument("--steps", default=",".join(STEPS), help="of %(default)s")
    words.add_argument("--again", action="store_true", help="also what has a result")
    words.add_argument("--refused", action="store_true", help="also what was refused")
    words.add_argument("--limit-s", type=float, default=Limits.seconds, help="of a command (%(default)g)")
    words.add_argument("--memory-gib", type=float, default=Limits.gib, help="of a process (%(default)g)")
    words.add_argument("--max-minutes", type=float, default=Limits.search_minutes, help="of a search (%(default)g)")
    words.add_argument("--page", action="store_true", help="write the page")
    given = words.parse_intermixed_args()
    if given.folder is None and not given.page:
        words.error("name a folder for the packages, or --page")
    steps = tuple(given.steps.split(","))
    for name, all_names in ((set(given.kernels), set(KERNELS)), (set(steps), set(STEPS))):
        if not name <= all_names:
            words.error(f"{', '.join(name - all_names)}: one of {', '.join(sorted(all_names))}")
    if given.page:
        if given.folder is not None:
            _write(RESULTS, {**_read(RESULTS), **_read(given.folder / "results.json")})
        PAGE.write_text(page(_read(RESULTS)), encoding="utf-8")
        return
    limits = Limits(given.limit_s, given.memory_gib, given.max_minutes)
    sys.exit(_try_all(given, steps, limits))


def _try_all(given: argparse.Namespace, steps: tuple[str, ...], limits: Limits) -> int:
    """Try kernels; 1 where a source cannot be fetched."""
    root, failed = given.folder.resolve(), 0
    root.mkdir(parents=True, exist_ok=True)
    results = root / "results.json"
    for name in given.kernels or KERNELS:
        row = _read(results).get(name, {})
        drop = [step for step in steps if given.again or (given.refused and "refused" in row.get(step, {}))]
        row = {key: value for key, value in row.items() if key not in drop}
        try:
            for source in sources_beside(name):
                source.fetch(root)
        except NotFetched as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = 1
            continue

        def store(row: dict[str, Any], name: str = name) -> None:
            _write(results, {**_read(results), name: row})
            step = list(row)[-1]
            print(f"{name} {step}: {row[step]}", flush=True)

        try_kernel(name, root, limits, steps, row, store)
    return failed


def _read(path: Path) -> Rows:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _write(path: Path, rows: Rows) -> None:
    part = path.with_suffix(".part")
    part.write_text(
        json.dumps({name: rows[name] for name in KERNELS if name in rows}, indent=1) + "\n", encoding="utf-8"
    )
    part.replace(path)


if __name__ == "__main__":
    main()
