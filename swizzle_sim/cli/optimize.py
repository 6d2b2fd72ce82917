"""``optimize``: a search, its run folder, and its end: the answer, why, the table, commands; all else with ``-v``."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from swizzle_sim.base.interruption import go_on_with
from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import (
    GpuName,
    Json,
    Launch,
    Sizes,
    argument,
    grouped,
    known_kernels,
    one_folder,
    parse_sizes,
)
from swizzle_sim.cli.output import (
    COUNTED,
    IN_BRIEF,
    SCORE_COLUMNS,
    line,
    print_advice,
    print_json,
    print_last,
    say,
    score_table,
    scored_on,
    simulated,
    title_of,
)
from swizzle_sim.cli.proposer_options import LlmOptions, Proposer, RunOptions, SearchOptions, check_options
from swizzle_sim.search.history import FILE, History
from swizzle_sim.search.ranking import ranking_of, read_objectives
from xcd_model.errors import RunError, SizeError

if TYPE_CHECKING:
    from swizzle_sim.cli.rewrite import Written
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.search.advice import Advice
    from swizzle_sim.search.history import Attempt
    from swizzle_sim.search.loop import Run
    from swizzle_sim.search.proposers import Proposed
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu

RUNS = "runs"
MODELS = ("llm", "direct", "two-stage")  # proposers that ask a model
ABOUT = ("kernel", "gpu", "problem", "replay", "seed", "kind")  # of the document of a proposer


@grouped
def optimize(
    kernel: Annotated[
        str | None,
        argument("KERNEL", "Kernel, such as gemm; not needed with --replay RUN or --resume RUN.", known_kernels),
    ] = None,
    sizes: Sizes = None,
    gpu: GpuName = "mi300x",
    proposer: Proposer = "families",
    run: RunOptions = RunOptions(),
    search: SearchOptions = SearchOptions(),
    llm: LlmOptions = LlmOptions(),
    json: Json = False,
) -> None:
    """Try swizzles on a kernel and rank them: known families, a search of templates, or proposals of a model."""
    one_folder(run.out, run.resume)
    if run.objective is not None:
        read_objectives(run.objective)  # refused before anything is loaded
    repeat = _run_to_repeat(run.replay)
    if kernel is None and repeat is None and run.resume is None:
        raise SizeError("name a kernel, such as gemm; `swizzle-sim kernels` lists them")
    launch = Launch(kernel or "", sizes, gpu)
    if run.resume is not None and repeat is None and search.tune is None:
        launch, proposer, run, search = _as_before(run.resume, launch, proposer, run, search)
    if proposer == "ceiling" and repeat is None and search.tune is None:
        from swizzle_sim.cli.tuning import find_ceiling

        check_options(proposer, llm.given(), search.given())
        find_ceiling(launch, run, search.evaluations, json)
        return
    if search.tune is not None:
        from swizzle_sim.cli.tuning import tune_kernel

        tune_kernel(search.tune, launch, run, llm.given(), search.given(), json)
        return
    if repeat is not None:
        _propose("llm", None, None, run, repeat, {**llm.given(), **search.given()}, json)
        return
    check_options(proposer, llm.given(), search.given())
    work, device = launch.load(run.compile)
    compiled = {"compile": True} if run.compile and proposer in MODELS else {}
    _propose(proposer, work, device, run, None, {**llm.given(), **search.given(), **compiled}, json)


def _run_to_repeat(replay: str | None) -> Path | None:
    """Folder of a recorded run, where ``--replay`` names one rather than a replay."""
    from swizzle_sim.pricing.replaying import REPLAYS

    if replay is None or replay in REPLAYS:
        return None
    if not os.path.isfile(os.path.join(replay, FILE)):
        raise RunError(f"{replay}: neither lockstep nor timed, nor a folder with a run; `swizzle-sim runs` lists runs")
    return Path(replay)


def _as_before(
    folder: Path, launch: Launch, proposer: str, run: RunOptions, search: SearchOptions
) -> tuple[Launch, str, RunOptions, SearchOptions]:
    """Arguments of a command that goes on with a run; those not typed are the run's own."""
    from xcd_model import gpu_names

    with History(folder) as history:
        about = history.about
    kernel = launch.kernel or about["kernel_file"] or about["kernel"]
    sizes = launch.sizes
    if not kernel.endswith(".npz") and launch.kernel in ("", about["kernel"], about["kernel_file"]):
        known = {**about["problem"], **(parse_sizes(sizes) if sizes else {})}
        sizes = [f"{name}={value}" for name, value in known.items()]
    if launch.gpu == Launch.gpu and about["gpu"] in gpu_names():
        launch = replace(launch, gpu=about["gpu"])
    if run.replay is None and "objectives" in about:
        run = replace(run, replay=about["replay"])
    run = replace(
        run,
        objective=run.objective or ",".join(about.get("objectives", ())) or None,
        seed=run.seed or about["seed"],
        jitter=run.jitter or about["jitter_ns"],
    )
    if "settings" in about:  # of a run of models, whose prompts say what was compiled
        run = replace(run, compile=run.compile and bool(about["settings"].get("compile")))
    if proposer == "families" and "settings" in about:
        proposer = "two-stage" if about["settings"].get("stage_two") else "direct"
    elif proposer == "families":
        proposer = about.get("strategy") or ("search" if "search" in about else "families")
    if settings := about.get("search"):
        if proposer == "search":
            search = replace(search, evaluations=search.evaluations or settings["evaluations"])
    elif "strategy" in about:
        search = replace(search, evaluations=search.evaluations or about["evaluations"])
    return replace(launch, kernel=kernel, sizes=sizes), proposer, run, search


def next_folder(where: Path, stem: str) -> Path:
    """First ``where/stem-NNN`` that does not exist; characters unsafe in file names are replaced by dashes."""
    number, stem = 1, re.sub(r"[^\w.+-]+", "-", stem)
    while (where / f"{stem}-{number:03d}").exists():
        number += 1
    return where / f"{stem}-{number:03d}"


def _print_so_far(folder: Path, json: bool) -> None:
    """Print the table of a run that was interrupted, if any of it was stored."""
    from swizzle_sim.search.advice import advise_run
    from swizzle_sim.search.loop import Run
    from swizzle_sim.search.recorded import recorded_scorer

    if not (folder / FILE).is_file():
        return
    print(f"what there is: swizzle-sim report {shlex.quote(str(folder))} --open", file=sys.stderr)
    with History(folder) as history:
        run, about = Run(folder, tuple(history), ranking_of(history.about, folder)), history.about
    if not any(attempt.score for attempt in run.attempts):
        return
    scorer = recorded_scorer(about)
    end = End(run, advise_run(scorer, run.ranking, run.attempts, str(folder)))
    print_run_json(end, scorer) if json else print_run(end, scorer)


def _propose(
    name: str,
    work: Kernel | None,
    device: Gpu | None,
    given: RunOptions,
    repeat: Path | None,
    options: dict[str, Any],
    json: bool,
) -> None:
    """Run a proposer, conclude its run and print it; or repeat a run of a model."""
    from swizzle_sim.search.loop import RunConfig
    from swizzle_sim.search.proposers import Task, load_proposer
    from swizzle_sim.search.recorded import recorded_scorer

    run = load_proposer(name)
    named = "" if name == "families" else f"-{name.rpartition(':')[2]}"
    stem = f"{work.name}-{device.name}{named}" if work and device else f"{Path(str(repeat)).resolve().name}-again"
    folder = given.resume or given.out or next_folder(Path(RUNS), stem)
    how = RunConfig(
        replay=given.replay or "timed",
        objective=given.objective,
        seed=given.seed,
        jitter_ns=given.jitter,
        threads=given.threads,
        resume=given.resume is not None,
        command="swizzle-sim " + shlex.join(sys.argv[1:]),
        max_minutes=options.get("max_minutes"),
    )
    task = Task(kernel=work, gpu=device, folder=folder, how=how, repeat=repeat, options=options, say=say)
    if work and device and work.file:
        from swizzle_sim.capture.own_remap import own_remap

        if inside := own_remap(work, device.xcds):
            say(inside.advice)
    go_on_with(folder, FILE)
    try:
        found = run(task)
        with History(folder) as history:
            scorer = found.scorer or recorded_scorer(history.about)
        end = _conclude(found.run, scorer, given)
    except KeyboardInterrupt:
        _print_so_far(folder, json)
        raise
    found = found.again(end.run) if found.again else found
    if found.beside:  # a table of its own
        _print_proposed(found, end, scorer, json)
    else:
        print_run_json(end, scorer) if json else print_run(end, scorer, found.lines)


def _priced(run: Run, scorer: Scorer) -> Run:
    """Run whose finalists are compiled as they would be rewritten, and scored so."""
    from swizzle_sim.rewrite.price import price_finalists

    if scorer.kernel.launch is None:
        return run
    with History(run.folder) as history, history.running(), Progress("compiling finalists", "kernels") as progress:
        attempts, why_not = price_finalists(history, scorer, run.ranking.order, on_priced=progress)
    if why_not:
        say(f"finalists are scored with the resources of the kernel as launched, not compiled: {why_not}")
    return replace(run, attempts=tuple(attempts))


def _conclude(run: Run, scorer: Scorer, given: RunOptions) -> End:
    """Compile the finalists, test the ranking, advise, rewrite a user's kernel, and write the report with all of it."""
    from swizzle_sim import report
    from swizzle_sim.cli.rewrite import rewrite_best
    from swizzle_sim.report.bottleneck import why_better
    from swizzle_sim.report.rank_stability import check_finalists
    from swizzle_sim.search.advice import advise_run
    from swizzle_sim.search.strategies.families import SETTLED

    run = _priced(run, scorer) if given.compile else run
    with ThreadPoolExecutor(3) as pool, Progress("replaying finalists under other constants", "sets") as progress:
        worth = given.uncertainty and len(run.attempts) > SETTLED
        pool.submit(getattr, report, "write_best")  # loads the page
        if worth:  # what advice and reasons take from the scorer, which keeps it, beside the draws
            pool.submit(advise_run, scorer, run.ranking, run.attempts)
            pool.submit(why_better, scorer, run.attempts, run.best.name)
        stability = check_finalists(run, scorer, progress, given.threads) if worth else None
    with History(run.folder) as history:
        run = replace(run, ranking=ranking_of(history.about, run.folder))
    written = rewrite_best(run, scorer.kernel, scorer.gpu) if scorer.kernel.file else None
    with History(run.folder) as history, Progress("drawing the report"):
        if given.report:
            report.write_report(history, scorer)
        else:
            report.write_best(history)
    advice = advise_run(scorer, run.ranking, run.attempts, str(run.folder))
    return End(run, advice, written, stability, why_better(scorer, run.attempts, advice.order), given.verbose)


def _print_proposed(found: Proposed, end: End, scorer: Scorer, json: bool) -> None:
    """Print the result of a proposer that has a table of its own."""
    if json:
        document = {key: value for key, value in scored_on(scorer).items() if key in ABOUT}
        document |= {"advice": end.advice, "uncertainty": end.stability, "run": str(end.run.folder)}
        document["objectives"] = [one.name for one in end.run.ranking.objectives]
        print_json({**document, **found.document, **(end.written.as_dict() if end.written else {})})
        return
    print_table(end, scorer, [(label, one.name if one else "-", one) for label, one in found.beside])
    print_end(end, scorer, found.lines)


TOP = 5


@dataclass(frozen=True)
class End:
    """A run at its end: ranked, what to do next, the rewritten kernel, and the draws of its finalists."""

    run: Run
    advice: Advice
    written: Written | None = None
    stability: dict[str, Any] | None = None
    why_better: tuple[str, ...] = ()  # what the best order changes in the misses
    verbose: bool = False


def _counts(run: Run) -> dict[str, int]:
    refused = sum(not a.verdict.get("bijective", False) for a in run.attempts)
    scored = sum(a.score is not None for a in run.attempts)
    duplicates = len(run.attempts) - scored - refused
    return {"tried": len(run.attempts), "scored": scored, "refused": refused, "duplicates": duplicates}


def _top(run: Run) -> list[Attempt]:
    """Best candidates without the launch order, which has a row of its own."""
    return [attempt for attempt in run.ranked if attempt.number != run.baseline.number][:TOP]


def _entry(attempt: Attempt, places: Mapping[int, str]) -> dict[str, Any]:
    return {
        "place": places.get(attempt.number),
        "number": attempt.number,
        "name": attempt.name,
        "source": attempt.source,
        "verdict": attempt.judged.proof,
        "score": attempt.score,
    }


def print_run_json(end: End, scorer: Scorer) -> None:
    """Print a run as one JSON document."""
    run = end.run
    places = run.ranking.places(run.attempts)
    print_json(
        {
            **scored_on(scorer),
            "advice": end.advice,
            "why_better": end.why_better,
            "objectives": [one.name for one in run.ranking.objectives],
            "run": str(run.folder),
            **_counts(run),
            "baseline": _entry(run.baseline, places),
            "best": [_entry(attempt, places) for attempt in _top(run)],
            "slower": [attempt.name for attempt in run.ranking.slower(run.attempts)],
            "uncertainty": end.stability,
            **(end.written.as_dict() if end.written else {}),
        }
    )


def print_table(end: End, scorer: Scorer, shown: Sequence[tuple[str, str, Attempt | None]]) -> None:
    """Print advice, and a row for each label, name and attempt; where each holds, if that is not every grid."""
    from swizzle_sim.language.lattice import unconditional

    print_advice(end.advice, end.why_better)
    domains = [str(a.verdict["domain"]) if a and a.score else "-" for _, _, a in shown]
    conditional = end.verbose and not all(unconditional(domain) or domain == "-" for domain in domains)
    rows = [
        (label, name, *([domain] if conditional else []), a and a.score)
        for (label, name, a), domain in zip(shown, domains, strict=True)
    ]
    heads = ["", "swizzle", *(["valid where"] if conditional else [])]
    ties = "; '=': a tie, not told apart" * any(label.startswith("=") for label, _, _ in shown)
    brief = f"{COUNTED[scorer.replay]}{ties}"
    note = simulated(scorer.gpu.name, scorer.replay, scorer.work_class) if end.verbose else brief
    columns = SCORE_COLUMNS if end.verbose else IN_BRIEF
    score_table(title_of(scorer.kernel, scorer.gpu), heads, rows, note, columns=columns)


def print_run(end: End, scorer: Scorer, remarks: Sequence[str] = ()) -> None:
    """Print a run: advice first, then the table, remarks and files."""
    run, places = end.run, end.run.ranking.places(end.run.attempts)
    print_table(end, scorer, [("", "launch order", run.baseline), *((places[a.number], a.name, a) for a in _top(run))])
    print_end(end, scorer, remarks if end.verbose else ())


def print_end(end: End, scorer: Scorer, remarks: Sequence[str]) -> None:
    """Print what stands below the table: the answer again, commands; how it was found, if that is asked for."""
    from swizzle_sim.pricing.access_patterns import emulated, emulated_note

    written = end.written
    lines = [*(_details(end) if end.verbose else ()), *remarks]
    lines += [one for one in [emulated_note(emulated(scorer.kernel, scorer.gpu), scorer.gpu)] if one]
    if (end.run.folder / "best.txt").is_file():  # not after a Ctrl-C
        report = "report.html, " if (end.run.folder / "report.html").is_file() else ""
        lines.append(f"written: {end.run.folder}/ ({report}best.txt, best_triton.py, best.hip)")
    lines += written.lines if written and (end.verbose or end.advice.verdict != "leave") else ()
    for said in lines:
        line(said)
    print_last(end.advice)


def _details(end: End) -> list[str]:
    """How orders were ranked, what is above the launch order though predicted slower, counts, and draws."""
    from swizzle_sim.report.rank_stability import stability_lines

    run, counts = end.run, _counts(end.run)
    names = [attempt.name for attempt in run.ranking.slower(run.attempts)]
    slower = f"ranked above the launch order, though predicted slower: {', '.join(names[:TOP])}"
    return [
        run.ranking.sentence(),
        *([slower] if names else []),
        f"{counts['tried']} candidates tried: {counts['scored']} scored, "
        f"{counts['duplicates']} repeat another's permutation, {counts['refused']} refused",
        *(stability_lines(end.stability) if end.stability else ()),
    ]
