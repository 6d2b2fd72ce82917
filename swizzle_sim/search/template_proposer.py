"""The proposer ``search`` of the command line: options in, run and summary out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.language import Swizzle
from swizzle_sim.search.evaluator import Evaluator
from swizzle_sim.search.halving import SearchResult
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.optimize import Run
from swizzle_sim.search.proposers import Proposed, Task
from swizzle_sim.search.ranking import BestSoFar, Objective, chosen_objectives
from swizzle_sim.search.recorded import at_sizes
from swizzle_sim.search.search_plan import EVALUATIONS, SearchPlan
from swizzle_sim.search.template_search import search
from swizzle_sim.search.templates import Template, family_template, load_templates
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import NotBijective, SearchError

OPTIONS = ("templates", "sampler", "evaluations", "sizes", "held_out")
SHOWN = 5


def propose(task: Task) -> Proposed:
    """Search templates for the command line.

    Raises
    ------
    SearchError
        If an option is invalid, or a space is empty.
    """
    if task.kernel is None or task.gpu is None or task.repeat is not None:
        raise SearchError("a search is repeated by the same command with the same seed: name a kernel and a GPU")
    given = {key: value for key, value in task.options.items() if value is not None}
    plan = SearchPlan(
        templates=tuple(templates_of(given.get("templates", ()), task.kernel, task.gpu)),
        objectives=chosen_objectives(task.objective, task.gpu.name, task.replay),
        sampler=given.get("sampler", "auto"),
        evaluations=given.get("evaluations", EVALUATIONS),
    )
    more = [at_sizes(task.kernel, sizes, task.gpu.arch) for sizes in given.get("sizes", ())]
    held_out = [at_sizes(task.kernel, sizes, task.gpu.arch) for sizes in given.get("held_out", ())]
    began, best = time.perf_counter(), BestSoFar(plan.objectives[0])
    with Progress("searching", "evaluations") as progress:
        found = search(
            [task.kernel, *more],
            task.gpu,
            task.folder,
            plan,
            replay=task.replay,
            seed=task.seed,
            jitter_ns=task.jitter_ns,
            resume=task.resume,
            command=task.command,
            on_attempt=lambda attempt, done, total: progress(done, total, note=best(attempt.score)),
        )
    took_s = None if task.resume else time.perf_counter() - began  # the time of earlier commands is unknown
    kernels, device = [task.kernel, *more], task.gpu
    rows = cache(lambda source: held_out_rows(source, kernels, held_out, task, device))

    def proposed(run: Run) -> Proposed:
        of = {one.number: one for one in run.attempts}
        now = replace(found, run=run, front=tuple(of[one.number] for one in found.front))
        return Proposed(run=run, again=proposed, **_shown(now, plan.objectives, rows(run.best.source), took_s))

    return proposed(found.run)


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
        bench = Evaluator([kernel], gpu, replay=task.replay, seed=task.seed, jitter_ns=task.jitter_ns)
        launched, row = bench.main.baseline, {"problem": dict(kernel.problem), "held_out": kernel in held_out}
        try:
            score = bench.main.score(Swizzle.parse(source))
            found: tuple[float | None, float | None] = score.l2_hit_rate, score.time_us
        except NotBijective:
            found = None, None
        row |= {"launched_l2_hit_rate": launched.l2_hit_rate, "l2_hit_rate": found[0]}
        rows.append(row | {"launched_time_us": launched.time_us, "time_us": found[1]})
    return rows


def _shown(
    found: SearchResult,
    objectives: Sequence[Objective],
    elsewhere: Sequence[Mapping[str, Any]],
    took_s: float | None,
) -> dict[str, Any]:
    """Rows, lines and document of a `Proposed`."""
    run, best, names = found.run, found.run.best, [one.name for one in objectives]
    scored = [one for one in run.ranked if one.number]
    shown = list(found.front) if len(objectives) > 1 else scored[:SHOWN]
    label = "Pareto front" if len(objectives) > 1 else "search"
    replayed = found.counts.get("replay", 0)
    lines = [
        f"{len(run.attempts) - 1} candidates: {replayed} replayed in full, "
        + ", ".join(f"{found.counts.get(stage, 0)} {words}" for stage, words in _WORDS.items()),
        *([f"{took_s:.1f} s, {60 * replayed / took_s:.0f} evaluations a minute"] if took_s else []),
        f"objective {', '.join(names)}: best is attempt {best.number}, {best.name} (best.txt)",
        *(_size_line(row) for row in elsewhere),
    ]
    document = {
        "objectives": names,
        "counts": dict(found.counts),
        "front": [_entry(a) for a in found.front],
        "best": [_entry(a) for a in scored[:SHOWN]],
        "sizes": [dict(row) for row in elsewhere],
    }
    beside = (("launch order", run.baseline), *((f"{label} {i + 1}", a) for i, a in enumerate(shown)))
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
    score = attempt.score.as_dict() if attempt.score else None
    verdict = dict(attempt.verdict)
    return {"number": attempt.number, "name": attempt.name, "source": attempt.source} | {
        "parameters": verdict.get("parameters", {}),
        "score": score,
    }
