"""`tune`: the levers of a kernel searched alone and together, each with as many evaluations, through one judge.

    order alone            the families' shortlist on the kernel as it is
    configuration alone    a sampler over constants and options, in launch order
    both                   the sampler with most of the evaluations, then orders of its best configurations, in rounds
                           of which each takes the better half

A replay is stored by what was replayed: an arm that meets a point of another one counts it and does not repeat it. The
findings of `swizzle_sim.tuning.analysis` and the autotuner's own configurations are what a sampler is given first. A
point whose operations alone take longer than the best so far is screened, and counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from typing import Any

from swizzle_sim.pricing.scores import Score
from swizzle_sim.search.candidates import LAUNCH_ORDER, Candidate, distinct_shortlist
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Budget, Points, run
from swizzle_sim.search.samplers import Sampler, make_sampler
from swizzle_sim.search.strategies.halving import rounds_of
from swizzle_sim.search.templates.space import Values
from swizzle_sim.tuning.analysis import Finding, findings
from swizzle_sim.tuning.levers import Configurations, Levers
from xcd_model.errors import SearchError

EVALUATIONS = 24  # of each arm
COMPILES = 4  # for each evaluation of an arm, of all arms
BATCH = 4  # points that are suggested before any of them is told
OF_ORDERS = 3  # one evaluation in so many of a joint search is one of these orders
FINALISTS = 2  # instances whose orders a joint search tries
ALIKE = 0.02  # relative gap of times that the model does not tell apart; of a rate 0 to 1 its tenth
FEWER = 1.1  # ratio of misses from which an instance of the same time is the better one
GIVEN_UP = 3  # points without a score, for each evaluation, at which an arm ends
ONE_AT_A_TIME = Budget()
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
        told: dict[str, Any] = {"values": dict(self.values)}
        told |= {"swizzle": self.order, "resources": dict(self.resources), "workgroups": self.workgroups}
        return {**told, "score": self.score.as_dict()}


@dataclass(eq=False)
class Arm:
    """One or several levers, and the points that were tried with them."""

    name: str
    levers: tuple[str, ...]
    points: list[Point] = field(default_factory=list)
    screened: int = 0  # points that were not replayed, as their operations alone take longer than the best


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

    def ranked(self, points: Sequence[Point]) -> list[Point]:
        """Points, best first, each instance once.

        Those whose times the model does not tell apart from the best are ranked by misses of the L2, then by how little
        they change.
        """
        once = {(tuple(one.values.items()), one.order): one for one in points}
        best = min(map(self.cost, once.values()), default=0.0)
        near = best + (ALIKE / 10 if self.levers.objective.largest else ALIKE)
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
        """Best point of an arm; the kernel as it is where none is better."""
        return self.ranked([self.base, *arm.points])[0]


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

    def base(self) -> Point:
        """The kernel as it is, in launch order."""
        found: list[Point] = []

        def propose() -> Generator[list[Candidate], list[Attempt], None]:
            found.extend(self.taken((yield [self.levers.candidate(self.levers.template.start)])))

        self._run(propose())
        self.base_us = found[0].score.time_us
        return found[0]

    def run(self, arm: Arm, tuned: Tuned) -> None:
        """Try the points of an arm."""
        alone = arm.levers == ("order",)
        start = self.levers.template.start
        self._run(self._orders(arm, start, self.evaluations) if alone else self._sampled(arm, tuned))

    def _run(self, strategy: Generator[list[Candidate], list[Attempt], None]) -> None:
        history = Points(self.store, self._point_of, self._row_of)
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

    def _row_of(self, attempt: Attempt) -> dict[str, Any]:
        return {"score": attempt.score and attempt.score.as_dict()}

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
        arm.points += self.taken(attempts)[: self.evaluations - len(arm.points)]
        self.on_replay(arm.name, len(arm.points), self.evaluations)

    def _orders(self, arm: Arm, values: Values, most: int) -> Generator[list[Candidate], list[Attempt], None]:
        """The next orders of one instance, the launch order first."""
        judge = self.levers.judge(values)
        assert judge
        tried = {one.order for one in arm.points if one.values == values}
        every = chain([LAUNCH_ORDER], (one for one, _ in distinct_shortlist(judge.scorer)))
        left = list(islice((one for one in every if one.name not in tried), most))
        for at in range(0, len(left), BATCH):
            self._add(arm, (yield [self.levers.candidate(values, one) for one in left[at : at + BATCH]]))

    def _sampled(self, arm: Arm, tuned: Tuned) -> Generator[list[Candidate], list[Attempt], None]:
        """Instances that a sampler suggests, in launch order, then orders of the best of them."""
        space = self.levers.space
        sampler = make_sampler(space, self.levers.seed, budget=self.evaluations)
        last = self.evaluations // OF_ORDERS if "order" in arm.levers else 0
        waiting, without = self._given(space, sampler), 0
        while len(arm.points) < self.evaluations - last and without < GIVEN_UP * self.evaluations:
            batch, waiting = waiting[:BATCH], waiting[BATCH:]
            while len(batch) < BATCH and (suggested := sampler.suggest()) is not None:
                batch.append((suggested[0], space.whole(suggested[1])))
            if not batch:
                break
            kept = [one for one in batch if self._worth(arm, tuned, sampler, *one)]
            attempts = yield [self.levers.candidate(values) for _, values in kept]
            for (handle, values), attempt in zip(kept, attempts, strict=False):
                judge = self.levers.judge(values)
                sampler.tell(handle, judge.costs(attempt) if judge else None)
            before = len(arm.points)
            self._add(arm, attempts)
            without += len(batch) - (len(arm.points) - before)
        if last and arm.points:
            yield from self._finals(arm, tuned)

    def _finals(self, arm: Arm, tuned: Tuned) -> Generator[list[Candidate], list[Attempt], None]:
        """Orders of the best instances of an arm, in rounds of successive halving."""
        left = self.evaluations - len(arm.points)
        for number, each in rounds_of(min(FINALISTS, len(arm.points)), left):
            instances = {tuple(one.values.items()): one.values for one in tuned.ranked(arm.points)}
            for values in list(instances.values())[:number]:
                yield from self._orders(arm, values, min(each, self.evaluations - len(arm.points)))
        yield from self._orders(arm, tuned.ranked(arm.points)[0].values, self.evaluations - len(arm.points))

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
        if judge is None:
            sampler.tell(handle, None)
            return False
        least_us = self.levers.least_us(judge) if self.levers.objective.name == "time" else 0.0
        least = math.log(least_us) if least_us else -math.inf  # a kernel without a product states no operations
        if arm.points and least > min(tuned.cost(one) for one in arm.points):
            arm.screened += 1
            sampler.tell(handle, (least,))
            return False
        return True


SHOWN = ("vgprs", "lds_bytes", "threads", "loads_per_step", "source")
