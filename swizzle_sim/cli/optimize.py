"""``optimize``: a search, its table, and its run folder."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.base.interruption import go_on_with
from swizzle_sim.cli.arguments import GpuName, Json, Launch, Sizes, grouped, known_kernels, offer, one_folder
from swizzle_sim.cli.proposer_options import LlmOptions, Proposer, RunOptions, SearchOptions, check_options
from swizzle_sim.cli.run_end import End, print_end, print_run, print_run_json, slower_lines

if TYPE_CHECKING:
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.search.history import Attempt
    from swizzle_sim.search.loop import Run
    from swizzle_sim.search.proposers import Proposed
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu

RUNS = "runs"
WORTH_SAYING_S = 20.0  # of an estimate

KernelName = Annotated[
    str | None,
    typer.Argument(
        metavar="KERNEL",
        help="Kernel, such as gemm; not needed with --replay RUN or --resume RUN.",
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
    if run.objective is not None:
        from swizzle_sim.search.ranking import read_objectives

        read_objectives(run.objective)  # refused before anything is loaded
    repeat = _run_to_repeat(run.replay)
    if kernel is None and repeat is None and run.resume is None:
        raise SizeError("name a kernel, such as gemm; `swizzle-sim kernels` lists them")
    launch = Launch(kernel or "", sizes, gpu)
    if run.resume is not None and repeat is None and search.tune is None:
        from swizzle_sim.cli.resuming import as_before

        launch, proposer, run, search = as_before(run.resume, launch, proposer, run, search)
    if search.tune is not None:
        from swizzle_sim.cli.tuning import tune_kernel

        tune_kernel(search.tune, launch, run, llm.given(), search.given(), json)
        return
    if repeat is not None:
        _propose("llm", None, None, run, repeat, {**llm.given(), **search.given()}, json)
        return
    check_options(proposer, llm.given(), search.given())
    work, device = launch.load(run.compile)
    if proposer == "families":
        _try_families(work, device, run, llm.max_minutes, json)
    else:
        compiled = {"compile": True} if run.compile and proposer in ("llm", "two-stage") else {}
        _propose(proposer, work, device, run, None, {**llm.given(), **search.given(), **compiled}, json)


def _run_to_repeat(replay: str | None) -> Path | None:
    """Folder of a recorded run, where ``--replay`` names one rather than a replay.

    Raises
    ------
    RunError
        If it names neither.
    """
    from swizzle_sim.pricing.replaying import REPLAYS
    from swizzle_sim.search.history import FILE
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
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.search.candidates import family_specs
    from swizzle_sim.search.history import FILE
    from swizzle_sim.search.ranking import BestSoFar, chosen_objectives
    from swizzle_sim.search.strategies.families import optimize as search

    folder = given.resume or given.out or next_folder(Path(RUNS), f"{work.name}-{device.name}")
    settings: dict[str, Any] = {"replay": given.replay or "timed", "seed": given.seed, "jitter_ns": given.jitter}
    began = time.monotonic()
    best = BestSoFar(chosen_objectives(given.objective, device.name, settings["replay"])[0])
    every = 1 + sum(1 for _ in family_specs(work, device))
    costs: list[float] = []

    def on_attempt(attempt: Attempt, done: int, total: int) -> None:
        if attempt.number and attempt.score and not costs:  # the launch order was replayed before
            costs.append(attempt.cost_ms / 1e3)
            if not given.resume and (estimate := _estimate(costs[0], total, every, given, max_minutes)):
                print(estimate, file=sys.stderr, flush=True)
        progress(done, total, note=best(attempt.score))

    _say_inside(work, device)
    go_on_with(folder, FILE)
    try:
        scorer = Scorer(work, device, **settings)
        with Progress(f"optimizing {work.name} on {device.title}", "candidates") as progress:
            run = search(
                work,
                device,
                folder,
                scorer=scorer,
                objective=given.objective,
                threads=given.threads,
                resume=given.resume is not None,
                command=_command(),
                on_attempt=on_attempt,
                max_minutes=max_minutes,
            )
        if max_minutes is not None and time.monotonic() - began > 60 * max_minutes:
            print(f"stopped after {max_minutes:g} minutes: --resume {folder} goes on", file=sys.stderr)
        end = _conclude(run, scorer, given)
    except KeyboardInterrupt:
        _print_so_far(folder, json)
        raise
    if json:
        print_run_json(end, scorer)
    else:
        print_run(end, scorer)


def _estimate(each: float, total: int, every: int, given: RunOptions, max_minutes: float | None) -> str:
    """How long all may take, at so many seconds each; empty where that is soon."""
    seconds = each * (total - 1) / (given.threads or os.cpu_count() or 1)
    if seconds < WORTH_SAYING_S:
        return ""
    minutes = max(1, round(seconds / 60))
    if max_minutes is not None and max_minutes < minutes:
        return f"{total} candidates at about {each:.1f} s: as many as {max_minutes:g} min allow, most promising first"
    many = f"{total} of {every} candidates, most promising first," if total < every else f"{total} candidates"
    more = "; --max-minutes tries more" if total < every else ""
    return f"{many} at about {each:.1f} s: about {minutes} min at most{more}"


def _say_inside(work: Kernel, device: Gpu) -> None:
    """Name a remap that a user's kernel holds already, on stderr."""
    from swizzle_sim.capture.own_remap import own_remap

    found = own_remap(work, device.xcds)
    if found:
        print(found.advice, file=sys.stderr, flush=True)


def _print_so_far(folder: Path, json: bool) -> None:
    """Print the table of a run that was interrupted, if any of it was stored."""
    from swizzle_sim.search.advice import advise_run
    from swizzle_sim.search.history import FILE, History
    from swizzle_sim.search.loop import Run
    from swizzle_sim.search.ranking import ranking_of
    from swizzle_sim.search.recorded import recorded_scorer

    if not (folder / FILE).is_file():
        return
    print(f"what there is: swizzle-sim report {shlex.quote(str(folder))} --open", file=sys.stderr)
    with History(folder) as history:
        run, about = Run(folder, tuple(history), ranking_of(history.about, folder)), history.about
    if not any(attempt.score for attempt in run.attempts):
        return
    scorer = recorded_scorer(about)
    end = End(run, advise_run(scorer, run.ranking, run.attempts, str(folder)), None, None)
    if json:
        print_run_json(end, scorer)
    else:
        print_run(end, scorer)


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
    from swizzle_sim.search.history import FILE
    from swizzle_sim.search.proposers import Task, load_proposer

    run = load_proposer(name)
    short = name.rpartition(":")[2]
    stem = f"{work.name}-{device.name}-{short}" if work and device else f"{Path(str(repeat)).resolve().name}-again"
    folder = given.resume or given.out or next_folder(Path(RUNS), stem)
    task = Task(
        kernel=work,
        gpu=device,
        folder=folder,
        replay=given.replay or "timed",
        objective=given.objective,
        seed=given.seed,
        jitter_ns=given.jitter,
        threads=given.threads,
        resume=given.resume is not None,
        repeat=repeat,
        command=_command(),
        options=options,
        say=say,
    )
    go_on_with(folder, FILE)
    try:
        found = run(task)
        _print_proposed(found, given, json)
    except KeyboardInterrupt:
        _print_so_far(folder, json)
        raise


def _command() -> str:
    return "swizzle-sim " + shlex.join(sys.argv[1:])


def _priced(run: Run, scorer: Scorer) -> Run:
    """Run whose finalists are compiled as they would be rewritten, and scored so."""
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.cli.output import say
    from swizzle_sim.rewrite.finalists import price_finalists
    from swizzle_sim.search.history import History

    if scorer.kernel.launch is None:
        return run
    with History(run.folder) as history, history.running(), Progress("compiling finalists", "kernels") as progress:
        attempts, why_not = price_finalists(history, scorer, run.ranking.order, on_priced=progress)
    if why_not:
        say(f"finalists are scored with the resources of the kernel as launched, not compiled: {why_not}")
    return replace(run, attempts=tuple(attempts))


def _conclude(run: Run, scorer: Scorer, given: RunOptions) -> End:
    """Compile the finalists, test the ranking, advise, rewrite a user's kernel, and write the report with all of it."""
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.cli.rewrite import rewrite_best
    from swizzle_sim.report import write_best, write_report
    from swizzle_sim.report.rank_stability import check_finalists
    from swizzle_sim.search.advice import advise_run
    from swizzle_sim.search.history import History
    from swizzle_sim.search.ranking import ranking_of
    from swizzle_sim.search.strategies.families import SETTLED

    run = _priced(run, scorer) if given.compile else run
    with Progress("replaying finalists under other constants", "sets") as progress:
        worth = given.uncertainty and len(run.attempts) > SETTLED
        stability = check_finalists(run, scorer, progress) if worth else None
    with History(run.folder) as history:
        run = replace(run, ranking=ranking_of(history.about, run.folder))
    written = rewrite_best(run, scorer.kernel, scorer.gpu) if scorer.kernel.file else None
    with History(run.folder) as history:
        if given.report:
            write_report(history, scorer)
        else:
            write_best(history)
    return End(run, advise_run(scorer, run.ranking, run.attempts, str(run.folder)), written, stability)


def _print_proposed(found: Proposed, given: RunOptions, json: bool) -> None:
    """Print the result of a proposer."""
    from swizzle_sim.cli.output import (
        print_advice,
        print_json,
        score_cells,
        score_columns,
        simulated,
        sizes_text,
        table,
    )
    from swizzle_sim.search.history import History
    from swizzle_sim.search.recorded import recorded_scorer

    run = found.run
    with History(run.folder) as history:
        about = history.about
    end = _conclude(run, recorded_scorer(about), given)
    found = found.again(end.run)
    if json:
        document: dict[str, Any] = {key: about[key] for key in ("kernel", "gpu", "problem", "replay", "seed")}
        document |= {"kind": "simulated", "advice": end.advice.as_dict(), "objectives": about["objectives"]}
        document |= {"run": str(run.folder), "uncertainty": end.stability}
        print_json({**document, **found.document, **(end.written.as_dict() if end.written else {})})
        return
    print_advice(end.advice)
    rows = [
        [label, attempt.name, *score_cells(attempt.score)] if attempt and attempt.score else [label, "-", *"------"]
        for label, attempt in found.beside
    ]
    title = f"{about['kernel']} {sizes_text(about['problem'])} on {about['gpu']}"
    columns = ["", "swizzle", *score_columns(about["gpu"], about["replay"])]
    table(title, columns, rows, left=2, note=simulated(about["gpu"], about["replay"]))
    has_transcript = (run.folder / "transcript.sqlite").exists()
    lines = [end.run.ranking.sentence(), *slower_lines(end.run), *found.lines]
    print_end(end, lines, "transcript" if has_transcript else "history")
