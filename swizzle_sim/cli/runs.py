"""``runs``, ``export`` and ``report``: the stored runs, side by side, as tables, and the page of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import Json, argument, option, run_folders
from swizzle_sim.cli.output import line, pct, print_json, sizes_text, table
from swizzle_sim.search.history import FILE, History, runs_in
from swizzle_sim.search.ranking import ranking_of
from xcd_model.errors import RunError, SwizzleSimError

if TYPE_CHECKING:
    from swizzle_sim.search.history import Attempt

WATCH_S = 30
TOP = 5  # of each run
SAME = (
    *("kernel", "kernel_digest", "problem", "gpu", "gpu_description", "replacement"),
    *("replay", "seed", "jitter_ns", "version"),
)
FOLLOWS = {"kernel_digest": "kernel", "gpu_description": "gpu"}  # settings that follow from another
Runs = Annotated[list[Path], argument("RUN...", "Run folders, finished or not.", run_folders)]


def runs(
    folders: Annotated[
        list[Path] | None,
        argument("FOLDER|RUN ...", "Folder of runs, by default runs; or runs to compare.", run_folders),
    ] = None,
    json: Json = False,
) -> None:
    """List runs, finished or not; of several runs, compare settings, best orders, and the same orders under each."""
    if folders and len(folders) > 1:
        _compare(folders, json)
        return
    (folder,) = folders or [Path("runs")]
    found = [describe_run(path) for path in runs_in(folder)]
    if json:
        print_json({"runs": found})
        return
    if not found:
        line(f"no runs in {folder}; make one: swizzle-sim optimize gemm")
        return
    print_runs(f"Runs in {folder}", found)


def print_runs(title: str, found: list[dict[str, Any]]) -> None:
    """Print a row for each run, as `describe_run` describes it."""
    rows = [
        (
            r["run"],
            r.get("best") or "-",
            r.get("error") or f"{_name(r)} {_sizes(r)} on {r.get('gpu', '-')}",
            pct(r.get("best_l2_hit_rate")),
            "-" if (gain := r.get("gain_l2_hit_rate")) is None else f"{100 * gain:+.2f}",
            f"{r['speedup']:.3f}" if r.get("speedup") else "-",
            r.get("replay", "-"),
            r.get("proposer", "-"),
            r["state"],
            str(r.get("attempts", "-")),
            r.get("written", "-").replace("T", " ")[5:16],
        )
        for r in found
    ]
    columns = (
        *("run", "best", "what", "L2 hit\nrate [%]", "gained\n[pt]", "speedup", "replay", "proposer", "state"),
        *("attempts", "date"),
    )
    table(title, columns, rows, left=3)


def _name(found: dict[str, Any]) -> str:
    """Kernel of a run, and the file it came from."""
    file = found.get("kernel_file")
    return f"{found['kernel']} ({Path(file).name})" if file else found.get("kernel", "-")


def _sizes(found: dict[str, Any]) -> str:
    """Sizes of a run that are not the kernel's default."""
    from swizzle_sim.workload.kernels import kernel

    problem = found.get("problem", {})
    try:
        usual = {} if found["kernel_file"] else kernel(found["kernel"]).problem
    except (KeyError, SwizzleSimError):
        usual = {}
    return sizes_text({name: size for name, size in problem.items() if usual.get(name) != size})


def describe_run(path: Path) -> dict[str, Any]:
    """Settings, state and best of a run, JSON-ready; of a damaged one the error."""
    try:
        with History(path) as history:
            attempts, at = list(history), (path / FILE).stat().st_mtime
            best = next(iter(ranking_of(history.about, path).order(attempts)), None)
            score, baseline = best.score if best else None, attempts[0].score if attempts else None
            return {
                "run": str(path),
                "state": history.state,
                **{key: history.about[key] for key in ("kernel", "gpu", "problem", "replay", "version")},
                "kernel_file": history.about.get("kernel_file") or None,
                "proposer": ", ".join(sorted({one.proposer for one in attempts[1:]})) or "-",
                "written": datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds"),
                "attempts": len(attempts),
                "best": best.name if best else None,
                "best_l2_hit_rate": score.l2_hit_rate if score else None,
                "gain_l2_hit_rate": score.l2_hit_rate - baseline.l2_hit_rate if score and baseline else None,
                "speedup": score.speedup if score else None,
            }
    except RunError as error:
        return {"run": str(path), "state": "damaged", "error": str(error)}


def report(
    run: Annotated[Path, argument("RUN", "Run folder, finished or interrupted.", run_folders)],
    open_: Annotated[bool, option("--open", help="Open the page in the browser.")] = False,
    watch: Annotated[
        bool, option("--watch", help="Write it anew until the run ends; the page in the browser reloads itself.")
    ] = False,
    json: Json = False,
) -> None:
    """Write the report of a run: report.html, pictures, and the best swizzle as text, Triton and HIP."""
    from swizzle_sim.report import write_report

    with History(run) as history, Progress("drawing the report"):
        going_on = watch and history.state == "running"
        page = write_report(history, refresh_s=WATCH_S if going_on else 0)
    if json:
        print_json({"run": str(run), "report": str(page)})
    else:
        line(f"written: {page}")
    if open_:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    if going_on:
        _watch(run)


def _watch(run: Path) -> None:
    """Write the page of a run anew as it goes on; return when it is over."""
    import time

    from swizzle_sim.report import write_report
    from swizzle_sim.search.recorded import recorded_scorer

    with History(run) as history, Progress("watching", "attempts") as progress:
        scorer, told = recorded_scorer(history.about), 0
        while history.state == "running":
            if (count := len(history)) > told:
                write_report(history, scorer, refresh_s=WATCH_S)
            progress(count)
            told = count
            time.sleep(WATCH_S)
        write_report(history, scorer)


def _compare(runs: Sequence[Path], json: bool) -> None:
    """Print the settings and best orders of runs, and the same orders under each."""
    abouts, scored, answers = [], [], []
    for folder in runs:
        with History(folder) as history, Progress("reading the runs"):
            abouts.append(history.about)
            scored.append(ranking_of(history.about, folder).order(history))
            answers.append(_answer(history))
    differ = [key for key in SAME if any(about.get(key) != abouts[0].get(key) for about in abouts)]
    rows = _orders(scored)
    if json:
        listed = [{"swizzle": name, "scores": scores} for name, scores in rows]
        found = [{**describe_run(folder), "answer": answer} for folder, answer in zip(runs, answers, strict=True)]
        print_json({"runs": found, "differ": differ, "orders": listed})
        return
    for number, answer in enumerate(answers, 1):
        line(f"({number}) {answer}", style="bold")
    print_runs("Runs", [describe_run(folder) for folder in runs])
    _print_orders([folder.name for folder in runs], rows)
    spoken = [key.replace("_", " ") for key in differ if FOLLOWS.get(key) not in differ]
    said = f"the runs differ in {', '.join(spoken)}: figures of one cannot be held against the other's"
    alike = "the runs have the same kernel, sizes, GPU, replay, seed and version: their figures compare"
    line(said if differ else alike)


def _answer(history: History) -> str:
    """What to do by a run, as `optimize` said at its end, or why that cannot be told any more."""
    from swizzle_sim.search.advice import advise_run
    from swizzle_sim.search.recorded import recorded_scorer

    try:
        attempts, ranking = list(history), ranking_of(history.about, history.folder)
        return advise_run(recorded_scorer(history.about), ranking, attempts).what if attempts else "nothing is stored"
    except SwizzleSimError as error:
        return f"no answer: {str(error).splitlines()[0]}"


def _orders(scored: Sequence[Sequence[Attempt]]) -> list[tuple[str, list[Any]]]:
    """Score in each run, or None, of the launch order and of the best few of any run."""
    known = [{attempt.name: attempt.score for attempt in reversed(run)} for run in scored]
    launched = [next((one.name for one in run if one.number == 0), "") for run in scored]
    rows = [("launch order", [of.get(name) for of, name in zip(known, launched, strict=True)])]
    best = [one.name for place in range(TOP) for run in scored for one in run[place : place + 1] if one.number]
    return rows + [(name, [of.get(name) for of in known]) for name in dict.fromkeys(best)]


def _print_orders(names: Sequence[str], rows: Sequence[tuple[str, list[Any]]]) -> None:
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
    out: Annotated[Path, option("--out", "-o", metavar="FILE", help="FILE.csv or FILE.parquet.")],
    json: Json = False,
) -> None:
    """Write every attempt of runs as a table: CSV or Parquet."""
    from swizzle_sim.search.history import FORMATS, attempts_table

    form = FORMATS.get(out.suffix.lower())
    if form is None:
        raise RunError(f"{out}: the name says the format: {', '.join(FORMATS)}")
    found = attempts_table(runs)
    write_whole(out, form(found))
    if json:
        print_json({"runs": [str(folder) for folder in runs], "written": str(out), "attempts": len(found)})
        return
    line(f"written: {out} ({len(found)} attempts)")
