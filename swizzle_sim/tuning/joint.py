"""`tune`: the levers of a kernel searched alone and together, each with as many evaluations, through one judge.

    order alone            the families' shortlist on the kernel as it is
    configuration alone    a sampler over constants and options, in launch order
    both                   the sampler, and from two thirds of the evaluations on orders of its best configurations,
                           while they gain; where no order can gain, the sampler goes on as it does alone

A replay is stored by what was replayed: an arm that meets a point of another one counts it and does not repeat it. The
last evaluations of both are the best of each lever alone, unless both are better by more than the model tells apart: an
order that gains nothing on top of a configuration is left out, so both are never worse. The findings of
`swizzle_sim.tuning.analysis` and the autotuner's own configurations are what a sampler is given first. A point whose
instructions alone take longer than the best so far is screened, and counts as none.

A suggestion is replayed with estimated resources first, and compiled where it may be the best: where it is behind by no
more than `DOUBT`, or than an estimate of this search was above what its compile gave. Others count as evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, count, islice
from typing import Any

from swizzle_sim.pricing.scores import Score
from swizzle_sim.search.candidates import LAUNCH_ORDER, Candidate, balancing_orders, distinct_shortlist
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Budget, Points, run
from swizzle_sim.search.samplers import Sampler, make_sampler
from swizzle_sim.search.templates.space import Values
from swizzle_sim.tuning.analysis import Finding, findings
from swizzle_sim.tuning.levers import Configurations, Levers
from xcd_model.errors import SearchError, SwizzleSimError

EVALUATIONS = 24  # of each arm
COMPILES = 4  # for each evaluation of an arm, of all arms
BATCH = 4  # points that are replayed before any of them is told
AHEAD = 2 * BATCH  # points that are suggested, and compiled at once, before any of them is told
OF_ORDERS = 3  # one evaluation in so many of a joint search is one of these orders, where they can gain
FINALISTS = 2  # instances whose orders a joint search tries
CHECKED = 2  # evaluations of a joint search that are left for the best of one lever alone
BALANCED_OF = 48  # orders of the shortlist among which those that balance uneven work go first
ALIKE = 0.02  # relative gap of times that the model does not tell apart; of a rate 0 to 1 its tenth
FEWER = 1.1  # ratio of misses from which an instance of the same time is the better one
DOUBT = 0.25  # logarithm of the ratio of times, as far as an estimate is doubted at least
GIVEN_UP = 3  # points without a score, for each evaluation, at which an arm ends
ONE_AT_A_TIME = Budget()
Turns = Generator[list[Candidate], list[Attempt], None]
OnReplay = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Point:
    """One instance of a kernel, and its score."""

    values: Values
    order: str
    score: Score
    resources: Mapping[str, Any]
    workgroups: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        told = {"values": dict(self.values), "swizzle": self.order, "resources": dict(self.resources)}
        return {**told, "workgroups": self.workgroups, "score": self.score.as_dict()}


@dataclass(eq=False)
class Arm:
    """One or several levers, and the points that were tried with them."""

    name: str
    levers: tuple[str, ...]
    points: list[Point] = field(default_factory=list)
    screened: int = 0  # points that were not replayed, as their instructions alone take longer than the best
    estimated: int = 0  # points far behind the best as estimated, which were not compiled

    @property
    def evaluations(self) -> int:
        """Replays of its points."""
        return len(self.points) + self.estimated


@dataclass(eq=False)
class Tuned:
    """What a search found: the kernel as it is, and an arm for each lever and for all."""

    levers: Levers
    base: Point
    arms: list[Arm]
    findings: list[Finding]
    asked: tuple[str, ...]  # levers, those that the kernel does not have among them

    def cost(self, point: Point) -> float:
        """What is least."""
        return self.levers.objective.cost(point.score)

    @property
    def alike(self) -> float:
        """Gap of two costs that the model does not tell apart."""
        return ALIKE / 10 if self.levers.objective.largest else ALIKE

    def ranked(self, points: Sequence[Point]) -> list[Point]:
        """Points, best first, each instance once.

        Those whose times the model does not tell apart from the best are ranked by misses of the L2, then by how little
        they change.
        """
        once = {(tuple(one.values.items()), one.order): one for one in points}
        best = min(map(self.cost, once.values()), default=0.0)
        near = best + self.alike
        tied = [one for one in once.values() if self.cost(one) <= near]
        fewest = min((one.score.l2_misses for one in tied), default=0)

        def place(one: Point) -> tuple[Any, ...]:
            if self.cost(one) > near:
                return (1, self.cost(one))
            many = one.score.l2_misses > FEWER * fewest
            return (0, many, self.changes(one), self.cost(one))

        return sorted(once.values(), key=place)

    def changes(self, point: Point) -> int:
        """Parameters of an instance that differ from the kernel as it is, its order among them."""
        start = self.levers.template.start
        return sum(point.values[name] != was for name, was in start.items()) + (point.order != LAUNCH_ORDER.name)

    def best(self, arm: Arm) -> Point:
        """Best point of an arm, the kernel as it is where none is better; that of one lever where more gain nothing."""
        points = [self.base, *arm.points]
        alone = [self.best(one) for one in self.arms if len(one.levers) < len(arm.levers)]
        near = [one for one in alone if self.cost(one) <= min(map(self.cost, points)) + self.alike]
        return min(near, key=self.cost, default=self.ranked(points)[0])


def tune(
    levers: Levers,
    names: Sequence[str],
    store: PointStore,
    *,
    evaluations: int = EVALUATIONS,
    budget: Budget = ONE_AT_A_TIME,
    on_replay: OnReplay = lambda arm, done, evaluations: None,
) -> Tuned:
    """Search some levers, each alone and all together, with as many evaluations."""
    have = [name for name in names if levers.has(name)]
    if not have:
        said = [why for name, why in levers.refused.items() if name.split()[0] in names]
        raise SearchError(f"--tune {','.join(names)}: {'; '.join(said) or 'nothing to choose'}", code="tune")
    search = _Search(levers, store, budget, evaluations, on_replay)
    base = search.base()
    found = findings(levers.template, levers.base, base.score)
    search.first = [values for one in found for values in one.values]
    search.first += [levers.template.values_of(one) for one in levers.template.autotuned]
    arms = [Arm(name, (name,)) for name in have]
    arms += [Arm("both" if len(have) == 2 else "all", tuple(have))] if len(have) > 1 else []
    tuned = Tuned(levers, base, arms, found, tuple(names))
    for arm in arms:
        search.run(arm, tuned)
    return tuned


@dataclass(eq=False)
class _Search:
    """One search: what is shared by its arms."""

    levers: Levers
    store: PointStore
    budget: Budget
    evaluations: int
    on_replay: OnReplay
    first: list[Values] = field(default_factory=list)  # configurations that samplers are given first
    base_us: float = 0.0
    estimates: dict[tuple[Any, ...], float] = field(default_factory=dict)  # costs, of instances that were compiled
    doubt: float = DOUBT

    def base(self) -> Point:
        """The kernel as it is, in launch order."""
        found: list[Point] = []

        def propose() -> Turns:
            found.extend(self.taken((yield [self.levers.candidate(self.levers.template.start)])))

        self._run(propose())
        self.base_us = found[0].score.time_us
        return found[0]

    def run(self, arm: Arm, tuned: Tuned) -> None:
        """Try the points of an arm."""
        alone = arm.levers == ("order",)
        start = self.levers.template.start
        self._run(self._orders(arm, start, self.evaluations) if alone else self._sampled(arm, tuned))

    def _run(self, strategy: Turns) -> None:
        history = Points(self.store, self._point_of, lambda one: {"score": one.score and one.score.as_dict()})
        run(strategy, self._judge_of, history, self.budget)

    def _judge_of(self, candidate: Candidate) -> Judge:
        judge = self.levers.judge(candidate.told["values"])
        assert judge  # looked at before it was proposed
        return judge

    def _point_of(self, name: str, told: Mapping[str, Any]) -> dict[str, Any]:
        base, gpu = self.levers.template.base, self.levers.template.gpu
        about = {"kernel": base.name, "digest": base.digest, "problem": dict(base.problem), "gpu": gpu.name}
        how = {"replay": self.levers.replay, "seed": self.levers.seed, "jitter_ns": self.levers.jitter_ns}
        instance = self.levers.template.instance(told["values"]).resources
        return {**about, **how, "values": told["values"], "swizzle": name, "resources": instance and asdict(instance)}

    def taken(self, attempts: Sequence[Attempt]) -> list[Point]:
        """Points of the attempts that have a score."""
        found = []
        for one in attempts:
            judge = self.levers.judge(one.verdict["values"]) if one.score else None
            if one.score is not None and judge is not None:
                resources = {k: v for k, v in asdict(judge.kernel.resources).items() if k in SHOWN}
                resources["workgroups_per_cu"] = judge.scorer.occupancy
                programs = judge.kernel.programs or judge.kernel.grid.num_pids
                score = replace(one.score, speedup=self.base_us / one.score.time_us) if self.base_us else one.score
                found.append(Point(dict(one.verdict["values"]), one.name, score, resources, programs))
        return found

    def _add(self, arm: Arm, attempts: Sequence[Attempt]) -> None:
        new = self.taken(attempts)[: self.evaluations - arm.evaluations]
        for one in new:
            told = self.estimates.pop((tuple(one.values.items()), one.order), -math.inf)
            self.doubt = max(self.doubt, told - self.levers.objective.cost(one.score))
        arm.points += new
        self.on_replay(arm.name, arm.evaluations, self.evaluations)

    def _orders(self, arm: Arm, values: Values, most: int) -> Turns:
        """The next orders of one instance, the launch order first, of uneven work then those that balance it."""
        judge = self.levers.judge(values)
        assert judge
        tried = {one.order for one in arm.points if one.values == values}
        listed = (one.name for one, _ in distinct_shortlist(judge.scorer))
        balance = balancing_orders(judge.kernel.grid, judge.scorer.work)
        first = sorted(islice(listed, BALANCED_OF), key=lambda one: one not in balance)
        every = chain([LAUNCH_ORDER.name], first, listed)
        left = list(islice((one for one in every if one not in tried and self.levers.writable(values, one)), most))
        for at in range(0, len(left), BATCH):
            self._add(arm, (yield [self.levers.candidate(values, one) for one in left[at : at + BATCH]]))

    def _sampled(self, arm: Arm, tuned: Tuned) -> Turns:
        """Instances that a sampler suggests; of several levers also orders of the best of them, and a check."""
        space, alone = self.levers.space, len(arm.levers) == 1
        sampler = make_sampler(space, self.levers.seed, budget=self.evaluations)
        given = self._given(space, sampler)
        if not alone:
            before = self.evaluations - self.evaluations // OF_ORDERS - BATCH + 1  # a whole batch may follow
            yield from self._suggested(arm, tuned, sampler, given, before)
            yield from self._finals(arm, tuned)
            yield from self._suggested(arm, tuned, sampler, given, self.evaluations - CHECKED)
            yield from self._checked(arm, tuned)
        yield from self._suggested(arm, tuned, sampler, given, self.evaluations)

    def _suggested(self, arm: Arm, tuned: Tuned, sampler: Sampler, given: list[tuple[Any, Values]], most: int) -> Turns:
        """Instances in the best order so far, until an arm has so many points; the given ones first."""
        without = 0
        while arm.evaluations < most and without < GIVEN_UP * self.evaluations:
            limit = min(most + BATCH - 1, self.evaluations - CHECKED * (most < self.evaluations))
            size = min(BATCH, limit - arm.evaluations)
            if len(given) < size:
                ahead = AHEAD if self.levers.template.compiles else size
                while len(given) < min(ahead, limit - arm.evaluations) and without < GIVEN_UP * self.evaluations:
                    if (suggested := sampler.suggest()) is None:
                        break
                    before, values = arm.evaluations, self.levers.space.whole(suggested[1])
                    if not self._is_far(arm, tuned, sampler, suggested[0], values):
                        given.append((suggested[0], values))
                    elif arm.evaluations == before:
                        without += 1
                self.levers.template.prepare([values for _, values in given], self.budget.threads)
            batch, given[:] = given[:size], given[size:]
            if not batch:
                break
            kept = [one for one in batch if self._worth(arm, tuned, sampler, *one)]
            order = min(arm.points, key=tuned.cost, default=tuned.base).order
            attempts = yield [self.levers.candidate(values, order) for _, values in kept]
            for (handle, values), attempt in zip(kept, attempts, strict=False):
                judge = self.levers.judge(values)
                sampler.tell(handle, judge.costs(attempt) if judge else None)
            before = arm.evaluations
            self._add(arm, attempts)
            without += len(batch) - (arm.evaluations - before)

    def _is_far(self, arm: Arm, tuned: Tuned, sampler: Sampler, handle: Any, values: Values) -> bool:
        """Whether a suggestion is far behind the best as estimated, or ruled out by its capture; it is told so."""
        best, judge, cost = min([tuned.base, *arm.points], key=tuned.cost), self.levers.estimated(values), None
        if judge is None and self.levers.template.is_plausible(values):
            return False
        if judge and self._screened(arm, tuned, judge, self.doubt):
            cost = self._least(judge)
        elif judge:
            try:
                order = judge.orders(best.order)[0]
                cost = self.levers.objective.cost(judge.scorer.score_order(order, baseline_us=None))
            except SwizzleSimError:  # such as an order that its grid does not have: as after a compile
                return False
            if cost - self.doubt <= tuned.cost(best):
                self.estimates[tuple(values.items()), best.order] = cost
                return False
            arm.estimated += 1
        sampler.tell(handle, None if cost is None else (cost,))
        return True

    def _finals(self, arm: Arm, tuned: Tuned) -> Turns:
        """Orders of the best instances that an order can gain on, in turn, until some of them gain nothing."""
        for turn in count():
            instances: dict[tuple[Any, ...], Point] = {}
            for one in tuned.ranked(arm.points):
                instances.setdefault(tuple(one.values.items()), one)
            hopeful = [one for one in instances.values() if self.room(one) > tuned.alike][:FINALISTS]
            left = self.evaluations - CHECKED - arm.evaluations
            if not hopeful or left <= 0:
                return
            chosen = hopeful[turn % len(hopeful) if turn < FINALISTS else 0]
            before = min(tuned.cost(one) for one in arm.points if one.values == chosen.values)
            yield from self._orders(arm, chosen.values, min(BATCH, left))
            if min(tuned.cost(one) for one in arm.points if one.values == chosen.values) > before - tuned.alike:
                return

    def room(self, point: Point) -> float:
        """Share of an instance's time, at most, that an order can gain: by fewer misses, or by CUs that end together.

        Where no order has fewer misses and work is even, a replay tells orders apart by when misses come, and an H100
        did not follow that: of a batched GEMM 4 % were predicted to be gained, and 4 % were lost.
        """
        judge, balance = self.levers.judge(point.values), point.score.balance
        if judge is None:
            return 0.0
        uneven = 1 - 1 / balance.over_ideal if balance and judge.scorer.work.uneven else 0.0
        return max(uneven, 1 - judge.scorer.bound.l2_misses / max(1, point.score.l2_misses))

    def _checked(self, arm: Arm, tuned: Tuned) -> Turns:
        """The best instances of one lever alone, those that an arm of several does not beat clearly."""
        arms = [one for one in tuned.arms if len(one.levers) < len(arm.levers)]
        fastest = min((point for one in arms for point in one.points), key=tuned.cost, default=tuned.base)
        far = min(map(tuned.cost, arm.points), default=math.inf) + tuned.alike
        known = [(one.values, one.order) for one in arm.points]
        for one in tuned.ranked([fastest, *map(tuned.best, arms)])[: self.evaluations - arm.evaluations]:
            if tuned.cost(one) <= far and (one.values, one.order) not in known:
                self._add(arm, (yield [self.levers.candidate(one.values, one.order)]))

    def _given(self, space: Configurations, sampler: Sampler) -> list[tuple[Any, Values]]:
        """The kernel as it is and what is suggested first, with handles of the sampler; a part of the evaluations."""
        found: list[tuple[Any, Values]] = []
        for values in [space.start, *self.first][: max(1, self.evaluations // 3)]:
            ranges = self.levers.template.ranges
            own = {name: {**space.start, **values}[name] for name in ranges}
            inside = all(value in ranges[name] for name, value in own.items())
            if inside and space.allows(own) and space.whole(own) not in [known for _, known in found]:
                found.append((sampler.take(own), space.whole(own)))
        return found

    def _worth(self, arm: Arm, tuned: Tuned, sampler: Sampler, handle: Any, values: Values) -> bool:
        """Whether a point is to be replayed; one that is pruned or screened is told to the sampler."""
        judge = self.levers.judge(values)
        if judge and not self._screened(arm, tuned, judge):
            return True
        sampler.tell(handle, (self._least(judge),) if judge else None)
        return False

    def _screened(self, arm: Arm, tuned: Tuned, judge: Judge, doubt: float = 0.0) -> bool:
        """Whether an instance's instructions alone take longer than the best, which is counted."""
        far = bool(arm.points) and self._least(judge) - doubt > min(map(tuned.cost, arm.points))
        arm.screened += far
        return far

    def _least(self, judge: Judge) -> float:
        """Logarithm of the time below which no order of an instance goes."""
        least_us = self.levers.least_us(judge) if self.levers.objective.name == "time" else 0.0
        return math.log(least_us) if least_us else -math.inf  # a kernel without operations


SHOWN = ("vgprs", "lds_bytes", "threads", "loads_per_step", "source")
