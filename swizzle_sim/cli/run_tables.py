"""``compare`` and ``export``: runs side by side, and their attempts as CSV, Parquet or an Optuna study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli.arguments import Json, offer, run_folders

if TYPE_CHECKING:
    from swizzle_sim.search.history import Attempt

TOP = 5  # of each run
SAME = (
    *("kernel", "kernel_digest", "problem", "gpu", "gpu_description", "replacement"),
    *("replay", "seed", "jitter_ns", "version"),
)
Runs = Annotated[
    list[Path],
    typer.Argument(metavar="RUN...", help="Run folders, finished or not.", autocompletion=offer(run_folders)),
]


def compare(runs: Runs, json: Json = False) -> None:
    """Compare runs: their settings, their best orders, and the same orders under each."""
    from swizzle_sim.cli.output import console, print_json
    from swizzle_sim.cli.runs import describe_run, print_runs
    from swizzle_sim.search.history import History
    from swizzle_sim.search.ranking import ranking_of
    from xcd_model.errors import RunError

    if len(runs) < 2:
        raise RunError("compare takes two runs or more; `swizzle-sim runs` lists them")
    abouts, scored = [], []
    for folder in runs:
        with History(folder) as history:
            abouts.append(history.about)
            scored.append(ranking_of(history.about, folder).order(history))
    differ = [key for key in SAME if any(about.get(key) != abouts[0].get(key) for about in abouts)]
    rows = _orders(scored)
    if json:
        listed = [{"swizzle": name, "scores": [one and one.as_dict() for one in scores]} for name, scores in rows]
        print_json({"runs": [describe_run(folder) for folder in runs], "differ": differ, "orders": listed})
        return
    print_runs("Runs", [describe_run(folder) for folder in runs])
    _print_orders([folder.name for folder in runs], rows)
    said = f"the runs differ in {', '.join(_spoken(differ))}: figures of one cannot be held against the other's"
    alike = "the runs have the same kernel, sizes, GPU, replay, seed and version: their figures compare"
    console(wide=True).print(said if differ else alike, markup=False)


def _spoken(differ: Sequence[str]) -> list[str]:
    """Settings that differ, without what follows from another."""
    follows = {"kernel_digest": "kernel", "gpu_description": "gpu"}
    return [key.replace("_", " ") for key in differ if follows.get(key) not in differ]


def _orders(scored: Sequence[Sequence[Attempt]]) -> list[tuple[str, list[Any]]]:
    """Score in each run, or None, of the launch order and of the best few of any run."""
    known = [{attempt.name: attempt.score for attempt in reversed(run)} for run in scored]
    launched = [next((one.name for one in run if one.number == 0), "") for run in scored]
    rows = [("launch order", [of.get(name) for of, name in zip(known, launched, strict=True)])]
    best = [one.name for place in range(TOP) for run in scored for one in run[place : place + 1] if one.number]
    return rows + [(name, [of.get(name) for of in known]) for name in dict.fromkeys(best)]


def _print_orders(names: Sequence[str], rows: Sequence[tuple[str, list[Any]]]) -> None:
    from swizzle_sim.cli.output import pct, table

    letters = [f"({number})" for number in range(1, len(names) + 1)]
    heads = [f"{letter}\n{of}" for letter in letters for of in ("L2 hit\nrate [%]", "time\n[µs]")]
    cells = []
    for name, scores in rows:
        figures = [(pct(one.l2_hit_rate), f"{one.time_us:.1f}") if one else ("-", "-") for one in scores]
        cells.append([name, *(cell for pair in figures for cell in pair)])
    named = ", ".join(f"{letter} {name}" for letter, name in zip(letters, names, strict=True))
    note = f"{named}; simulated; a dash: the run did not score this order"
    table(f"The best {TOP} of each, in all", ["swizzle", *heads], cells, note=note)


def export(
    runs: Runs,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="FILE.csv, FILE.parquet, or FILE.db: an Optuna study.")
    ],
    json: Json = False,
) -> None:
    """Write every attempt of runs as a table: CSV, Parquet, or a study that optuna-dashboard opens."""
    from swizzle_sim.base.atomic_write import write_whole
    from swizzle_sim.cli.output import console, print_json
    from swizzle_sim.search.export import FORMATS, attempts_table, csv_of, parquet_of, write_study
    from swizzle_sim.search.history import History
    from xcd_model.errors import RunError

    form = FORMATS.get(out.suffix.lower())
    if form is None:
        raise RunError(f"{out}: the name says the format: {', '.join(FORMATS)}")
    count = 0
    if form == "study":
        for folder in runs:
            with History(folder) as history:
                count += write_study(out, history)
    else:
        found = attempts_table(runs)
        count = len(found)
        write_whole(out, csv_of(found) if form == "csv" else parquet_of(found))
    if json:
        print_json({"runs": [str(folder) for folder in runs], "written": str(out), "attempts": count})
        return
    console(wide=True).print(f"written: {out} ({count} attempts)", markup=False)
    if form == "study":
        console(wide=True).print(f"  next: optuna-dashboard sqlite:///{out}", markup=False)
