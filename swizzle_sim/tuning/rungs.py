"""`Searching`: one search at work, batch by batch, each candidate from rung to rung.

What it knows is what the history says, in order; so a run that was stopped is gone through again from its beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from swizzle_sim.history import Attempt, History
from swizzle_sim.search import OnAttempt, Run
from swizzle_sim.swizzle import family
from swizzle_sim.tuning.arms import ASKS, BATCH, Arm, Asked, better_half, rounds_of, take_batch
from swizzle_sim.tuning.bench import BY_BOUND, Bench, Judged
from swizzle_sim.tuning.objectives import pareto_front
from swizzle_sim.tuning.plan import Plan
from xcd_model.errors import RunError

PROPOSER = "search"
SCREENS = {
    "sampled": "on a sample of XCDs behind half of those tried beside it",
    "screen": "in the lockstep replay behind half of those tried beside it",
}


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search came to.

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
class Searching:
    """One run; what it knows is what the history says, in order."""

    bench: Bench
    plan: Plan
    history: History
    run_all: Callable
    on_attempt: OnAttempt | None
    attempts: list[Attempt] = field(default_factory=list)
    seen: dict[bytes, int] = field(default_factory=dict)
    spent: int = 0
    best: float = float("inf")
    best_screened: float = float("inf")

    def __post_init__(self):
        self.stored = list(self.history)
        self.by_bound = self.plan.objectives == BY_BOUND and self.bench.is_cold
        self.screen = "sampled" if self.by_bound else "screen" if self.bench.screens else ""

    def run(self, arms: list[Arm]) -> Searched:
        """All rounds."""
        self._baseline()
        for n_arms, quota in rounds_of(len(arms), self.plan.evaluations):
            arms = better_half(arms, n_arms) if len(arms) > n_arms else arms
            self._round(arms, quota)
        if len(arms) == 1:
            self._round(arms, self.plan.evaluations - self.spent)
        scored = [a for a in self.attempts if a.score is not None]
        front = [scored[i] for i in pareto_front([a.verdict["costs"] for a in scored])]
        counts: dict[str, int] = {}
        for attempt in self.attempts[1:]:
            counts[attempt.verdict["stage"]] = counts.get(attempt.verdict["stage"], 0) + 1
        return Searched(Run(self.history.folder, tuple(self.attempts)), tuple(front), counts)

    def _round(self, arms: list[Arm], quota: int) -> None:
        left = dict.fromkeys(range(len(arms)), quota)
        asks = dict.fromkeys(left, ASKS * quota + BATCH)
        while self.spent < self.plan.evaluations and not self._is_done():
            batch = take_batch(arms, left, asks, min(BATCH, self.plan.evaluations - self.spent))
            if not batch:
                return
            counted = self._try(batch)
            for i, arm in enumerate(arms):
                left[i] -= sum(asked.arm is arm for asked in counted)

    def _is_done(self) -> bool:
        """Whether the proven bound is reached, so that nothing can be better."""
        if not self.by_bound:
            return False
        room = [scorer.bound.l2_hit_rate - scorer.baseline.l2_hit_rate for scorer in self.bench.scorers]
        return -self.best >= sum(room) / len(room) - 1e-12

    def _try(self, batch: list[Asked]) -> list[Asked]:
        """Judge a batch rung by rung, store it, tell the askers; return what was replayed in full."""
        judged = [self._judge(asked) for asked in batch]
        first = len(self.attempts)
        stage = [self._stage(one, first + i) for i, one in enumerate(judged)]
        alive = [i for i, (name, _) in enumerate(stage) if name == "replay"]
        doubtful = [i for i in alive if self.screen and not batch[i].arm.is_exhaustive]
        costs = self.run_all(lambda i: self._screened(judged[i], first + i), doubtful)
        screened: dict[int, tuple[float, ...]] = dict(zip(doubtful, costs, strict=True))
        left_behind = self._left_behind({i: sum(costs) for i, costs in screened.items()})
        for i in left_behind:
            stage[i] = (self.screen, SCREENS[self.screen])
        alive = [i for i in alive if i not in left_behind]
        found = dict(zip(alive, self.run_all(lambda i: self._full(batch[i], judged[i], first + i), alive), strict=True))
        made = []
        for i, (asked, one) in enumerate(zip(batch, judged, strict=True)):
            attempt = found.get(i) or self._unscored(asked, one, first + i, *stage[i])
            more = {"screened": list(screened[i])} if i in screened else {}
            made.append(replace(attempt, verdict={**attempt.verdict, **more}))
        self.history.append_all(a for a in made if self._there(a.number) is None)  # one write to disk a batch
        for asked, one, attempt in zip(batch, judged, made, strict=True):
            self._keep(attempt)
            self._tell(asked, attempt, one)
        return [batch[i] for i in (*alive, *(left_behind if self.screen == "sampled" else ()))]

    def _judge(self, asked: Asked) -> Judged:
        template = asked.arm.space.template
        return self.bench.judge(template.source(asked.values), template.title(asked.values))

    def _stage(self, one: Judged, number: int) -> tuple[str, str]:
        """How far a candidate comes before any replay, and why no further."""
        if one.orders is None:
            return "refused", one.critique
        if (earlier := self.seen.setdefault(one.digest, number)) != number:
            return "duplicate", f"the same permutation as attempt {earlier}"
        if self.by_bound and (gain := self.bench.bound_gain(one.orders)) <= -self.best:
            return (
                "bound",
                f"gains at most {100 * gain:.2f} points whatever the cache, the best so far {-100 * self.best:.2f}",
            )
        return "replay", ""

    def _screened(self, one: Judged, number: int) -> tuple[float, ...]:
        there = self._there(number)
        if there is not None and "screened" in there.verdict:
            return tuple(there.verdict["screened"])
        if self.screen == "sampled":
            return (self.bench.sample(one.orders or ()),)
        return self.bench.screen(one.orders or (), self.plan.objectives)

    def _left_behind(self, costs: dict[int, float]) -> set[int]:
        """The worse half of a batch, but for what beats all that was screened before."""
        half = sorted(costs.values())[(len(costs) - 1) // 2] if costs else 0.0
        behind = {i for i, cost in costs.items() if cost > half and cost > self.best_screened}
        self.best_screened = min([self.best_screened, *costs.values()])
        return behind

    def _full(self, asked: Asked, one: Judged, number: int) -> Attempt:
        if (there := self._same(number, asked, "replay")) is not None:
            return there
        began = time.perf_counter()
        scores = self.bench.score(one.orders or ())
        sizes = [
            {"problem": dict(s.kernel.problem), "l2_hit_rate": score.l2_hit_rate, "time_us": score.time_us}
            for s, score in zip(self.bench.scorers, scores, strict=True)
        ]
        verdict = {
            **self.bench.verdict(one),
            **self._of(asked),
            "stage": "replay",
            "costs": list(self.bench.costs(scores, self.plan.objectives)),
            "sizes": sizes if len(sizes) > 1 else [],
        }
        return self._attempt(number, asked, verdict, scores[0], "", began)

    def _unscored(self, asked: Asked, one: Judged, number: int, stage: str, why: str) -> Attempt:
        if (there := self._same(number, asked, stage)) is not None:
            return there
        known = {"bijective": True, "domain": "this grid"} if one.orders is not None else self.bench.verdict(one)
        return self._attempt(
            number, asked, {**known, **self._of(asked), "stage": stage}, None, why, time.perf_counter()
        )

    def _of(self, asked: Asked) -> dict[str, Any]:
        return {"template": asked.arm.space.template.name, "parameters": dict(asked.values)}

    def _attempt(self, number, asked: Asked, verdict: dict[str, Any], score, critique: str, began: float) -> Attempt:
        template = asked.arm.space.template
        return Attempt(
            number=number,
            name=template.title(asked.values),
            source=template.source(asked.values),
            proposer=PROPOSER,
            verdict=verdict,
            score=score,
            critique=critique,
            cost_ms=(time.perf_counter() - began) * 1e3,
        )

    def _there(self, number: int) -> Attempt | None:
        """Attempt that an earlier command stored under a number."""
        return self.stored[number] if number < len(self.stored) else None

    def _same(self, number: int, asked: Asked, stage: str) -> Attempt | None:
        """The stored attempt, which has to be what is asked for now."""
        there = self._there(number)
        source = asked.arm.space.template.source(asked.values)
        if there is not None and (there.source != source or there.verdict.get("stage") != stage):
            raise RunError(f"{self.history.folder}: cannot resume: attempt {number} is not {source.splitlines()[0]}")
        return there

    def _baseline(self) -> None:
        one = self.bench.judge(family("identity"), "identity")
        self.seen[one.digest] = 0
        for scorer in [*self.bench.scorers, *(self.bench.screens if self.screen == "screen" else ())]:
            _ = scorer.baseline  # before the threads need them
        attempt = self._there(0) or Attempt(
            number=0,
            name="identity",
            source=family("identity"),
            proposer="baseline",
            verdict={**self.bench.verdict(one), "stage": "baseline", "costs": [0.0] * len(self.plan.objectives)},
            score=self.bench.main.baseline,
        )
        if self._there(0) is None:
            self.history.append(attempt)
        self._keep(attempt)

    def _keep(self, attempt: Attempt) -> None:
        """Take note of an attempt that is stored."""
        self.attempts.append(attempt)
        if attempt.score is not None:
            self.best = min(self.best, attempt.verdict["costs"][0])
        if attempt.verdict["stage"] == "replay":
            self.spent += 1
        if self.on_attempt:
            self.on_attempt(attempt, self.spent, self.plan.evaluations)

    def _tell(self, asked: Asked, attempt: Attempt, one: Judged) -> None:
        costs = attempt.verdict.get("costs")
        if attempt.verdict["stage"] == "duplicate":
            costs = self.attempts[self.seen[one.digest]].verdict.get("costs")
        elif attempt.verdict["stage"] == "sampled":
            costs = attempt.verdict["screened"]  # an estimate of the same figure: better than none to learn from
            asked.arm.costs.append(tuple(costs))
        elif costs is not None:
            asked.arm.costs.append(tuple(costs))
        asked.arm.asker.tell(asked.handle, costs)
