"""``optimize``: the search, with a progress bar, a table and a run folder."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.cli import apart, proposed, tuning_options
from swizzle_sim.cli.arguments import GpuName, Jitter, Json, Seed, Sizes

if TYPE_CHECKING:
    from swizzle_sim.cli.rewritten import Written
    from swizzle_sim.history import Attempt
    from swizzle_sim.scoring import Scorer
    from swizzle_sim.search import Run
    from swizzle_sim.uncertainty import RankStability

RUNS = "runs"
TOP = 5

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Run folder to make; by default runs/KERNEL-GPU-NNN.")]
Resume = Annotated[Path | None, typer.Option("--resume", help="Run folder of an interrupted run to go on with.")]
KernelName = Annotated[
    str | None, typer.Argument(metavar="KERNEL", help="Kernel, such as gemm; not needed with --replay RUN.")
]
Replay = Annotated[
    str | None,
    typer.Option(
        "--replay",
        metavar="lockstep|timed|RUN",
        help="Replay that the counts come from: lockstep (families) or timed (the others); or a run of llm to repeat.",
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, max=256, help="By default one a core.")]


def optimize(
    kernel: KernelName = None,
    sizes: Sizes = None,
    gpu: GpuName = "mi300x",
    replay: Replay = None,
    seed: Seed = 0,
    jitter: Jitter = 0.0,
    out: Out = None,
    resume: Resume = None,
    threads: Threads = None,
    proposer: proposed.Proposer = "families",
    model: proposed.Model = None,
    api_base: proposed.ApiBase = None,
    context: proposed.Context = None,
    docs: proposed.Docs = None,
    iterations: proposed.Iterations = None,
    candidates: proposed.Candidates = None,
    max_tokens: proposed.MaxTokens = None,
    max_dollars: proposed.MaxDollars = None,
    max_minutes: proposed.MaxMinutes = None,
    temperature: proposed.Temperature = None,
    reply_tokens: proposed.ReplyTokens = None,
    timeout: proposed.Timeout = None,
    tries: proposed.Tries = None,
    stream: proposed.Stream = False,
    structured: proposed.Structured = False,
    image: proposed.Image = False,
    program: proposed.Program = None,
    prices: proposed.Prices = None,
    template: tuning_options.Template = None,
    sampler: tuning_options.Sampler = None,
    evaluations: tuning_options.Evaluations = None,
    objective: tuning_options.ObjectiveText = None,
    at_sizes: tuning_options.AtSizes = None,
    held_out: tuning_options.HeldOut = None,
    tune: tuning_options.Tune = None,
    uncertainty: apart.TellApart = True,
    json: Json = False,
) -> None:
    """Try swizzles on a kernel and keep the best: known families, a search of templates, or what a model proposes."""
    from xcd_model.errors import RunError, SizeError

    if out and resume:
        raise RunError("--out makes a new run and --resume goes on with one: give one of them")
    options: dict[str, Any] = {
        **{"models": model or None, "api_base": api_base, "context": context, "docs": docs, "iterations": iterations},
        **{"candidates": candidates, "max_tokens": max_tokens, "max_dollars": max_dollars, "max_minutes": max_minutes},
        **{"temperature": temperature, "reply_tokens": reply_tokens, "timeout_s": timeout, "tries": tries},
        **{"stream": stream or None, "structured": structured or None, "image": image or None},
        **{"program": program, "prices": prices},
    }
    repeat = proposed.run_of(replay)
    if kernel is None and repeat is None:
        raise SizeError("name a kernel, such as gemm; `swizzle-sim kernels` lists them")
    tuning = tuning_options.given(template, sampler, evaluations, objective, at_sizes, held_out)
    if tune is not None:
        from swizzle_sim.cli.tune import tune_kernel

        tune_kernel(tune, str(kernel), sizes, gpu, replay or "timed", seed, (out, resume), options, tuning, json)
        return
    if repeat is None:
        tuning_options.check(proposer, options, tuning)
    if proposer == "families" and repeat is None:
        _families(str(kernel), sizes, gpu, replay or "lockstep", seed, jitter, out, resume, threads, uncertainty, json)
        return
    options |= tuning
    _propose(proposer, kernel, sizes, gpu, replay, (seed, jitter), (out, resume, repeat), options, uncertainty, json)


def _propose(
    name: str,
    kernel: str | None,
    sizes: list[str] | None,
    gpu: str,
    replay: str | None,
    chance: tuple[int, float],
    where: tuple[Path | None, Path | None, Path | None],
    options: dict[str, Any],
    uncertainty: bool,
    json: bool,
) -> None:
    """Run a proposer of the registry; ``where`` is (out, resume, repeat)."""
    from swizzle_sim.cli.arguments import load_fitting
    from swizzle_sim.proposers import Task, load_proposer
    from xcd_model import gpu as load_gpu

    out, resume, repeat = where
    run = load_proposer("llm" if repeat else name)
    device = None if repeat else load_gpu(gpu)
    workload = load_fitting(str(kernel), sizes, device) if device else None
    again = f"{Path(str(repeat)).resolve().name}-again"
    stem = f"{workload.name}-{device.name}-{name}" if workload and device else again
    folder = resume or out or next_folder(Path(RUNS), stem)
    task = Task(
        kernel=workload,
        gpu=device,
        folder=folder,
        replay=replay or "timed",
        seed=chance[0],
        jitter_ns=chance[1],
        resume=resume is not None,
        repeat=repeat,
        command="swizzle-sim " + shlex.join(sys.argv[1:]),
        options=options,
        say=proposed.say,
    )
    try:
        found = run(task)
    except KeyboardInterrupt:
        print(f"\ninterrupted; go on with: {_typed_again(folder, out, resume)}", file=sys.stderr)
        raise typer.Exit(130) from None
    proposed.print_proposed(found, json, uncertainty)


def _typed_again(folder: Path, out: Path | None, resume: Path | None) -> str:
    """Command as it was typed, made to go on with a run instead of making one."""
    words = list(sys.argv[1:])
    if out is not None:
        at = next(i for i, word in enumerate(words) if word in ("--out", "-o") or word.startswith(("--out=", "-o")))
        del words[at : at + (2 if words[at] in ("--out", "-o") else 1)]
    return shlex.join(["swizzle-sim", *words, *([] if resume else ["--resume", str(folder)])])


def _families(
    kernel: str,
    sizes: list[str] | None,
    gpu: str,
    replay: str,
    seed: int,
    jitter: float,
    out: Path | None,
    resume: Path | None,
    threads: int | None,
    uncertainty: bool,
    json: bool,
) -> None:
    """Try the known families."""
    from swizzle_sim.cli.arguments import load_fitting
    from swizzle_sim.cli.rewritten import rewrite_best
    from swizzle_sim.history import History
    from swizzle_sim.report import write_report
    from swizzle_sim.scoring import Scorer
    from swizzle_sim.search import optimize as search
    from xcd_model import gpu as load_gpu

    device = load_gpu(gpu)
    workload = load_fitting(kernel, sizes, device)
    folder = resume or out or next_folder(Path(RUNS), f"{workload.name}-{device.name}")
    command = "swizzle-sim " + shlex.join(sys.argv[1:])
    scorer = Scorer(workload, device, replay=replay, seed=seed, jitter_ns=jitter)
    try:
        with _Progress(f"{workload.name} on {device.title}") as progress:
            run = search(
                workload,
                device,
                folder,
                replay=replay,
                seed=seed,
                jitter_ns=jitter,
                threads=threads,
                resume=resume is not None,
                command=command,
                on_attempt=progress.advance,
            )
    except KeyboardInterrupt:
        print(f"\ninterrupted; go on with: {_resume_command(kernel, folder, gpu, scorer)}", file=sys.stderr)
        raise typer.Exit(130) from None
    written = rewrite_best(run, workload, device) if workload.file else None
    told = apart.told_apart(run, scorer) if uncertainty else None
    with History(run.folder) as history:  # last: it says whether the rewriting was checked, and what is told apart
        write_report(history)
    if json:
        _print_json(run, scorer, written, told)
    else:
        _print_run(run, scorer, written, told)


def next_folder(where: Path, stem: str) -> Path:
    """First ``where/stem-NNN`` that does not exist; what a file's name had better not hold becomes a dash."""
    number, stem = 1, re.sub(r"[^\w.+-]+", "-", stem)
    while (where / f"{stem}-{number:03d}").exists():
        number += 1
    return where / f"{stem}-{number:03d}"


def _resume_command(kernel: str, folder: Path, gpu: str, scorer: Scorer) -> str:
    """Command that goes on with an interrupted run."""
    words = ["swizzle-sim", "optimize", kernel]
    words += [f"{name}={size}" for name, size in scorer.kernel.problem.items()]
    words += ["--gpu", gpu, "--replay", scorer.replay, "--seed", str(scorer.seed)]
    words += ["--jitter", str(scorer.jitter_ns)] if scorer.jitter_ns else []
    return shlex.join([*words, "--resume", str(folder)])


class _Progress:
    """A progress bar on a terminal; two lines in a log."""

    def __init__(self, what: str):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.console = Console(stderr=True, highlight=False)
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]}", markup=False),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.what, self.best = what, 0.0
        self.task = self.bar.add_task(f"trying candidates for {what}", total=None, best="")

    def __enter__(self) -> _Progress:
        if not self.console.is_terminal:
            self.console.print(f"trying candidates for {self.what} ...", markup=False)
        self.bar.start()
        return self

    def __exit__(self, *exc_info) -> None:
        self.bar.stop()

    def advance(self, attempt: Attempt, done: int, total: int) -> None:
        """Take note of one attempt."""
        if attempt.score is not None:
            self.best = max(self.best, attempt.score.l2_hit_rate)
        self.bar.update(self.task, completed=done, total=total, best=f"best L2 hit rate {100 * self.best:.2f} %")


def _counts(run: Run) -> dict[str, int]:
    refused = sum(not a.verdict.get("bijective", False) for a in run.attempts)
    scored = sum(a.score is not None for a in run.attempts)
    return {
        "tried": len(run.attempts),
        "scored": scored,
        "refused": refused,
        "duplicates": len(run.attempts) - scored - refused,
    }


def _top(run: Run) -> list[Attempt]:
    """Best candidates, the order as launched left out: it has a row of its own."""
    return [attempt for attempt in run.ranked if attempt.number != run.baseline.number][:TOP]


def _entry(attempt: Attempt) -> dict[str, Any]:
    score = attempt.score.as_dict() if attempt.score else None
    return {
        "number": attempt.number,
        "name": attempt.name,
        "source": attempt.source,
        "verdict": dict(attempt.verdict),
        "score": score,
    }


def _print_json(run: Run, scorer: Scorer, written: Written | None, told: RankStability | None) -> None:
    from swizzle_sim.cli.detail import scored_on
    from swizzle_sim.cli.output import print_json

    print_json(
        {
            **scored_on(scorer),
            "run": str(run.folder),
            **_counts(run),
            "baseline": _entry(run.baseline),
            "best": [_entry(attempt) for attempt in _top(run)],
            "uncertainty": told and told.as_dict(),
            **(written.as_dict() if written else {}),
        }
    )


def _print_run(run: Run, scorer: Scorer, written: Written | None, told: RankStability | None) -> None:
    from swizzle_sim.cli.output import SCORE_COLUMNS, SIMULATED, console, score_cells, sizes_text, table

    shown = [("", "as launched", run.baseline), *((str(i + 1), a.name, a) for i, a in enumerate(_top(run)))]
    rows = [[place, name, *score_cells(a.score)] for place, name, a in shown if a.score]
    domains = [str(a.verdict["domain"]) for _, _, a in shown if a.score]
    columns = ["", "swizzle", *SCORE_COLUMNS]
    if set(domains) != {"everywhere"}:
        columns.insert(2, "valid where")
        rows = [[*row[:2], domain, *row[2:]] for row, domain in zip(rows, domains, strict=True)]
    title = f"{scorer.kernel.name} {sizes_text(scorer.kernel.problem)} on {scorer.gpu.title}"
    table(title, columns, rows, left=len(columns) - len(SCORE_COLUMNS), note=SIMULATED[scorer.replay])
    counts = _counts(run)
    out = console(wide=True)
    out.print(
        f"{counts['tried']} candidates tried: {counts['scored']} scored, "
        f"{counts['duplicates']} repeat another's permutation, {counts['refused']} refused",
        markup=False,
    )
    for line in apart.lines_of(told) if told else ():
        out.print(line, markup=False)
    if run.best.number == run.baseline.number:
        out.print("No candidate beats the order as launched here: best.* hold the identity.", markup=False)
    out.print(
        f"written: {run.folder}/ (report.html, best.txt, best_triton.py, best.hip, pictures, history)", markup=False
    )
    for line in written.lines if written else ():
        out.print(line, markup=False)
    print(f"next: swizzle-sim report {shlex.quote(str(run.folder))} --open")
