"""What stands beside a run of models: the best families, and a search with at least as many evaluations.

Both get a bounded time, by what an attempt of the run has cost; what was planned is noted before it is done, so that a
run which is resumed goes on alike. A run that is repeated takes the orders from its record, and scores them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate, family_candidates, permutation_digest
from swizzle_sim.search.evaluator import evaluator_like
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.ranking import Objective, Ranking
from swizzle_sim.search.template_search import search_on

from .cascade import quick_of
from .prompts import Notes

FAMILIES, SEARCH = "families", "search"
PLAN = "beside"  # kind of note
SEARCHED_FOR = ("costs", "sizes", "screened")  # keys of a verdict that only the search ranks by
LEAST_EVALUATIONS = 60  # full replays of the search, where time allows
FINALISTS = 3  # families that the full replay decides between, of those screened in lockstep
SLOW_S = 2.0  # for an attempt, from which nothing is replayed to measure how long a replay takes
SCREEN_S, FINALISTS_S, SEARCH_S = 15.0, 12.0, 25.0  # together under a minute


@dataclass(frozen=True)
class Comparison:
    """How the comparison is made.

    Parameters
    ----------
    evaluations : int
        Candidates of the models that were judged: the search replays at least as many.
    seed : int
        Of the search.
    recorded : sequence of Attempt
        Those of the run that is repeated; empty otherwise.
    on_count : callable, optional
        Called as ``on_count(done, total)``.
    """

    evaluations: int
    seed: int
    recorded: Sequence[Attempt] = ()
    on_count: Callable[[int, int], None] = lambda done, total: None


def add_baselines(scorer: Scorer, history: History, ranking: Ranking, notes: Notes, how: Comparison) -> None:
    """Append the baselines that the history lacks.

    Parameters
    ----------
    scorer : Scorer
    history : History
    ranking : Ranking
        Of the run.
    notes : Notes
        Of the run, for what is planned.
    how : Comparison
    """
    there = list(history)
    if how.recorded:
        for one in how.recorded[len(there) :]:
            score = scorer.score(Swizzle.parse(one.source))
            history.append(replace(one.judged, number=len(history), score=score))
        return
    space = family_candidates(scorer.kernel, scorer.gpu)
    if notes.noted(PLAN, how.evaluations) is None:
        notes.note(PLAN, how.evaluations, _plan(*_seconds(scorer, there), len(space), how.evaluations))
    plan = notes.noted(PLAN, how.evaluations)
    total = plan["screened"] + plan["finalists"] + plan["evaluations"]
    finalists = [one for one in there if one.proposer == FAMILIES]
    if not finalists:
        chosen = space[:: -(-len(space) // plan["screened"])]
        for candidate in _best_families(scorer, chosen, ranking.main, lambda done: how.on_count(done, total)):
            if len(finalists) < plan["finalists"]:
                finalists.append(_append(scorer, history, candidate))
    done = plan["screened"] + plan["finalists"]
    searched = {one.source for one in there if one.proposer == SEARCH}
    if len(searched) < plan["evaluations"]:
        _add_search(
            scorer, history, ranking, plan["evaluations"], searched, how, lambda n: how.on_count(done + n, total)
        )


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
    quick_of(scorer).score_order(order, baseline_us=1.0)
    screened = time.perf_counter()
    scorer.score_order(order, baseline_us=1.0)
    return screened - began, time.perf_counter() - began


def _add_search(
    scorer: Scorer,
    history: History,
    ranking: Ranking,
    evaluations: int,
    searched: Collection[str],
    how: Comparison,
    on_count: Callable[[int], None],
) -> None:
    """Append the replays of a search of the families' templates but those of ``searched``, which a shorter one made."""
    end_s = time.monotonic() + SEARCH_S
    found = search_on(
        evaluator_like(scorer),
        evaluations=evaluations,
        seed=how.seed,
        objectives=ranking.objectives,
        on_attempt=lambda attempt, done, most: on_count(done),
        enough=lambda: time.monotonic() > end_s,
    )
    replayed = [a for a in found.run.attempts if a.verdict["stage"] == "replay"]
    for attempt in [one for one in replayed if one.source not in searched][: evaluations - len(searched)]:
        shared = {key: value for key, value in attempt.verdict.items() if key not in SEARCHED_FOR}
        verdict = {**shared, "code": "scored", "stage": "full replay"}
        history.append(replace(attempt, number=len(history), verdict=verdict))


def _best_families(
    scorer: Scorer, space: Sequence[Candidate], objective: Objective, on_count: Callable[[int], None]
) -> list[Candidate]:
    """Best families in the lockstep replay, best first, each permutation once."""
    quick, end_s = quick_of(scorer), time.monotonic() + SCREEN_S
    found: dict[bytes, tuple[float, int, Candidate]] = {}
    for number, candidate in enumerate(space):
        order = scorer.permutation(Swizzle.parse(candidate.source))
        digest = permutation_digest(order)
        if digest not in found:
            score = quick.score_order(order, baseline_us=quick.baseline.time_us)
            found[digest] = (objective.cost(score), number, candidate)
        on_count(number + 1)
        if time.monotonic() > end_s:
            break
    return [candidate for _, _, candidate in sorted(found.values(), key=lambda row: row[:2])[:FINALISTS]]


def _append(scorer: Scorer, history: History, candidate: Candidate) -> Attempt:
    began = time.perf_counter()
    swizzle = Swizzle.parse(candidate.source)
    verdict = scorer.verify(swizzle).as_dict()
    attempt = Attempt(
        number=len(history),
        name=candidate.name,
        source=candidate.source,
        proposer=FAMILIES,
        verdict={**verdict, "code": "scored", "stage": "full replay"},
        score=scorer.score(swizzle),
        cost_ms=(time.perf_counter() - began) * 1e3,
    )
    history.append(attempt)
    return attempt
