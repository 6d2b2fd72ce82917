"""What stands beside a run of models: the first families of the shortlist, and a search, at equal evaluations.

Each gets as many full replays as the models had, and at least `LEAST_EVALUATIONS`: counted, never timed, so that a
busy machine compares as an idle one does and a repeated run makes the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count, islice

from swizzle_sim.search.bench import Bench
from swizzle_sim.search.candidates import distinct_shortlist, family_specs
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.judge import FULL_REPLAY, Judge
from swizzle_sim.search.loop import one_after_another, run
from swizzle_sim.search.strategies.halving import search_on

from .transcript import Transcript

FAMILIES, SEARCH = "families", "search"
PLAN = "beside"  # kind of note: evaluations of each, and how many families there are
SEARCHED_FOR = ("costs", "sizes", "screened")  # keys of a verdict that only the search ranks by
LEAST_EVALUATIONS = 60  # full replays of either


def add_baselines(
    judge: Judge,
    history: History,
    notes: Transcript,
    spent: int,
    *,
    amend: Callable[[Attempt], Attempt] = lambda attempt: attempt,
    on_count: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Append the baselines that the history lacks, at as many evaluations as the models ``spent``, or more.

    ``notes`` are those of the run, for what the rows say; ``amend`` changes an attempt before it is stored.
    """
    scorer, evaluations = judge.scorer, max(LEAST_EVALUATIONS, spent)
    plan = {"evaluations": evaluations, "families": sum(1 for _ in family_specs(scorer.kernel, scorer.gpu))}
    notes.note(PLAN, evaluations, plan)

    chosen = [candidate for candidate, _ in islice(distinct_shortlist(scorer), evaluations)]
    counted = count()
    run(
        one_after_another(chosen), Judge(scorer, judge.objectives), history,
        on_attempt=lambda attempt: on_count(next(counted), 2 * evaluations),
        mine=lambda attempt: attempt.proposer == FAMILIES, amend=amend,
    )  # fmt: skip
    searched = {one.source for one in history if one.proposer == SEARCH}
    found = search_on(
        Bench(scorer),
        evaluations=evaluations,
        seed=scorer.seed,
        objectives=judge.objectives,
        on_attempt=lambda attempt, done, most: on_count(len(chosen) + done, 2 * evaluations),
    )
    for one in found.attempts[1:]:
        if one.verdict["stage"] == FULL_REPLAY and one.source not in searched:
            verdict = {key: value for key, value in one.verdict.items() if key not in SEARCHED_FOR}
            history.append(amend(replace(one, number=len(history), verdict=verdict)))
