"""`SearchLoop`: successive halving over the templates (arms) of a search, and over the rungs of an `Evaluator`.

Its state is what the history says, in order; so a run that was stopped is gone through from its beginning, with the
stored attempts looked up, and ends the same for any number of threads.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from swizzle_sim.language import family
from swizzle_sim.search.arms import Arm, Suggestion, better_half, most_arms, rounds_of, take_batch
from swizzle_sim.search.evaluator import BY_BOUND, COUNTED, Evaluator, Judged
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.optimize import OnAttempt, Run
from swizzle_sim.search.ranking import Ranking, pareto_front
from swizzle_sim.search.search_plan import SearchPlan
from swizzle_sim.search.templates.space import Values
from xcd_model.errors import RunError

PROPOSER = "search"
SCREENS = {
    "sampled": "in the worse half of its batch on a sample of XCDs",
    "screen": "in the worse half of its batch in the lockstep replay",
}
BATCH = 8  # candidates suggested before any cost is reported; the same for any number of threads
SAMPLED_FIRST = 4  # published candidates for each evaluation that are looked at on a sample of XCDs
DRAWS = 4  # suggestions for each replay of its quota, before a round gives up on a template


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Attempts of a finished search.

    Parameters
    ----------
    run : Run
    front : tuple of Attempt
        Best first; with two objectives the Pareto front, rising by the cost of the first.
    counts : mapping of str to int
        Candidates by stage: replay, sampled, screen, bound, duplicate, refused.
    """

    run: Run
    front: tuple[Attempt, ...]
    counts: dict[str, int]


@dataclass
class SearchLoop:
    """One search, batch by batch."""

    evaluator: Evaluator
    plan: SearchPlan
    history: History
    run_all: Callable
    on_attempt: OnAttempt | None
    attempts: list[Attempt] = field(default_factory=list)
    seen: dict[bytes, int] = field(default_factory=dict)
    spent: int = 0
    best: float = float("inf")
    best_screened: float = float("inf")
    enough: Callable[[], bool] = lambda: False

    def __post_init__(self):
        self.history_at_start = [one.judged for one in self.history]
        # uneven work breaks the ties at the bound, so there nothing is ruled out by it
        uneven = any(scorer.work.uneven for scorer in self.evaluator.scorers)
        self.by_bound = self.plan.objectives == BY_BOUND and self.evaluator.is_cold and not uneven
        by_counts = all(one in COUNTED for one in self.plan.objectives) and self.evaluator.screens
        self.screen = "sampled" if self.by_bound else "screen" if by_counts else ""

    def run(self, arms: list[Arm]) -> SearchResult:
        """What is published first, on half of the evaluations; then all rounds, of the arms that did best there.

        Screened candidates count in a round and cost no evaluation: with what they leave the rounds begin again.
        """
        self._baseline()
        is_published = any(arm.first for arm in arms)
        if is_published:
            self._published(arms)
        spent = -1
        while spent < self.spent < self.plan.evaluations and not self._is_done():
            spent, left = self.spent, self.plan.evaluations - self.spent
            best = arms
            for n_arms, quota in rounds_of(min(len(arms), most_arms(left)) if is_published else len(arms), left):
                best = better_half(best, n_arms)
                self._round(best, quota)
            is_published = True  # all arms have been tried
        scored = [a for a in self.attempts if a.score is not None]
        front = [scored[i] for i in pareto_front([a.verdict["costs"] for a in scored])]
        counts: dict[str, int] = {}
        for attempt in self.attempts[1:]:
            counts[attempt.verdict["stage"]] = counts.get(attempt.verdict["stage"], 0) + 1
        ranking = Ranking(self.plan.objectives, len(self.evaluator.scorers), self.evaluator.main.gpu.name)
        return SearchResult(Run(self.history.folder, tuple(self.attempts), ranking), tuple(front), counts)

    def _published(self, arms: list[Arm]) -> None:
        """Try the published values of all arms, one of each in turn, until half of the evaluations are spent.

        Where a sample of XCDs tells hit rates, `SAMPLED_FIRST` of them for each evaluation are put in its order before.
        """
        turns = itertools.zip_longest(*([(arm, values) for values in arm.first] for arm in arms))
        listed = [pair for turn in turns for pair in turn if pair is not None]
        if self.screen == "sampled":
            listed = listed[: SAMPLED_FIRST * self.plan.evaluations]
            costs = list(self.run_all(self._sampled, listed))
            listed = [listed[i] for i in sorted(range(len(listed)), key=costs.__getitem__)]
        most = -(-self.plan.evaluations // 2)
        while listed and self.spent < most and not self._is_done():
            now = min(BATCH, most - self.spent)
            self._try([Suggestion(arm, arm.sampler.take(values), values) for arm, values in listed[:now]])
            del listed[:now]

    def _sampled(self, pair: tuple[Arm, Values]) -> float:
        """Cost of published values on a sample of XCDs; infinite for what is no bijection here."""
        arm, values = pair
        orders = self.evaluator.judge(arm.space.template.source(values), arm.space.template.title(values)).orders
        return math.inf if orders is None else self.evaluator.sample(orders)

    def _round(self, arms: list[Arm], quota: int) -> None:
        left = dict.fromkeys(range(len(arms)), quota)
        draws = dict.fromkeys(left, DRAWS * quota + BATCH)
        while self.spent < self.plan.evaluations and not self._is_done():
            batch = take_batch(arms, left, draws, min(BATCH, self.plan.evaluations - self.spent))
            if not batch:
                return
            counted = self._try(batch)
            for i, arm in enumerate(arms):
                left[i] -= sum(one.arm is arm for one in counted)

    def _is_done(self) -> bool:
        """Whether the proven bound is reached, so that nothing can be better, or the time is over."""
        if not self.by_bound or self.enough():
            return self.enough()
        room = [scorer.bound.l2_hit_rate - scorer.baseline.l2_hit_rate for scorer in self.evaluator.scorers]
        return -self.best >= sum(room) / len(room) - 1e-12

    def _try(self, batch: list[Suggestion]) -> list[Suggestion]:
        """Judge a batch rung by rung, store it, report to the samplers; return those that count against the quota."""
        judged = [self._judge(suggested) for suggested in batch]
        first = len(self.attempts)
        stage = [self._stage(one, first + i) for i, one in enumerate(judged)]
        alive = [i for i, (name, _) in enumerate(stage) if name == "replay"]
        doubtful = [i for i in alive if self.screen and not batch[i].arm.is_exhaustive]
        costs = self.run_all(lambda i: self._screened(judged[i], first + i), doubtful)
        screened: dict[int, tuple[float, ...]] = dict(zip(doubtful, costs, strict=True))
        dropped = self._dropped({i: sum(costs) for i, costs in screened.items()})
        for i in dropped:
            stage[i] = (self.screen, SCREENS[self.screen])
        alive = [i for i in alive if i not in dropped]
        found = dict(zip(alive, self.run_all(lambda i: self._full(batch[i], judged[i], first + i), alive), strict=True))
        made = []
        for i, (suggested, one) in enumerate(zip(batch, judged, strict=True)):
            attempt = found.get(i) or self._unscored(suggested, one, first + i, *stage[i])
            more = {"screened": list(screened[i])} if i in screened else {}
            made.append(replace(attempt, verdict={**attempt.verdict, **more}))
        self.history.append_all(a for a in made if self._stored(a.number) is None)  # one write to disk a batch
        for suggested, one, attempt in zip(batch, judged, made, strict=True):
            self._count(attempt)
            self._tell(suggested, attempt, one)
        return [batch[i] for i in (*alive, *(dropped if self.screen == "sampled" else ()))]

    def _judge(self, suggested: Suggestion) -> Judged:
        template = suggested.arm.space.template
        return self.evaluator.judge(template.source(suggested.values), template.title(suggested.values))

    def _stage(self, one: Judged, number: int) -> tuple[str, str]:
        """Rung that a candidate reaches before any replay, and the reason if it stops there."""
        if one.orders is None:
            return "refused", one.critique
        if (earlier := self.seen.setdefault(one.digest, number)) != number:
            return "duplicate", f"the same permutation as attempt {earlier}"
        if self.by_bound and (gain := self.evaluator.bound_gain(one.orders)) <= -self.best:
            return (
                "bound",
                f"gains at most {100 * gain:.2f} points with any cache, the best so far {-100 * self.best:.2f}",
            )
        return "replay", ""

    def _screened(self, one: Judged, number: int) -> tuple[float, ...]:
        stored = self._stored(number)
        if stored is not None and "screened" in stored.verdict:
            return tuple(stored.verdict["screened"])
        if self.screen == "sampled":
            return (self.evaluator.sample(one.orders or ()),)
        return self.evaluator.screen(one.orders or (), self.plan.objectives)

    def _dropped(self, costs: dict[int, float]) -> set[int]:
        """The worse half of a batch, except candidates better than all that were screened before."""
        half = sorted(costs.values())[(len(costs) - 1) // 2] if costs else 0.0
        dropped = {i for i, cost in costs.items() if cost > half and cost > self.best_screened}
        self.best_screened = min([self.best_screened, *costs.values()])
        return dropped

    def _full(self, suggested: Suggestion, one: Judged, number: int) -> Attempt:
        if (stored := self._same(number, suggested, "replay")) is not None:
            return stored
        began = time.perf_counter()
        scores = self.evaluator.score(one.orders or ())
        sizes = [
            {"problem": dict(s.kernel.problem), "l2_hit_rate": score.l2_hit_rate, "time_us": score.time_us}
            for s, score in zip(self.evaluator.scorers, scores, strict=True)
        ]
        verdict = {
            **self.evaluator.verdict(one),
            **self._of(suggested),
            "stage": "replay",
            "costs": list(self.evaluator.costs(scores, self.plan.objectives)),
            "sizes": sizes if len(sizes) > 1 else [],
        }
        return self._attempt(number, suggested, verdict, scores[0], "", began)

    def _unscored(self, suggested: Suggestion, one: Judged, number: int, stage: str, why: str) -> Attempt:
        if (stored := self._same(number, suggested, stage)) is not None:
            return stored
        known = {"bijective": True, "domain": "this grid"} if one.orders is not None else self.evaluator.verdict(one)
        return self._attempt(
            number, suggested, {**known, **self._of(suggested), "stage": stage}, None, why, time.perf_counter()
        )

    def _of(self, suggested: Suggestion) -> dict[str, Any]:
        return {"template": suggested.arm.space.template.name, "parameters": dict(suggested.values)}

    def _attempt(
        self, number, suggested: Suggestion, verdict: dict[str, Any], score, critique: str, began: float
    ) -> Attempt:
        template = suggested.arm.space.template
        return Attempt(
            number=number,
            name=template.title(suggested.values),
            source=template.source(suggested.values),
            proposer=PROPOSER,
            verdict=verdict,
            score=score,
            critique=critique,
            cost_ms=(time.perf_counter() - began) * 1e3,
        )

    def _stored(self, number: int) -> Attempt | None:
        """Attempt that an earlier command stored under a number."""
        return self.history_at_start[number] if number < len(self.history_at_start) else None

    def _same(self, number: int, suggested: Suggestion, stage: str) -> Attempt | None:
        """The stored attempt, which must be the one suggested now."""
        stored = self._stored(number)
        source = suggested.arm.space.template.source(suggested.values)
        if stored is not None and (stored.source != source or stored.verdict.get("stage") != stage):
            raise RunError(f"{self.history.folder}: cannot resume: attempt {number} is not {source.splitlines()[0]}")
        return stored

    def _baseline(self) -> None:
        one = self.evaluator.judge(family("identity"), "identity")
        self.seen[one.digest] = 0
        for scorer in [*self.evaluator.scorers, *(self.evaluator.screens if self.screen == "screen" else ())]:
            _ = scorer.baseline  # before the threads need them
        attempt = self._stored(0) or Attempt(
            number=0,
            name="identity",
            source=family("identity"),
            proposer="baseline",
            verdict={**self.evaluator.verdict(one), "stage": "baseline", "costs": [0.0] * len(self.plan.objectives)},
            score=self.evaluator.main.baseline,
        )
        if self._stored(0) is None:
            self.history.append(attempt)
        self._count(attempt)

    def _count(self, attempt: Attempt) -> None:
        """Count an attempt that is stored."""
        self.attempts.append(attempt)
        if attempt.score is not None:
            self.best = min(self.best, attempt.verdict["costs"][0])
        if attempt.verdict["stage"] == "replay":
            self.spent += 1
        if self.on_attempt:
            self.on_attempt(attempt, self.spent, self.plan.evaluations)

    def _tell(self, suggested: Suggestion, attempt: Attempt, one: Judged) -> None:
        costs = attempt.verdict.get("costs")
        if attempt.verdict["stage"] == "duplicate":
            costs = self.attempts[self.seen[one.digest]].verdict.get("costs")
        elif attempt.verdict["stage"] == "sampled":
            costs = attempt.verdict["screened"]  # an estimate of the same figure: better than none for a sampler
            suggested.arm.costs.append(tuple(costs))
        elif costs is not None:
            suggested.arm.costs.append(tuple(costs))
        suggested.arm.sampler.tell(suggested.handle, costs)
