"""``optimize``: a search, its table, and its run folder."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli.arguments import GpuName, Json, Launch, Sizes, grouped, known_kernels, offer, one_folder
from swizzle_sim.cli.proposer_options import LlmOptions, Proposer, RunOptions, SearchOptions, check_options

if TYPE_CHECKING:
    from swizzle_sim.cli.rewrite import Written
    from swizzle_sim.history import Attempt
    from swizzle_sim.kernels import Kernel
    from swizzle_sim.proposers import Proposed
    from swizzle_sim.scoring import Scorer
    from swizzle_sim.search import Run
    from xcd_model import Gpu

RUNS = "runs"
TOP = 5
WORTH_SAYING_S = 20.0  # of an estimate
RANKED_BY = ["l2_hit_rate"]  # the objective whose ranking uncertain constants are tested against

KernelName = Annotated[
    str | None,
    typer.Argument(
        metavar="KERNEL",
        help="Kernel, such as gemm; not needed with --replay RUN.",
        autocompletion=offer(known_kernels),
    ),
]


@grouped
def optimize(
    kernel: KernelName = None,
    sizes: Sizes = None,
    gpu: GpuName = "mi300x",
    proposer: Proposer = "families",
    run: RunOptions = RunOptions(),
    search: SearchOptions = SearchOptions(),
    llm: LlmOptions = LlmOptions(),
    json: Json = False,
) -> None:
    """Try swizzles on a kernel and rank them: known families, a search of templates, or proposals of a model."""
    from xcd_model.errors import SizeError

    one_folder(run.out, run.resume)
    repeat = _run_to_repeat(run.replay)
    if kernel is None and repeat is None:
        raise SizeError("name a kernel, such as gemm; `swizzle-sim kernels` lists them")
    launch = Launch(str(kernel), sizes, gpu)
    if search.tune is not None:
        from swizzle_sim.cli.tuning import tune_kernel

        tune_kernel(search.tune, launch, run, llm.given(), search.given(), json)
        return
    if repeat is not None:
        _propose("llm", None, None, run, repeat, {**llm.given(), **search.given()}, json)
        return
    check_options(proposer, llm.given(), search.given())
    work, device = launch.load()
    if proposer == "families":
        _try_families(work, device, run, llm.max_minutes, json)
    else:
        _propose(proposer, work, device, run, None, {**llm.given(), **search.given()}, json)


def _run_to_repeat(replay: str | None) -> Path | None:
    """Folder of a recorded run, where ``--replay`` names one rather than a replay.

    Raises
    ------
    RunError
        If it names neither.
    """
    from swizzle_sim.history import FILE
    from swizzle_sim.replaying import REPLAYS
    from xcd_model.errors import RunError

    if replay is None or replay in REPLAYS:
        return None
    if not os.path.isfile(os.path.join(replay, FILE)):
        raise RunError(f"{replay}: neither lockstep nor timed, nor a folder with a run; `swizzle-sim runs` lists runs")
    return Path(replay)


def next_folder(where: Path, stem: str) -> Path:
    """First ``where/stem-NNN`` that does not exist; characters unsafe in file names are replaced by dashes."""
    number, stem = 1, re.sub(r"[^\w.+-]+", "-", stem)
    while (where / f"{stem}-{number:03d}").exists():
        number += 1
    return where / f"{stem}-{number:03d}"


def _try_families(work: Kernel, device: Gpu, given: RunOptions, max_minutes: float | None, json: bool) -> None:
    """Try the known families."""
    from swizzle_sim.progress import Progress
    from swizzle_sim.scoring import Scorer
    from swizzle_sim.search import optimize as search

    folder = given.resume or given.out or next_folder(Path(RUNS), f"{work.name}-{device.name}")
    settings: dict[str, Any] = {"replay": given.replay or "lockstep", "seed": given.seed, "jitter_ns": given.jitter}
    best, began = 0.0, time.monotonic()

    def on_attempt(attempt: Attempt, done: int, total: int) -> None:
        nonlocal best
        if done == 1 and (estimate := _estimate(attempt, total, given.threads)):
            print(estimate, file=sys.stderr, flush=True)
        best = max(best, attempt.score.l2_hit_rate if attempt.score else 0.0)
        progress(done, total, note=f"best L2 hit rate {100 * best:.2f} %")

    try:
        with Progress(f"optimizing {work.name} on {device.title}", "candidates") as progress:
            run = search(
                work,
                device,
                folder,
                **settings,
                threads=given.threads,
                resume=given.resume is not None,
                command=_command(),
                on_attempt=on_attempt,
                max_minutes=max_minutes,
            )
        scorer = Scorer(work, device, **settings)
        if max_minutes is not None and time.monotonic() - began > 60 * max_minutes:
            print(f"stopped after {max_minutes:g} minutes: --resume {folder} goes on", file=sys.stderr)
        written, stability = _conclude(run, scorer, given.uncertainty)
    except KeyboardInterrupt:
        _print_so_far(folder, Scorer(work, device, **settings), json)
        _interrupted(folder, given)
    if json:
        _print_json(run, scorer, written, stability)
    else:
        _print_run(run, scorer, written, stability)


def _estimate(first: Attempt, total: int, threads: int | None) -> str:
    """How long the rest may take, by the launch order's replay; empty where that is soon."""
    seconds = first.cost_ms / 1e3 * (total - 1) / (threads or os.cpu_count() or 1)
    if seconds < WORTH_SAYING_S:
        return ""
    return f"{total} candidates at about {first.cost_ms / 1e3:.1f} s: about {max(1, round(seconds / 60))} min at most"


def _print_so_far(folder: Path, scorer: Scorer, json: bool) -> None:
    """Print the table of a run that was interrupted, if any of it was scored."""
    from swizzle_sim.history import History
    from swizzle_sim.search import Run

    with History(folder) as history:
        attempts = tuple(history)
    if not any(attempt.score for attempt in attempts):
        return
    if json:
        _print_json(Run(folder, attempts), scorer, None, None)
    else:
        _print_run(Run(folder, attempts), scorer, None, None)


def _propose(
    name: str,
    work: Kernel | None,
    device: Gpu | None,
    given: RunOptions,
    repeat: Path | None,
    options: dict[str, Any],
    json: bool,
) -> None:
    """Run a proposer of the registry, or repeat a run of it."""
    from swizzle_sim.cli.output import say
    from swizzle_sim.proposers import Task, load_proposer

    run = load_proposer(name)
    stem = f"{work.name}-{device.name}-{name}" if work and device else f"{Path(str(repeat)).resolve().name}-again"
    folder = given.resume or given.out or next_folder(Path(RUNS), stem)
    task = Task(
        kernel=work,
        gpu=device,
        folder=folder,
        replay=given.replay or "timed",
        seed=given.seed,
        jitter_ns=given.jitter,
        resume=given.resume is not None,
        repeat=repeat,
        command=_command(),
        options=options,
        say=say,
    )
    try:
        found = run(task)
        _print_proposed(found, given.uncertainty, json)
    except KeyboardInterrupt:
        _interrupted(folder, given)


def _command() -> str:
    return "swizzle-sim " + shlex.join(sys.argv[1:])


def _interrupted(folder: Path, given: RunOptions) -> None:
    """Print the command that goes on with a run, and exit; nothing was stored yet where there is no run."""
    from swizzle_sim.history import FILE

    if not (folder / FILE).is_file():
        raise KeyboardInterrupt
    words = list(sys.argv[1:])
    if given.out is not None:
        at = next(i for i, word in enumerate(words) if word in ("--out", "-o") or word.startswith(("--out=", "-o")))
        del words[at : at + (2 if words[at] in ("--out", "-o") else 1)]
    more = [] if given.resume else ["--resume", str(folder)]
    print(f"\ninterrupted; go on with: {shlex.join(['swizzle-sim', *words, *more])}", file=sys.stderr)
    raise typer.Exit(130) from None


def _conclude(run: Run, scorer: Scorer, uncertainty: bool) -> tuple[Written | None, dict[str, Any] | None]:
    """Rewrite a user's kernel, test the ranking, and write the report, which shows both."""
    from swizzle_sim.cli.rewrite import rewrite_best
    from swizzle_sim.history import History
    from swizzle_sim.report import write_report
    from swizzle_sim.report.rank_stability import check_finalists

    written = rewrite_best(run, scorer.kernel, scorer.gpu) if scorer.kernel.file else None
    stability = check_finalists(run, scorer) if uncertainty else None
    with History(run.folder) as history:
        write_report(history, scorer)
    return written, stability


def _counts(run: Run) -> dict[str, int]:
    refused = sum(not a.verdict.get("bijective", False) for a in run.attempts)
    scored = sum(a.score is not None for a in run.attempts)
    duplicates = len(run.attempts) - scored - refused
    return {"tried": len(run.attempts), "scored": scored, "refused": refused, "duplicates": duplicates}


def _top(run: Run) -> list[Attempt]:
    """Best candidates without the launch order, which has a row of its own."""
    return [attempt for attempt in run.ranked if attempt.number != run.baseline.number][:TOP]


def _entry(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "name": attempt.name,
        "source": attempt.source,
        "verdict": dict(attempt.verdict),
        "score": attempt.score.as_dict() if attempt.score else None,
    }


def _print_json(run: Run, scorer: Scorer, written: Written | None, stability: dict[str, Any] | None) -> None:
    from swizzle_sim.cli.output import print_json, scored_on

    print_json(
        {
            **scored_on(scorer),
            "run": str(run.folder),
            **_counts(run),
            "baseline": _entry(run.baseline),
            "best": [_entry(attempt) for attempt in _top(run)],
            "uncertainty": stability,
            **(written.as_dict() if written else {}),
        }
    )


def _print_run(run: Run, scorer: Scorer, written: Written | None, stability: dict[str, Any] | None) -> None:
    from swizzle_sim.cli.output import SCORE_COLUMNS, SIMULATED, score_cells, sizes_text, table
    from swizzle_sim.search import is_settled
    from swizzle_sim.swizzle.verdict import unconditional

    shown = [("", "launch order", run.baseline), *((str(i + 1), a.name, a) for i, a in enumerate(_top(run)))]
    rows = [[place, name, *score_cells(a.score)] for place, name, a in shown if a.score]
    domains = [str(a.verdict["domain"]) for _, _, a in shown if a.score]
    columns = ["", "swizzle", *SCORE_COLUMNS]
    if not all(unconditional(domain) for domain in domains):
        columns.insert(2, "valid where")
        rows = [[*row[:2], domain, *row[2:]] for row, domain in zip(rows, domains, strict=True)]
    title = f"{scorer.kernel.name} {sizes_text(scorer.kernel.problem)} on {scorer.gpu.title}"
    table(title, columns, rows, left=len(columns) - len(SCORE_COLUMNS), note=SIMULATED[scorer.replay])
    counts = _counts(run)
    lines = [
        f"{counts['tried']} candidates tried: {counts['scored']} scored, "
        f"{counts['duplicates']} repeat another's permutation, {counts['refused']} refused"
    ]
    if run.best.number == run.baseline.number:
        lines.append("no candidate beats the launch order: best.* hold the identity")
    if len(run.attempts) == 1 and is_settled(scorer):
        lines.append(
            "workgroups share next to nothing: the launch order is within 0.1 % of the bound, and no other was tried"
        )
    _print_end(run.folder, lines, stability, written, "pictures, history")


def _print_proposed(found: Proposed, uncertainty: bool, json: bool) -> None:
    """Print the result of a proposer."""
    from swizzle_sim.cli.output import SCORE_COLUMNS, SIMULATED, print_json, score_cells, sizes_text, table
    from swizzle_sim.history import History
    from swizzle_sim.recorded import recorded_scorer

    run = found.run
    with History(run.folder) as history:
        about = history.about
    by_rate = found.document.get("objectives", RANKED_BY) == RANKED_BY
    written, stability = _conclude(run, recorded_scorer(about), uncertainty and by_rate)
    if json:
        document: dict[str, Any] = {key: about[key] for key in ("kernel", "gpu", "problem", "replay", "seed")}
        document |= {"kind": "simulated", "run": str(run.folder), "uncertainty": stability}
        print_json({**document, **found.document, **(written.as_dict() if written else {})})
        return
    rows = [
        [label, attempt.name, *score_cells(attempt.score)] if attempt and attempt.score else [label, "-", *"------"]
        for label, attempt in found.beside
    ]
    title = f"{about['kernel']} {sizes_text(about['problem'])} on {about['gpu']}"
    table(title, ["", "swizzle", *SCORE_COLUMNS], rows, left=2, note=SIMULATED[about["replay"]])
    has_transcript = (run.folder / "transcript.sqlite").exists()
    _print_end(run.folder, list(found.lines), stability, written, "transcript" if has_transcript else "history")


def _print_end(
    folder: Path, lines: list[str], stability: dict[str, Any] | None, written: Written | None, more_files: str
) -> None:
    """Print what stands below the table: remarks, files, and what to type next."""
    from swizzle_sim.cli.output import console
    from swizzle_sim.report.rank_stability import stability_lines

    files = f"written: {folder}/ (report.html, best.txt, best_triton.py, best.hip, {more_files})"
    out = console(wide=True)
    for line in (
        *lines,
        *(stability_lines(stability) if stability else ()),
        files,
        *(written.lines if written else ()),
    ):
        out.print(line, markup=False)
    if more_files == "transcript":
        out.print(f"repeat it with no model: swizzle-sim optimize --replay {shlex.quote(str(folder))}", markup=False)
    else:
        out.print(f"next: swizzle-sim report {shlex.quote(str(folder))} --open", markup=False)
