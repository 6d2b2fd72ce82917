"""Baselines of every run of models: the best families, and a search with as many evaluations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from swizzle_sim.candidates import Candidate, family_candidates
from swizzle_sim.history import Attempt, History
from swizzle_sim.ranking import Objective, Ranking
from swizzle_sim.scoring import Scorer
from swizzle_sim.search import permutation_digest
from swizzle_sim.swizzle import Swizzle
from swizzle_sim.tuning.evaluator import evaluator_like, lockstep_like
from swizzle_sim.tuning.search import search_on

FAMILIES, SEARCH = "families", "search"
SEARCHED_FOR = ("costs", "sizes", "screened")  # keys of a verdict that only the search ranks by
SCREENED_TOUCHES = 5e9  # line touches that the screening of the families may simulate: half a minute or so
LEAST_SCREENED = 24
FINALISTS = 3  # families that the full replay decides between, of all in lockstep


def add_baselines(
    scorer: Scorer,
    history: History,
    ranking: Ranking,
    *,
    evaluations: int,
    seed: int,
    cost_of: dict[int, float],
) -> None:
    """Append the baselines that the history lacks.

    Parameters
    ----------
    scorer : Scorer
    history : History
    ranking : Ranking
        Of the run.
    evaluations : int
        Candidates of the models that were judged: the search replays as many.
    seed : int
        Of the search.
    cost_of : mapping of int to float [ms]
        Times to store by attempt in place of those measured, for a repeated run.
    """
    there = list(history)
    space = family_candidates(scorer.kernel, scorer.gpu)
    finalists = sum(a.proposer == FAMILIES for a in there)
    if finalists < FINALISTS:
        for candidate in _best_families(scorer, space, ranking.main)[finalists:]:
            _append(scorer, history, Candidate(candidate.name, candidate.source, FAMILIES), cost_of)
    searched = sum(a.proposer == SEARCH for a in there)
    if searched < evaluations:
        _add_search(scorer, history, ranking, evaluations, seed, searched, cost_of)


def _add_search(
    scorer: Scorer,
    history: History,
    ranking: Ranking,
    evaluations: int,
    seed: int,
    searched: int,
    cost_of: dict[int, float],
) -> None:
    """Append the replays of a search of the families' templates, after the first ``searched``."""
    found = search_on(evaluator_like(scorer), evaluations=evaluations, seed=seed, objectives=ranking.objectives)
    replayed = [a for a in found.run.attempts if a.verdict["stage"] == "replay"]
    for attempt in replayed[searched:]:
        number = len(history)
        shared = {key: value for key, value in attempt.verdict.items() if key not in SEARCHED_FOR}
        verdict = {**shared, "code": "scored", "stage": "full replay"}
        cost_ms = cost_of.get(number, attempt.cost_ms)
        history.append(replace(attempt, number=number, verdict=verdict, cost_ms=cost_ms))


def _best_families(scorer: Scorer, space: Sequence[Candidate], objective: Objective) -> list[Candidate]:
    """Best families in the lockstep replay, best first, each permutation once; of a large kernel one in n."""
    quick = lockstep_like(scorer)
    cost = max(1.0, scorer.plan.trace.n_touches * scorer.plan.simulated_fraction)
    step = max(1, round(len(space) / max(LEAST_SCREENED, SCREENED_TOUCHES / cost)))
    found: dict[bytes, tuple[float, int, Candidate]] = {}
    for number, candidate in enumerate(space[::step]):
        order = scorer.permutation(Swizzle.parse(candidate.source))
        digest = permutation_digest(order)
        if digest not in found:
            score = quick.score_order(order, baseline_us=quick.baseline.time_us)
            found[digest] = (objective.cost(score), number, candidate)
    return [candidate for _, _, candidate in sorted(found.values(), key=lambda row: row[:2])[:FINALISTS]]


def _append(scorer: Scorer, history: History, candidate: Candidate, cost_of: dict[int, float]) -> None:
    began = time.perf_counter()
    swizzle = Swizzle.parse(candidate.source)
    verdict = scorer.verify(swizzle).as_dict()
    score = scorer.score(swizzle)
    number = len(history)
    history.append(
        Attempt(
            number=number,
            name=candidate.name,
            source=candidate.source,
            proposer=candidate.proposer,
            verdict={**verdict, "code": "scored", "stage": "full replay"},
            score=score,
            cost_ms=cost_of.get(number, (time.perf_counter() - began) * 1e3),
        )
    )
