"""Four ways to look for an order: families, random parameters, two-stage search, edits of formulas."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import Bench
from swizzle_sim.search.candidates import Candidate, family_candidates
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Budget, InMemory, run
from swizzle_sim.search.samplers import random_points
from swizzle_sim.search.strategies.halving import search_on
from swizzle_sim.search.templates import TemplateSpace, family_templates
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import SearchError

from .edits import edited

TRIES = 40  # texts judged for each replay wanted, before a method gives up: most edits are no bijections
STARTS, KEPT = 4, 4  # families that edits begin with, and formulas that they go on with


@dataclass(frozen=True)
class Trial:
    """One method on one kernel with one seed: scores in the order of the evaluations, and the time they took."""

    rates: list[float]  # L2 hit rates, 0 to 1. The first is that of the launch order, which costs no evaluation.
    times_us: list[float]  # predicted times of the same orders
    wall_s: float  # [s]
    cpu_s: float


Method = Callable[[Kernel, Gpu, int, int], list[Score]]


def timed(method: Method, work: Kernel, device: Gpu, evaluations: int, seed: int) -> Trial:
    """Run a method and take its time."""
    wall, cpu = time.perf_counter(), time.process_time()
    scores = method(work, device, evaluations, seed)
    return Trial(
        rates=[score.l2_hit_rate for score in scores],
        times_us=[score.time_us for score in scores],
        wall_s=time.perf_counter() - wall,
        cpu_s=time.process_time() - cpu,
    )


def _scored(work: Kernel, device: Gpu, sources: Callable[[list], Iterator[str]], evaluations: int) -> list[Score]:
    """Score new permutations of a stream of texts until the evaluations are spent.

    ``sources(pool)`` may look at ``pool``, the (cost, text) pairs scored so far; less is better.
    """
    judge = Judge(Scorer(work, device, replay="timed"))
    pool: list[tuple[float, str]] = []

    def told(attempt: Attempt) -> None:
        if attempt.score is not None:
            pool.append((judge.cost(attempt), attempt.source))

    texts = itertools.islice(sources(pool), TRIES * evaluations)
    each = (Candidate("edit", source, "method") for source in texts)
    found = run(each, judge, InMemory(), Budget(enough=lambda: len(pool) > evaluations), on_attempt=told)
    return [attempt.score for attempt in found if attempt.score is not None]


def families(work: Kernel, device: Gpu, evaluations: int, seed: int) -> list[Score]:
    """Published families at published parameters, in random order."""
    listed = family_candidates(work, device)
    random.Random(seed).shuffle(listed)
    return _scored(work, device, lambda pool: (one.source for one in listed), evaluations)


def parameters(work: Kernel, device: Gpu, evaluations: int, seed: int) -> list[Score]:
    """A template of the families and its parameters, both drawn at random."""

    def sources(pool: list) -> Iterator[str]:
        draw, arms = random.Random(seed), []
        for template in family_templates(work, device):
            try:
                space = TemplateSpace(template, [work], device)
            except SearchError:
                continue
            arms.append((template, random_points(space, draw.randrange(2**31))))
        while arms:
            template, points = arm = draw.choice(arms)
            if (values := next(points, None)) is None:
                arms.remove(arm)
            else:
                yield template.source(values)

    return _scored(work, device, sources, evaluations)


def two_stage(work: Kernel, device: Gpu, evaluations: int, seed: int) -> list[Score]:
    """The search as it is by default, over the templates of the families."""
    found = search_on(Bench(Scorer(work, device, replay="timed")), evaluations=evaluations, seed=seed)
    return [a.score for a in found.attempts if a.score is not None]


def edits(work: Kernel, device: Gpu, evaluations: int, seed: int) -> list[Score]:
    """Random edits of the best formulas so far, beginning with a few families."""

    def sources(pool: list) -> Iterator[str]:
        draw = random.Random(seed)
        yield from (one.source for one in draw.sample(family_candidates(work, device), STARTS))
        while True:
            best = sorted(pool)[:KEPT]
            yield edited(draw.choice(best)[1], draw)

    return _scored(work, device, sources, evaluations)


METHODS: dict[str, Method] = {
    "families only": families,
    "random parameters": parameters,
    "two-stage search": two_stage,
    "formula edits": edits,
}
