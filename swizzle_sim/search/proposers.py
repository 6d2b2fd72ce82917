"""What ``optimize --proposer`` names: a proposer of the entry-point group ``swizzle_sim.proposers``, or a user's file.

A proposer is a strategy, a generator of `swizzle_sim.search.loop.run` that takes the `Judge`; or, where it has options
and a table of its own, a callable that takes a `Task` and gives a `Proposed`. Nothing here imports an extra.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.capture.kernel_file import line_of, words_of
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.advice import may_drift
from swizzle_sim.search.candidates import Candidate, family_specs, has_families
from swizzle_sim.search.extensions import load_own
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Run, RunConfig, Strategy, about_run, open_run, run
from swizzle_sim.search.ranking import BestSoFar, Objective, ranking_of
from swizzle_sim.search.recorded import at_sizes
from swizzle_sim.search.strategies.families import SETTLED, is_settled, optimize
from swizzle_sim.search.strategies.halving import EVALUATIONS, SearchPlan, is_evaluation, search
from swizzle_sim.search.templates import Template, family_template, load_templates
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import RunError, SearchError, SwizzleSimError

GROUP = "swizzle_sim.proposers"
SHOWN = 5
WORTH_SAYING_S = 20.0  # of an estimate
IDLE = 500  # candidates without a score, or empty lists, in a row, after which a strategy has nothing new


@dataclass(frozen=True, kw_only=True)
class Task:
    """Input of a proposer; kernel and GPU are None where the run in ``repeat`` is repeated, which says them itself.

    ``how`` is how the run is made, ``options`` are the proposer's own, as typed; ``say`` takes a line of progress.
    """

    kernel: Kernel | None
    gpu: Gpu | None
    folder: Path
    how: RunConfig
    repeat: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] = print


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """Result of a proposer: its run, and remarks on it.

    One with a table of its own gives the rows, ``beside`` with their labels, and the document of ``--json``;
    ``again(run)`` is the same of the run whose finalists were compiled since. ``scorer`` is that of the run, where the
    proposer has it.
    """

    run: Run
    lines: tuple[str, ...] = ()
    scorer: Scorer | None = None
    beside: tuple[tuple[str, Attempt | None], ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict)
    again: Callable[[Run], Proposed] | None = None


def load_proposer(name: str) -> Callable[[Task], Proposed]:
    """Proposer of the registry, or the generator ``FUNCTION`` of ``FILE.py:FUNCTION``."""
    if name == "families":
        return families
    rule = "generator function, which yields candidates: docs/howto/search-strategy.md"
    found = load_own(name, GROUP, ["families"], inspect.isgeneratorfunction, rule)
    if not inspect.isgeneratorfunction(found):
        return found
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        raise RunError(f"{name}: a strategy takes one argument, the judge") from None
    return lambda task: _propose(found, name, task)


def _watched(strategy: Any, on_nothing: Callable[[bool], bool]) -> Strategy:
    """A strategy that says where it fails, or yields what is no candidate.

    ``on_nothing(empty)`` is told of each yield whether it was an empty list, and says whether that was one too many.
    """
    path = Path(strategy.gi_code.co_filename)

    def checked(one: Any) -> Any:
        if isinstance(one, Candidate | str):
            return one
        line = f"{path.name}:{strategy.gi_frame.f_lineno}"
        raise RunError(f"{line}: a strategy yields texts or candidates, or lists of them, not {one!r}")

    told: Any = None
    while not on_nothing(told == []):
        try:
            asked = strategy.send(told)
        except StopIteration:
            return
        except SwizzleSimError:
            raise
        except Exception as error:
            raise RunError(f"{line_of(error, path)}: {words_of(error)}") from error
        several = isinstance(asked, Iterable) and not isinstance(asked, str)
        told = yield map(checked, asked) if several else checked(asked)


def _task_of(task: Task) -> tuple[Kernel, Gpu]:
    """Kernel and GPU of a task that is no repetition."""
    if task.kernel is None or task.gpu is None or task.repeat is not None:
        raise SearchError("a search is repeated by the same command with the same seed: name a kernel and a GPU")
    return task.kernel, task.gpu


def _propose(strategy: Any, name: str, task: Task) -> Proposed:
    """Run a strategy: as many replays as ``--evaluations`` and as long as ``--max-minutes`` say."""
    kernel, gpu = _task_of(task)
    how = task.how
    scorer = Scorer(kernel, gpu, **how.of_scorer)
    judge = Judge(scorer, how.objectives_on(scorer))
    budget, best = task.options.get("evaluations", EVALUATIONS), BestSoFar(judge.objectives[0])
    spent = idle = 0
    about = {**about_run(judge.scorer, how.command, judge.objectives), "strategy": name, "evaluations": budget}

    def on_attempt(attempt: Attempt) -> None:
        nonlocal spent, idle
        spent += is_evaluation(attempt)
        idle = idle + 1 if attempt.number and not is_evaluation(attempt) else 0
        progress(spent, budget, note=best(attempt.score))

    def on_nothing(empty: bool) -> bool:
        nonlocal idle
        idle += empty
        return idle >= IDLE

    with (
        open_run(task.folder, about, task.how.resume, ("strategy",)) as history,
        history.running(),
        Progress(f"proposer {name}", "evaluations") as progress,
    ):
        run(
            _watched(strategy(judge), on_nothing),
            judge,
            history,
            replace(how.budget, enough=lambda: spent >= budget or idle >= IDLE),
            proposer=name.rpartition(":")[2],
            on_attempt=on_attempt,
        )
        if idle >= IDLE:
            task.say(
                f"stopped: {IDLE} candidates in a row were refused, repeat another's permutation, or were empty lists"
            )
        made = Run(history.folder, tuple(history), ranking_of(about))
    return Proposed(run=made, scorer=judge.scorer)


def families(task: Task) -> Proposed:
    """Try the known families: what ``--proposer families`` does."""
    kernel, gpu = _task_of(task)
    how, began = task.how, time.monotonic()
    scorer = Scorer(kernel, gpu, **how.of_scorer)
    best = BestSoFar(how.objectives_on(scorer)[0])
    costs: list[float] = []

    def on_attempt(attempt: Attempt, done: int, total: int) -> None:
        if attempt.number and attempt.score and not costs:  # the launch order was replayed before
            costs.append(attempt.cost_ms / 1e3)
            if not task.how.resume and (estimate := _estimate(costs[0], total, scorer, how)):
                task.say(estimate)
        if attempt.number == 0 and attempt.score and may_drift(scorer, attempt.score):
            ahead.submit(lambda: scorer.quick.baseline)  # compiled, if need be, and kept until advice asks for it
        progress(done, total, note=best(attempt.score))

    with ThreadPoolExecutor(1) as ahead, Progress(f"optimizing {kernel.name} on {gpu.title}", "candidates") as progress:
        made = optimize(kernel, gpu, task.folder, scorer=scorer, **vars(replace(how, on_attempt=on_attempt)))
    if how.max_minutes is not None and time.monotonic() - began > 60 * how.max_minutes:
        task.say(f"stopped after {how.max_minutes:g} minutes: --resume {task.folder} goes on")
    return Proposed(run=made, scorer=scorer, lines=_of_families(made, scorer))


def _estimate(each: float, total: int, scorer: Scorer, how: RunConfig) -> str:
    """How long all may take, at so many seconds each; empty where that is soon."""
    seconds = each * (total - 1) / how.budget.threads
    if seconds < WORTH_SAYING_S:
        return ""
    minutes, every = max(1, round(seconds / 60)), 1 + sum(1 for _ in family_specs(scorer.kernel, scorer.gpu))
    if how.max_minutes is not None and how.max_minutes < minutes:
        most = f"as many as {how.max_minutes:g} min allow, most promising first"
        return f"{total} candidates at about {each:.1f} s: {most}"
    many = f"{total} of {every} candidates, most promising first," if total < every else f"{total} candidates"
    more = "; --max-minutes tries more" if total < every else ""
    return f"{many} at about {each:.1f} s: about {minutes} min at most{more}"


def _of_families(made: Run, scorer: Scorer) -> tuple[str, ...]:
    """Why a run of families is as short as it is."""
    if not has_families(scorer.kernel, scorer.gpu):
        return ("no family orders it otherwise: a line of workgroups on one XCD, whose work is even or falls",)
    if len(made.attempts) > SETTLED or not is_settled(scorer):
        return ()
    tried = "no other was" if len(made.attempts) == 1 else f"{made.attempts[1].name} alone was"
    why = "workgroups share next to no lines, or the launch order is at the bound"
    return (f"no order can raise the hit rate ({why}): {tried} tried",)


def propose(task: Task) -> Proposed:
    """Search templates: what ``--proposer search`` does."""
    kernel, device = _task_of(task)
    given = task.options
    plan = SearchPlan(
        templates=tuple(templates_of(given.get("templates", ()), kernel, device)),
        objectives=task.how.objectives_on(Scorer(kernel, device, **task.how.of_scorer)),
        evaluations=given.get("evaluations", EVALUATIONS),
    )
    kernels = [kernel, *_at(task, given.get("sizes", ()))]
    held_out = _at(task, given.get("held_out", ()))
    began, best = time.perf_counter(), BestSoFar(plan.objectives[0])
    with Progress("searching", "evaluations") as progress:
        how = replace(task.how, on_attempt=lambda one, done, total: progress(done, total, note=best(one.score)))
        found = search(kernels, device, task.folder, plan, **vars(how))
    took_s = None if task.how.resume else time.perf_counter() - began  # the time of earlier commands is unknown
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
        scorer = Scorer(kernel, gpu, **task.how.of_scorer)
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
    others = ", ".join(f"{counts.get(stage, 0)} {words}" for stage, words in _WORDS.items())
    lines = [
        f"{len(made.attempts) - 1} candidates: {replayed} replayed in full, {others}",
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


def _size_line(row: Mapping[str, Any]) -> str:
    sizes = " ".join(f"{name}={value}" for name, value in row["problem"].items())
    rate = "not a bijection here" if row["l2_hit_rate"] is None else f"{100 * row['l2_hit_rate']:.2f} %"
    where = "held out" if row["held_out"] else "searched"
    launch_order = f"{100 * row['launched_l2_hit_rate']:.2f} %"
    return f"  {where}: {sizes}: L2 hit rate {launch_order} in launch order, {rate} with the best"


def _entry(attempt: Attempt) -> dict[str, Any]:
    told = {"parameters": attempt.verdict.get("parameters", {}), "score": attempt.score and attempt.score.as_dict()}
    return {"number": attempt.number, "name": attempt.name, "source": attempt.source, **told}
