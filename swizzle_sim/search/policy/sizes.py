"""Sizes of a policy, from a grid of values, a table of calls or a recording, and what the replay says of each.

One `Case` is one size: its names and counts, how often it is called, and the score of every order there.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from swizzle_sim.capture.recording import launches_of
from swizzle_sim.language import Swizzle
from swizzle_sim.language.lattice import kind_of_grid
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.sweep import MOST_POINTS, scorer_of
from xcd_model.errors import LanguageError, NotBijective, SearchError, SizeError, SwizzleSimError, UnknownName
from xcd_model.files import read_text

LAUNCHED = "launch order"
CALLS = "calls"  # column of a table of calls


@dataclass(frozen=True)
class Size:
    """One size to ask for: the kernel as a command takes it, its sizes, and how often it is called."""

    kernel: str
    sizes: Mapping[str, int]
    calls: float = 1.0


@dataclass(frozen=True)
class Case:
    """One size as it was replayed."""

    label: str
    values: Mapping[str, int]  # sizes and counts of tiles by the names that a condition may read
    calls: float
    work_class: str
    kind: str  # of its launch, as a proof takes it
    scores: Mapping[str, Score]  # by name of the order, `LAUNCHED` among them; those that are no bijection have none


def grid_of(known: Mapping[str, int], over: str, values: Sequence[Sequence[int]]) -> list[dict[str, int]]:
    """Sizes of a grid: names between commas vary on their own, those joined by a plus sign together.

    One list of ``values`` serves all, or each has one.
    """
    groups = [[name.strip() for name in part.split("+")] for part in over.split(",")]
    for name in (name for group in groups for name in group):
        if name not in known:
            raise UnknownName("size of the kernel", name, known)
    if len(values) not in (1, len(groups)):
        raise SearchError(f"{len(values)} --values for the {len(groups)} parts of --over {over}: one, or one each")
    each = list(values) * (len(groups) if len(values) == 1 else 1)
    found = [
        {name: value for group, value in zip(groups, chosen, strict=True) for name in group}
        for chosen in product(*each)
    ]
    if len(found) > MOST_POINTS:
        raise SearchError(f"{len(found)} sizes: a policy has up to {MOST_POINTS}; take larger steps", code="sweep")
    return found


def csv_rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Rows of a CSV file by its columns, each with its line."""
    try:
        reader = csv.DictReader(read_text(path, encoding="utf-8-sig").splitlines(), strict=True)
        rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SearchError(f"{path}: cannot be read as CSV ({error})", code="calls") from None
    if not rows:
        raise SearchError(f"{path}: no rows; a table of calls has a line of names, then sizes", code="calls")
    return rows


def called(where: str, row: Mapping[str, str]) -> tuple[dict[str, int], float]:
    """Sizes of a row, and how often they are called."""
    try:
        sizes = {name: int(value) for name, value in row.items() if name != CALLS}
        calls = float(row.get(CALLS) or 1)
    except (TypeError, ValueError):
        raise SearchError(f"{where}: a size is an integer, and calls a number", code="calls") from None
    if not 0 < calls < float("inf"):
        raise SizeError(f"{where}: calls = {row[CALLS]}: a positive number")
    return sizes, calls


def table_of_calls(path: Path, known: Mapping[str, int]) -> list[tuple[dict[str, int], float]]:
    """Sizes and counts of a CSV file, whose columns are names of sizes, and ``calls``; equal sizes are added up."""
    rows = csv_rows(path)
    for name in rows[0][1]:
        if name != CALLS and name not in known:
            raise UnknownName(f"column of {path.name}", str(name), [*known, CALLS])
    found: dict[tuple[tuple[str, int], ...], float] = {}
    for line, row in rows:
        sizes, calls = called(f"{path}:{line}", row)
        key = tuple(sizes.items())
        found[key] = found.get(key, 0) + calls
    return [(dict(sizes), calls) for sizes, calls in found.items()]


def recorded_sizes(path: Path, function: str = "") -> list[Size]:
    """Launches of one kernel in a recording, or in all recordings of a folder, each with its count."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise SearchError(f"{path}: no recording there; swizzle_sim.record writes FILE.json", code="calls")
    every = [(file, *one) for file in files for one in launches_of(file)]
    kernels = dict.fromkeys(kernel for _, _, kernel, _ in every)
    if function and function not in kernels:
        raise UnknownName(f"kernel of {path.name}", function, kernels)
    if not function and len(kernels) > 1:
        raise SearchError(f"{path} has {len(kernels)} kernels: add --function, one of {', '.join(kernels)}")
    return [
        Size(f"{file.resolve()}:{name}", {}, count)
        for file, name, kernel, count in every
        if kernel == (function or kernel)
    ]


def judged(point: Mapping[str, Any], scored: Callable[[Scorer, Swizzle], Score] = Scorer.score) -> dict[str, Any]:
    """What the replay says of a point, in any process: whole scores, and what a rule may read."""
    try:
        scorer = scorer_of(point)
        scores: dict[str, Any] = {LAUNCHED: scorer.baseline.as_dict()}
    except SwizzleSimError as error:
        return {"error": str(error)}
    if scorer.kernel.waits:
        return {
            "error": f"{scorer.kernel.name}: its tiles wait for others, of which a proof for all sizes says nothing"
        }
    for name, source in point["swizzles"]:
        try:
            scores[name] = scored(scorer, Swizzle.parse(source, name=name)).as_dict()
        except (NotBijective, LanguageError):
            continue  # not an order here: it has no score, and no rule chooses it
    kernel = scorer.kernel
    about = {"problem": dict(kernel.problem), "counts": dict(kernel.grid.counts), "kind": kind_of_grid(kernel.grid)}
    return {"error": "", **about, "work_class": scorer.work_class, "scores": scores}


def cases_of(sizes: Sequence[Size], rows: Sequence[Mapping[str, Any]]) -> Iterator[Case]:
    """Cases of the sizes that were replayed; the others say why not, and are left out by the caller."""
    told = [{**row["problem"], **row["counts"]} if not row["error"] else {} for row in rows]
    fixed = {name for name in set().union(*told) if len({one[name] for one in told if name in one}) == 1}
    for size, row, values in zip(sizes, rows, told, strict=True):
        if row["error"]:
            continue
        shown = {name: value for name, value in row["problem"].items() if name not in fixed}
        scores = {name: Score.from_dict(dict(one)) for name, one in row["scores"].items()}
        label = " ".join(f"{name}={value}" for name, value in shown.items()) or "the only size"
        yield Case(label, values, size.calls, row["work_class"], row["kind"], scores)
