"""What stands beside a run of models: the best families, and a search with at least as many evaluations.

Both get a bounded time, by what an attempt of the run has cost; what was planned is noted before it is done, so that a
run which is resumed goes on alike. A run that is repeated takes the orders from its record, and scores them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import Bench, lockstep_like, score_on, scorer_like
from swizzle_sim.search.candidates import Candidate, family_candidates
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.judge import FULL_REPLAY, Judge
from swizzle_sim.search.loop import Budget, InMemory, one_after_another, run
from swizzle_sim.search.ranking import Objective
from swizzle_sim.search.strategies.halving import search_on

from .transcript import Transcript

FAMILIES, SEARCH = "families", "search"
PLAN = "beside"  # kind of note
SEARCHED_FOR = ("costs", "sizes", "screened")  # keys of a verdict that only the search ranks by
LEAST_EVALUATIONS = 60  # full replays of the search, where time allows
FINALISTS = 3  # families that the full replay decides between, of those screened in lockstep
SLOW_S = 2.0  # for an attempt, from which nothing is replayed to measure how long a replay takes
SCREEN_S, FINALISTS_S, SEARCH_S = 15.0, 12.0, 25.0  # together under a minute


def add_baselines(
    judge: Judge,
    history: History,
    notes: Transcript,
    evaluations: int,
    seed: int,
    *,
    recorded: Sequence[Attempt] = (),
    on_count: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Append the baselines that the history lacks; the search replays as many orders as the models had judged, or more.

    ``notes`` are those of the run, for what is planned; ``recorded`` are the attempts of the run that is repeated.
    """
    there, scorer, judge = list(history), judge.scorer, Judge(judge.scorer, judge.objectives)
    if recorded:
        for one in recorded[len(there) :]:
            score = score_on(scorer, judge.orders(one.source)[0])
            history.append(replace(one.judged, number=len(history), score=score))
        return
    space = family_candidates(scorer.kernel, scorer.gpu)
    if (plan := notes.noted(PLAN, evaluations)) is None:
        plan = _plan(*_seconds(scorer, there), len(space), evaluations)
        notes.note(PLAN, evaluations, plan)
    done = plan["screened"] + plan["finalists"]
    total = done + plan["evaluations"]
    if not any(one.proposer == FAMILIES for one in there):
        chosen = space[:: -(-len(space) // plan["screened"])]
        best = _best_families(scorer, chosen, judge.objectives[0], lambda count: on_count(count, total))
        for candidate in best[: plan["finalists"]]:
            history.append(judge.judge(candidate, len(history)))
    searched = {one.source for one in there if one.proposer == SEARCH}
    if (left := plan["evaluations"] - len(searched)) > 0:
        found = _searched(judge, plan["evaluations"], seed, lambda count: on_count(done + count, total))
        for attempt in [one for one in found if one.source not in searched][:left]:
            verdict = {key: value for key, value in attempt.verdict.items() if key not in SEARCHED_FOR}
            history.append(replace(attempt, number=len(history), verdict=verdict))


def _plan(screen_s: float, replay_s: float, families: int, evaluations: int) -> dict[str, int]:
    """How many families are screened, how many are replayed, and how many evaluations the search has."""
    return {
        "screened": max(1, min(families, int(SCREEN_S / screen_s))),
        "finalists": max(1, min(FINALISTS, int(FINALISTS_S / replay_s))),
        "evaluations": max(1, min(max(LEAST_EVALUATIONS, evaluations), int(SEARCH_S / replay_s))),
    }


def _seconds(scorer: Scorer, attempts: Sequence[Attempt]) -> tuple[float, float]:
    """What an order costs in lockstep and in the run's replay [s]; of a slow kernel what an attempt has cost."""
    judged = min(one.cost_ms for one in attempts if one.score is not None) / 1e3
    if judged > SLOW_S:
        return judged, judged
    order = np.arange(scorer.kernel.grid.num_pids)[::-1].copy()
    began = time.perf_counter()
    lockstep_like(scorer).score_order(order, baseline_us=1.0)
    screened = time.perf_counter()
    scorer.score_order(order, baseline_us=1.0)
    return screened - began, time.perf_counter() - began


def _searched(judge: Judge, evaluations: int, seed: int, on_count: Callable[[int], None]) -> list[Attempt]:
    """Full replays of a search of the families' templates."""
    end_s = time.monotonic() + SEARCH_S
    found = search_on(
        Bench(scorer_like(judge.scorer)),
        evaluations=evaluations,
        seed=seed,
        objectives=judge.objectives,
        on_attempt=lambda attempt, done, most: on_count(done),
        enough=lambda: time.monotonic() > end_s,
    )
    return [a for a in found.attempts[1:] if a.verdict["stage"] == FULL_REPLAY]


def _best_families(
    scorer: Scorer, space: Sequence[Candidate], objective: Objective, on_count: Callable[[int], None]
) -> list[Candidate]:
    """Best families in the lockstep replay, best first, each permutation once."""
    judge = Judge(lockstep_like(scorer), (objective,))
    found = run(
        one_after_another(space), judge, InMemory(),
        Budget(end_s=time.monotonic() + SCREEN_S), on_attempt=lambda attempt: on_count(attempt.number),
    )  # fmt: skip
    scored = sorted((one for one in found[1:] if one.score is not None), key=lambda one: (judge.cost(one), one.number))
    return [Candidate(one.name, one.source, FAMILIES) for one in scored[:FINALISTS]]
