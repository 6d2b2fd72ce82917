"""What ``optimize --proposer`` names: a proposer of the entry-point group ``swizzle_sim.proposers``, or a user's file.

A proposer is a strategy, a generator of `swizzle_sim.search.loop.run` that takes the `Judge`; or, where it has options
and a table of its own, a callable that takes a `Task` and gives a `Proposed`. Nothing here imports an extra.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.capture.kernel_file import line_of, load_file, words_of
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Run, RunConfig, about_run, open_run, run
from swizzle_sim.search.ranking import BestSoFar, Objective, chosen_objectives, ranking_of
from swizzle_sim.search.recorded import at_sizes
from swizzle_sim.search.strategies.halving import EVALUATIONS, SearchPlan, is_evaluation, search
from swizzle_sim.search.templates import Template, family_template, load_templates
from swizzle_sim.workload.kernels import Kernel, registered
from xcd_model import Gpu
from xcd_model.errors import RunError, SearchError, SwizzleSimError, UnknownName

GROUP = "swizzle_sim.proposers"
SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Task:
    """Input of a proposer; kernel and GPU are None where the run in ``repeat`` is repeated, which says them itself.

    ``objective`` is as typed, ``options`` the proposer's own, None where not given; ``say`` takes a line of progress.
    """

    kernel: Kernel | None
    gpu: Gpu | None
    folder: Path
    replay: str
    objective: str | None = None
    seed: int = 0
    jitter_ns: float = 0.0
    threads: int | None = None
    resume: bool = False
    repeat: Path | None = None
    command: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] = print

    @property
    def given(self) -> dict[str, Any]:
        """Options that were typed."""
        return {key: value for key, value in self.options.items() if value is not None}

    @property
    def of_run(self) -> dict[str, Any]:
        """Fields of `RunConfig`."""
        names = ("replay", "objective", "seed", "jitter_ns", "threads", "resume", "command")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """Result of a proposer: rows of the table with their labels, lines below it, and what ``--json`` says.

    ``again(run)`` is the same of the run whose finalists were compiled since.
    """

    run: Run
    beside: tuple[tuple[str, Attempt | None], ...]
    lines: tuple[str, ...]
    document: Mapping[str, Any]
    again: Callable[[Run], Proposed]


def load_proposer(name: str) -> Callable[[Task], Proposed]:
    """Proposer of the registry, or the generator ``FUNCTION`` of ``FILE.py:FUNCTION``.

    Raises
    ------
    UnknownName
        If there is none of that name.
    CaptureError
        If the file cannot be run; names the line.
    RunError
        If it has no such function.
    """
    file, colon, function = name.rpartition(":")
    if colon and file.endswith(".py"):
        found = _from_file(Path(file), function)
    else:
        known = registered(GROUP)
        if name not in known:
            raise UnknownName("proposer", name, ["families", *known, "FILE.py:FUNCTION"])
        found = known[name].load()
    if not inspect.isgeneratorfunction(found):
        return found
    return lambda task: _propose(found, name, task)


def _from_file(path: Path, function: str) -> Any:
    """A generator function of a user's file."""
    module = load_file(path.resolve())
    found = getattr(module, function, None)
    if not inspect.isgeneratorfunction(found):
        listed = [key for key, value in vars(module).items() if inspect.isgeneratorfunction(value)]
        why = f"is no generator function; the file has {', '.join(listed) or 'none'}"
        raise RunError(f"{path}: {function} {why}: a strategy yields candidates, see docs/howto/search-strategy.md")

    def asked(judge: Judge) -> Any:
        try:
            yield from found(judge)
        except SwizzleSimError:
            raise
        except Exception as error:
            raise RunError(f"{line_of(error, path.resolve())}: {words_of(error)}") from error

    return asked


def _propose(strategy: Callable[[Judge], Any], name: str, task: Task) -> Proposed:
    """Run a strategy: as many replays as ``--evaluations`` and as long as ``--max-minutes`` say."""
    if task.kernel is None or task.gpu is None or task.repeat is not None:
        raise SearchError("a search is repeated by the same command with the same seed: name a kernel and a GPU")
    how = RunConfig(**task.of_run, max_minutes=task.given.get("max_minutes"))
    scorer = Scorer(task.kernel, task.gpu, **how.of_scorer)
    judge = Judge(scorer, how.objectives_on(task.gpu))
    budget, spent, best = task.given.get("evaluations", EVALUATIONS), 0, BestSoFar(judge.objectives[0])
    about = {**about_run(scorer, how.command, judge.objectives), "strategy": name, "evaluations": budget}

    def on_attempt(attempt: Attempt) -> None:
        nonlocal spent
        spent += is_evaluation(attempt)
        progress(spent, budget, note=best(attempt.score))

    with open_run(task.folder, about, task.resume, ("strategy",)) as history, history.running():
        with Progress(f"proposer {name}", "evaluations") as progress:
            run(
                strategy(judge), judge, history, proposer=name.rpartition(":")[2], threads=how.n_threads,
                end_s=how.end_s, enough=lambda: spent >= budget, on_attempt=on_attempt,
            )  # fmt: skip
        made = Run(history.folder, tuple(history), ranking_of(about))
    return _own(made)


def _own(made: Run) -> Proposed:
    """Result of a user's strategy: the best attempts in the run's ranking."""
    shown = [one for one in made.ranked if one.number][:SHOWN]
    places = made.ranking.places(made.attempts)
    scored = sum(one.score is not None for one in made.attempts[1:])
    lines = [f"{len(made.attempts) - 1} candidates: {scored} replayed, {_others(made.counts)}"]
    beside = (("launch order", made.baseline), *((places[one.number], one) for one in shown))
    document = {"counts": made.counts, "best": [_entry(one) for one in shown]}
    return Proposed(run=made, beside=beside, lines=tuple(lines), document=document, again=_own)


def propose(task: Task) -> Proposed:
    """Search templates: what ``--proposer search`` does.

    Raises
    ------
    SearchError
        If an option is invalid, or a space is empty.
    """
    if task.kernel is None or task.gpu is None or task.repeat is not None:
        raise SearchError("a search is repeated by the same command with the same seed: name a kernel and a GPU")
    given = task.given
    plan = SearchPlan(
        templates=tuple(templates_of(given.get("templates", ()), task.kernel, task.gpu)),
        objectives=chosen_objectives(task.objective, task.gpu.name, task.replay),
        sampler=given.get("sampler", "auto"),
        evaluations=given.get("evaluations", EVALUATIONS),
    )
    kernels, device = [task.kernel, *_at(task, given.get("sizes", ()))], task.gpu
    held_out = _at(task, given.get("held_out", ()))
    began, best = time.perf_counter(), BestSoFar(plan.objectives[0])
    with Progress("searching", "evaluations") as progress:
        found = search(
            kernels, device, task.folder, plan, **task.of_run,
            on_attempt=lambda attempt, done, total: progress(done, total, note=best(attempt.score)),
        )  # fmt: skip
    took_s = None if task.resume else time.perf_counter() - began  # the time of earlier commands is unknown
    rows = cache(lambda source: held_out_rows(source, kernels, held_out, task, device))

    def proposed(made: Run) -> Proposed:
        shown = _shown(made, found.counts, plan.objectives, rows(made.best.source), took_s)
        return Proposed(run=made, again=proposed, **shown)

    return proposed(found)


def _at(task: Task, several: Sequence[Mapping[str, int]]) -> list[Kernel]:
    assert task.kernel and task.gpu
    return [at_sizes(task.kernel, sizes, task.gpu.arch) for sizes in several]


def templates_of(words: Sequence[str], kernel: Kernel, gpu: Gpu) -> list[Template]:
    """Templates of files, or of family names such as ``chunked+group_m``."""
    found: list[Template] = []
    for word in words:
        is_file = Path(word).suffix or "/" in word or Path(word).is_file()
        found += load_templates(word) if is_file else [family_template(word, kernel, gpu)]
    return found


def held_out_rows(
    source: str, seen: Sequence[Kernel], held_out: Sequence[Kernel], task: Task, gpu: Gpu
) -> list[dict[str, Any]]:
    """Hit rate and time of a candidate at every size, searched or held out."""
    rows = []
    for kernel in [*seen, *held_out] if len(seen) > 1 or held_out else ():
        scorer = Scorer(kernel, gpu, replay=task.replay, seed=task.seed, jitter_ns=task.jitter_ns)
        score = Judge(scorer).judge(Candidate("best", source, "search")).score
        launched, row = scorer.baseline, {"problem": dict(kernel.problem), "held_out": kernel in held_out}
        row |= {"launched_l2_hit_rate": launched.l2_hit_rate, "l2_hit_rate": score and score.l2_hit_rate}
        rows.append(row | {"launched_time_us": launched.time_us, "time_us": score and score.time_us})
    return rows


def _shown(
    made: Run,
    counts: Mapping[str, int],
    objectives: Sequence[Objective],
    elsewhere: Sequence[Mapping[str, Any]],
    took_s: float | None,
) -> dict[str, Any]:
    """Rows, lines and document of a `Proposed`."""
    best, names, front = made.best, [one.name for one in objectives], made.front
    scored = [one for one in made.ranked if one.number]
    shown = front if len(objectives) > 1 else scored[:SHOWN]
    label = "Pareto front" if len(objectives) > 1 else "search"
    replayed = counts.get("replay", 0)
    lines = [
        f"{len(made.attempts) - 1} candidates: {replayed} replayed in full, {_others(counts)}",
        *([f"{took_s:.1f} s, {60 * replayed / took_s:.0f} evaluations a minute"] if took_s else []),
        f"objective {', '.join(names)}: best is attempt {best.number}, {best.name} (best.txt)",
        *(_size_line(row) for row in elsewhere),
    ]
    document = {
        "objectives": names,
        "counts": dict(counts),
        "front": [_entry(a) for a in front],
        "best": [_entry(a) for a in scored[:SHOWN]],
        "sizes": [dict(row) for row in elsewhere],
    }
    beside = (("launch order", made.baseline), *((f"{label} {i + 1}", a) for i, a in enumerate(shown)))
    return {"beside": beside, "lines": tuple(lines), "document": document}


_WORDS = {
    "sampled": "dropped on a sample of XCDs",
    "screen": "dropped by the lockstep replay",
    "bound": "ruled out by the bound",
    "duplicate": "repeat another's permutation",
    "refused": "refused",
}


def _others(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts.get(stage, 0)} {words}" for stage, words in _WORDS.items())


def _size_line(row: Mapping[str, Any]) -> str:
    sizes = " ".join(f"{name}={value}" for name, value in row["problem"].items())
    rate = "not a bijection here" if row["l2_hit_rate"] is None else f"{100 * row['l2_hit_rate']:.2f} %"
    where = "held out" if row["held_out"] else "searched"
    launch_order = f"{100 * row['launched_l2_hit_rate']:.2f} %"
    return f"  {where}: {sizes}: L2 hit rate {launch_order} in launch order, {rate} with the best"


def _entry(attempt: Attempt) -> dict[str, Any]:
    score = attempt.score.as_dict() if attempt.score else None
    verdict = dict(attempt.verdict)
    return {"number": attempt.number, "name": attempt.name, "source": attempt.source} | {
        "parameters": verdict.get("parameters", {}),
        "score": score,
    }
