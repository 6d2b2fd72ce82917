"""`search`: parameters of templates by successive halving over templates, the arms, with a sampler for each.

The published values of all arms come first, on half of the evaluations; then rounds, in each of which the better half
of the arms goes on. Batches are judged rung by rung, and the worse half of each is dropped by a cheap replay.

Source: Karnin, Koren and Somekh, ICML 2013 (sequential halving); template plus search is the idea of the Two-Stage
Tuner (arXiv 2601.12698).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import Bench
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Budget, InMemory, OnAttempt, Run, RunConfig, about_run, counting, open_run, run
from swizzle_sim.search.ranking import Objective, pareto_front
from swizzle_sim.search.samplers import Sampler, make_sampler
from swizzle_sim.search.templates import Template, TemplateSpace, family_templates, published_values
from swizzle_sim.search.templates.space import Values
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import SearchError

PROPOSER = "search"
EVALUATIONS = 400  # full replays of a search by default
BATCH = 8  # candidates suggested before any cost is reported; the same for any number of threads
SAMPLED_FIRST = 4  # published candidates for each evaluation that are looked at on a sample of XCDs
DRAWS = 4  # suggestions for each replay of its quota, before a round gives up on a template
UNREPLAYED = {  # by where a candidate of a template ends before its replay
    "duplicate": "repeat another's permutation",
    "bound": "cannot beat the best by their bound",
    "sampled": "fell behind on a sample of XCDs",
    "screen": "fell behind in lockstep",
}
SHOWN = 6  # values of a parameter that the landscape names


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """Settings of a search; no templates for those of the families, no objectives for the default of GPU and replay.

    ``evaluations`` are full replays, at least 1; at several sizes a candidate counts once.
    """

    templates: tuple[Template, ...] = ()
    objectives: tuple[Objective, ...] = ()
    evaluations: int = EVALUATIONS

    def __post_init__(self):
        if self.evaluations < 1:
            raise SearchError(f"evaluations = {self.evaluations}: at least 1", code="space")

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "templates": [one.text for one in self.templates],
            "objectives": [one.name for one in self.objectives],
            "evaluations": self.evaluations,
        }


def search(kernels: Sequence[Kernel], gpu: Gpu, folder: str | Path, plan: SearchPlan, **options: Any) -> Run:
    """Search the parameters of templates into a run folder; ``options`` are fields of `RunConfig`.

    Of the same kernel at several sizes the mean gain counts, and a candidate must be a bijection at each.
    """
    how = RunConfig(**options)
    bench = Bench(*(Scorer(kernel, gpu, **how.of_scorer) for kernel in kernels))
    plan = replace(plan, objectives=plan.objectives or how.objectives_on(bench.main))
    settings = {**plan.as_dict(), "sizes": [dict(kernel.problem) for kernel in kernels[1:]]}
    about = {**about_run(bench.main, how.command, plan.objectives), "search": settings}
    judge = Judge(bench, plan.objectives, prunes=True)
    strategy = Halving(judge, make_arms(kernels, gpu, plan, how.seed), plan.evaluations)
    with open_run(Path(folder), about, how.resume, ("search",)) as history, history.running():
        return _halve(strategy, history, how.budget, how.on_attempt)


def search_on(
    bench: Bench,
    templates: Sequence[Template] = (),
    *,
    evaluations: int,
    seed: int = 0,
    objectives: Sequence[Objective] = (),
    threads: int = 1,
    on_attempt: OnAttempt | None = None,
) -> Run:
    """Search templates in memory, by default those of the families."""
    judge = Judge(bench, objectives, prunes=True)
    plan = SearchPlan(templates=tuple(templates), evaluations=evaluations, objectives=judge.objectives)
    arms = make_arms([scorer.kernel for scorer in bench.scorers], bench.main.gpu, plan, seed)
    return _halve(Halving(judge, arms, evaluations), InMemory(), Budget(threads=threads), on_attempt)


def _halve(strategy: Halving, history: History | InMemory, budget: Budget, on_attempt: OnAttempt | None) -> Run:
    told = counting(on_attempt, strategy.evaluations, is_evaluation)
    attempts = run(strategy.propose(), strategy.judge, history, budget, on_attempt=told)
    return Run(history.folder, tuple(attempts), strategy.judge.ranking)


def is_evaluation(attempt: Attempt) -> bool:
    """Whether an attempt spent a full replay of the budget; that of the launch order is free."""
    return attempt.number > 0 and attempt.score is not None


@dataclass
class Arm:
    """One template in a search; ``first`` are published values, tried before the sampler is asked."""

    space: TemplateSpace
    sampler: Sampler
    first: Sequence[Values] = ()
    costs: list[tuple[float, ...]] = field(default_factory=list)
    is_empty: bool = False

    def suggest(self) -> Suggestion | None:
        """Next suggestion, or None for good."""
        found = None if self.is_empty else self.sampler.suggest()
        self.is_empty = found is None
        return Suggestion(self, *found) if found else None

    @property
    def best(self) -> float:
        """Least sum of costs; infinite without any."""
        return min((sum(costs) for costs in self.costs), default=math.inf)


@dataclass
class Suggestion:
    """Values that the sampler of an arm suggested."""

    arm: Arm
    handle: Any
    values: Values

    @property
    def candidate(self) -> Candidate:
        """Text of the template with these values; one of a space that is tried whole is dropped by no screen."""
        template, whole = self.arm.space.template, self.arm.sampler.whole
        told = {"template": template.name, "parameters": dict(self.values)}
        return Candidate(template.title(self.values), template.source(self.values), PROPOSER, told, sure=whole)


@dataclass
class Halving:
    """The strategy: what it has spent of its evaluations, and how it spends the rest."""

    judge: Judge
    arms: list[Arm]
    evaluations: int
    spent: int = 0

    def propose(self) -> Generator[list[Candidate], list[Attempt], None]:
        """What is published first; then all rounds, of the arms that did best there.

        Screened candidates count in a round and cost no evaluation: with what they leave the rounds begin again.
        """
        is_published = any(arm.first for arm in self.arms)
        if is_published:
            yield from self._published()
        spent = -1
        while spent < self.spent < self.evaluations and not self.judge.at_bound:
            spent, left = self.spent, self.evaluations - self.spent
            best = self.arms
            for n_arms, quota in rounds_of(min(len(best), most_arms(left)) if is_published else len(best), left):
                best = better_half(best, n_arms)
                yield from self._round(best, quota)
            is_published = True  # all arms have been tried

    def _published(self) -> Generator[list[Candidate], list[Attempt], None]:
        """Published values of all arms, one of each in turn, until half of the evaluations are spent.

        Where a sample of XCDs tells hit rates, `SAMPLED_FIRST` of them for each evaluation are put in its order before.
        """
        turns = itertools.zip_longest(*([(arm, values) for values in arm.first] for arm in self.arms))
        listed = [Suggestion(pair[0], None, pair[1]) for turn in turns for pair in turn if pair is not None]
        if self.judge.screens == "sampled":
            listed = listed[: SAMPLED_FIRST * self.evaluations]
            costs = list(self.judge.map(self.judge.sample, [one.candidate for one in listed]))
            listed = [listed[i] for i in sorted(range(len(listed)), key=costs.__getitem__)]
        most = -(-self.evaluations // 2)
        while listed and self.spent < most and not self.judge.at_bound:
            now = min(BATCH, most - self.spent)
            batch, listed = listed[:now], listed[now:]
            yield from self._try([replace(one, handle=one.arm.sampler.take(one.values)) for one in batch])

    def _round(self, arms: list[Arm], quota: int) -> Generator[list[Candidate], list[Attempt], None]:
        left = dict.fromkeys(range(len(arms)), quota)
        draws = dict.fromkeys(left, DRAWS * quota + BATCH)
        while self.spent < self.evaluations and not self.judge.at_bound:
            batch = take_batch(arms, left, draws, min(BATCH, self.evaluations - self.spent))
            if not batch:
                return
            counted = yield from self._try(batch)
            for i, arm in enumerate(arms):
                left[i] -= sum(one.arm is arm for one in counted)

    def _try(self, batch: list[Suggestion]) -> Generator[list[Candidate], list[Attempt], list[Suggestion]]:
        """Propose a batch and tell the samplers; return the suggestions that count against the quota of a round."""
        counted = []
        for one, attempt in zip(batch, (yield [one.candidate for one in batch]), strict=True):
            costs = self.judge.costs(attempt)
            if attempt.score is not None or attempt.verdict["stage"] == "sampled":
                counted.append(one)
                one.arm.costs.append(costs or ())
            self.spent += is_evaluation(attempt)
            one.arm.sampler.tell(one.handle, costs)
        return counted


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
            make_sampler(space, seed, n_objectives=len(plan.objectives), budget=budget),
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


def rounds_of(n_arms: int, evaluations: int) -> list[tuple[int, int]]:
    """Rounds of successive halving: how many arms take part in each, and how many replays each arm gets.

    Together they are about ``evaluations`` replays; the last arm may take the rest. None without arms.
    """
    if n_arms == 0:
        return []
    n_rounds = max(1, math.ceil(math.log2(n_arms)) + 1) if n_arms > 1 else 1
    each = evaluations / n_rounds
    rounds, left = [], n_arms
    for _ in range(n_rounds):
        rounds.append((left, max(1, int(each / left))))
        left = max(1, -(-left // 2))
    return rounds


def most_arms(evaluations: int) -> int:
    """A power of two: arms that `rounds_of` can begin with, so that the first round leaves the others their share."""
    most = 1
    while 2 * most * len(rounds_of(2 * most, evaluations)) <= evaluations:
        most *= 2
    return most


def better_half(arms: Sequence[Arm], n: int) -> list[Arm]:
    """The ``n`` best arms, in their given order: those with a point on the Pareto front, then by cost."""
    owners = [(arm, costs) for arm in arms for costs in arm.costs]
    front = {id(owners[i][0]) for i in pareto_front([costs for _, costs in owners])}
    ranked = sorted(range(len(arms)), key=lambda i: (arms[i].is_empty, id(arms[i]) not in front, arms[i].best, i))
    return [arms[i] for i in sorted(ranked[:n])]


def take_batch(arms: Sequence[Arm], left: dict[int, int], draws: dict[int, int], most: int) -> list[Suggestion]:
    """Up to ``most`` suggestions, one an arm in turn; ``left`` replays and ``draws`` bound them by arm."""
    batch: list[Suggestion] = []
    pending = dict.fromkeys(left, 0)
    while len(batch) < most:
        before = len(batch)
        for i, arm in enumerate(arms):
            if len(batch) == most or pending[i] >= left[i] or draws[i] <= 0:
                continue
            if (found := arm.suggest()) is None:
                continue
            draws[i] -= 1
            pending[i] += 1
            batch.append(found)
        if len(batch) == before:
            break
    return batch


def landscape(template: Template, attempts: Sequence[Attempt]) -> str:
    """Effect of a template's parameters in words: for each the best hit rate at some of its values.

    ``attempts`` are those of `search_on` with the template alone.
    """
    tried = [a for a in attempts if a.number]
    scored = [a for a in tried if a.score is not None]
    refused = [a for a in tried if not a.verdict["bijective"]]
    ends = {stage: sum(a.verdict["stage"] == stage for a in tried) for stage in UNREPLAYED}
    ends_in_words = "".join(f", {n} {UNREPLAYED[stage]}" for stage, n in ends.items() if n)
    lines = [
        f"{len(scored)} of {template.size} combinations replayed{ends_in_words}, {len(refused)} no bijection, "
        f"{max(0, template.size - len(tried))} not looked at."
    ]
    if refused:
        lines.append(f"For example {refused[0].name}: {refused[0].critique}")
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
