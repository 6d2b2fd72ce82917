"""`search`: the parameters of templates, searched by successive halving over templates and over fidelity.

A run that was stopped is gone through again from its beginning, with what it stored looked up; so it ends as it would
have ended, for any number of threads.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from swizzle_sim.kernels import Kernel
from swizzle_sim.search import OnAttempt, about_run, open_run
from swizzle_sim.templates import TemplateSpace, family_templates
from swizzle_sim.tuning.arms import Arm, rounds_of
from swizzle_sim.tuning.asking import asker_for
from swizzle_sim.tuning.bench import Bench
from swizzle_sim.tuning.plan import EVALUATIONS, Plan
from swizzle_sim.tuning.rungs import Searched, Searching
from xcd_model import Gpu
from xcd_model.errors import SearchError

__all__ = ["EVALUATIONS", "Plan", "Searched", "make_arms", "search"]


def search(
    kernels: Sequence[Kernel],
    gpu: Gpu,
    folder: str | Path,
    plan: Plan,
    *,
    replay: str = "timed",
    seed: int = 0,
    jitter_ns: float = 0.0,
    threads: int | None = None,
    resume: bool = False,
    command: str = "",
    on_attempt: OnAttempt | None = None,
) -> Searched:
    """Search the parameters of templates.

    Parameters
    ----------
    kernels : sequence of Kernel
        One kernel, or the same one at several sizes: then the mean gain over all of them counts, and a candidate has to
        be a bijection at each.
    gpu : Gpu
    folder : path
        Run folder to make; with ``resume`` one that an earlier call left.
    plan : Plan
    replay : {"timed", "lockstep"}
    seed : int
        Of the samplers and the jitter.
    jitter_ns : float [ns]
    threads : int, optional
        The result does not depend on it.
    resume : bool
    command : str
    on_attempt : callable, optional
        As `swizzle_sim.search.optimize`.

    Returns
    -------
    Searched

    Raises
    ------
    SearchError
        If a space is empty, or the sampler cannot serve the objectives.
    RunError
        If the folder exists and ``resume`` is off, or the run in it asked for something else.

    Source: template plus search is the idea of the Two-Stage Tuner (arXiv 2601.12698).
    """
    bench = Bench(kernels, gpu, replay=replay, seed=seed, jitter_ns=jitter_ns)
    arms = make_arms(kernels, gpu, plan, seed)
    asked = {**plan.as_dict(), "sizes": [dict(kernel.problem) for kernel in kernels[1:]]}
    about = {**about_run(bench.main, command), "search": asked}
    with open_run(Path(folder), about, resume, ("search",)) as history:
        try:
            history.set_state("running")
            with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
                found = Searching(bench, plan, history, pool.map, on_attempt).run(arms)
        except BaseException:
            history.set_state("interrupted")
            raise
        history.set_state("finished")
        return found


def make_arms(kernels: Sequence[Kernel], gpu: Gpu, plan: Plan, seed: int) -> list[Arm]:
    """An arm for each template; of the families only those that have something to try.

    Where there are fewer evaluations than templates, chance decides which come first.
    """
    given = bool(plan.templates)
    spaces = []
    for template in plan.templates or family_templates(kernels[0], gpu):
        try:
            spaces.append(TemplateSpace(template, kernels, gpu))
        except SearchError:
            if given:
                raise
    if plan.evaluations < len(spaces):
        random.Random(seed).shuffle(spaces)
    budget = plan.evaluations if len(spaces) == 1 else rounds_of(len(spaces), plan.evaluations)[0][1]
    return [
        Arm(space, asker_for(space, plan.sampler, seed, n_objectives=len(plan.objectives), budget=budget))
        for space in spaces
    ]
