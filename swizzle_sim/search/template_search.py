"""`search`: parameters of templates by successive halving, into a run folder or in memory (`search_on`)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from swizzle_sim.search.arms import Arm, rounds_of
from swizzle_sim.search.evaluator import Evaluator
from swizzle_sim.search.halving import SearchLoop, SearchResult
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.optimize import OnAttempt, RunConfig, about_run, open_run
from swizzle_sim.search.ranking import Objective
from swizzle_sim.search.samplers import make_sampler
from swizzle_sim.search.search_plan import SearchPlan
from swizzle_sim.search.templates import Template, TemplateSpace, family_templates, published_values
from swizzle_sim.search.templates.space import Values
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import SearchError

SHOWN = 6  # values of a parameter that the landscape names


def search(
    kernels: Sequence[Kernel],
    gpu: Gpu,
    folder: str | Path,
    plan: SearchPlan,
    **options: Any,
) -> SearchResult:
    """Search the parameters of templates.

    Parameters
    ----------
    kernels : sequence of Kernel
        One kernel, or the same one at several sizes: then the mean gain counts, and a candidate must be a bijection at
        each.
    gpu : Gpu
    folder : path
        Run folder to make; with ``resume`` one that an earlier call left.
    plan : SearchPlan
    **options
        Fields of `RunConfig`; the seed is also that of the samplers.

    Returns
    -------
    SearchResult

    Raises
    ------
    SearchError
        If a space is empty, or the sampler cannot handle the objectives.
    RunError
        If the folder exists and ``resume`` is off, or the run in it has other settings.

    Source: template plus search is the idea of the Two-Stage Tuner (arXiv 2601.12698).
    """
    how = RunConfig(**options)
    evaluator = Evaluator(kernels, gpu, **how.of_scorer)
    plan = replace(plan, objectives=plan.objectives or how.objectives_on(gpu))
    arms = make_arms(kernels, gpu, plan, how.seed)
    settings = {**plan.as_dict(), "sizes": [dict(kernel.problem) for kernel in kernels[1:]]}
    about = {**about_run(evaluator.main, how.command, plan.objectives), "search": settings}
    with open_run(Path(folder), about, how.resume, ("search",)) as history:
        with history.running(), ThreadPoolExecutor(how.n_threads) as pool:
            found = SearchLoop(evaluator, plan, history, pool.map, how.on_attempt).run(arms)
        return found


def make_arms(kernels: Sequence[Kernel], gpu: Gpu, plan: SearchPlan, seed: int) -> list[Arm]:
    """An arm for each template; of the families' templates only those whose space is not empty, so it may be none.

    Those have published values to begin with. Where there are fewer evaluations than given templates, their order is
    shuffled by the seed.
    """
    given = bool(plan.templates)
    published = {} if given else published_values(kernels[0], gpu)
    spaces = []
    for template in plan.templates or family_templates(kernels[0], gpu):
        try:
            spaces.append(TemplateSpace(template, kernels, gpu))
        except SearchError:
            if given:
                raise
    if given and plan.evaluations < len(spaces):
        random.Random(seed).shuffle(spaces)
    places = {name: place for place, name in enumerate(published)}
    spaces.sort(key=lambda space: places.get(space.template.name, len(places)))
    budget = plan.evaluations if len(spaces) <= 1 else rounds_of(len(spaces), plan.evaluations)[0][1]
    return [
        Arm(
            space,
            make_sampler(space, plan.sampler, seed, n_objectives=len(plan.objectives), budget=budget),
            () if given else _first(space, published.get(space.template.name, ())),
        )
        for space in spaces
    ]


def _first(space: TemplateSpace, published: Sequence[Values]) -> list[Values]:
    """Published values that a space has, or the start of a search where it has none."""
    ranges = {one.name: one.values for one in space.ranges}
    known = [{name: values[name] for name in ranges} for values in published]
    found = [one for one in known if all(one[name] in ranges[name] for name in ranges) and space.allows(one)]
    return found or [space.start]


class _InMemory(list):
    """Attempts in memory, in place of a history."""

    folder = Path(".")
    append_all = list.extend


def search_on(
    evaluator: Evaluator,
    templates: Sequence[Template] = (),
    *,
    evaluations: int,
    seed: int = 0,
    objectives: Sequence[Objective] = (),
    on_attempt: OnAttempt | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> SearchResult:
    """Search templates in memory.

    Parameters
    ----------
    evaluator : Evaluator
    templates : sequence of Template
        Empty for those of the families.
    evaluations : int
        Full replays, at least 1.
    seed : int
    objectives : sequence of Objective
        Empty for the default of the evaluator's GPU and replay.
    on_attempt : callable, optional
        Called as ``on_attempt(attempt, done, evaluations)``.
    enough : callable
        Asked before each batch whether to end.

    Raises
    ------
    SearchError
        If the constraints of a template allow nothing at the evaluator's sizes.
    LanguageError
        If a constraint reads a name that has no value.
    """
    objectives = tuple(objectives) or evaluator.objectives
    plan = SearchPlan(templates=tuple(templates), evaluations=evaluations, objectives=objectives)
    arms = make_arms([scorer.kernel for scorer in evaluator.scorers], evaluator.main.gpu, plan, seed)
    attempts: Any = _InMemory()
    return SearchLoop(evaluator, plan, attempts, map, on_attempt, enough=enough).run(arms)


def landscape(template: Template, attempts: Sequence[Attempt]) -> str:
    """Effect of a template's parameters in words: for each the best hit rate at some of its values.

    Parameters
    ----------
    template : Template
    attempts : sequence of Attempt
        Of `search_on`, the template alone.
    """
    tried = [a for a in attempts if a.number]
    scored = [a for a in tried if a.score is not None]
    stages = ("duplicate", "bound", "sampled", "refused")
    counts = {stage: sum(a.verdict["stage"] == stage for a in tried) for stage in stages}
    lines = [
        f"{len(tried)} of {template.size} combinations tried: {len(scored)} scored, {counts['duplicate']} repeat "
        f"another's permutation, {counts['bound']} cannot beat the best by their bound, {counts['sampled']} fell "
        f"behind on a sample of XCDs, {counts['refused']} are no bijection."
    ]
    if refused := next((a for a in tried if a.verdict["stage"] == "refused"), None):
        lines.append(f"For example {refused.name}: {refused.critique}")
    for one in template.ranges:
        best: dict[int, float] = {}
        for a in scored:
            value, rate = a.verdict["parameters"][one.name], 100 * (a.score.l2_hit_rate if a.score else 0.0)
            best[value] = max(best.get(value, 0.0), rate)
        if best:
            lines.append(f"{one.name}: {_by_value(best)}.")
    return " ".join(lines)


def _by_value(best: dict[int, float]) -> str:
    """Best rate by value, for every n-th value and the best one."""
    values = sorted(best)
    if max(best.values()) - min(best.values()) < 0.005:
        return f"makes no difference ({values[0]} to {values[-1]} all reach {best[values[0]]:.2f} %)"
    top = max(values, key=lambda value: (best[value], -value))
    step = max(1, -(-len(values) // SHOWN))
    shown = sorted({*values[::step], values[-1], top})
    return ", ".join(f"{value} reaches {best[value]:.2f} %" for value in shown) + f"; best at {top}"
