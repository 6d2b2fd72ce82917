"""`price_finalists`: the best attempts of a run compiled as they would be rewritten, and scored so."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite.price import score_as_compiled
from swizzle_sim.search.history import BEFORE_PRICE, Attempt, History
from swizzle_sim.search.sweep import evaluate
from xcd_model.errors import CompileError, SwizzleSimError

FINALISTS = 5
Rank = Callable[[Sequence[Attempt]], Sequence[Attempt]]
OnPriced = Callable[[int, int], None]


def price_finalists(
    history: History, scorer: Scorer, rank: Rank, *, most: int = FINALISTS, on_priced: OnPriced | None = None
) -> tuple[list[Attempt], str]:
    """Score the best attempts of a run with their own occupancy, until the first of the ranking all have a price.

    The ranking begins without prices, those of an earlier command are looked up, and an attempt that is no finalist any
    more loses its own: so a run that went on ends as one that was never stopped.
    """
    stored = {one.number: one for one in history}
    known = {number: one for number, one in stored.items() if BEFORE_PRICE in one.verdict}
    attempts = {number: one.judged for number, one in stored.items()}
    why_not = ""
    tried: set[int] = set()
    while not why_not:
        first = [one for one in rank(list(attempts.values()))[:most] if one.number]
        waiting = [one for one in first if one.number not in tried and one.score is not None and not one.score.price]
        waiting = waiting[: 2 * most - len(tried)]
        if not waiting:
            break
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # compilers are processes of their own
            found = pool.map(lambda one: known.get(one.number) or _priced(one, scorer), waiting)
            try:
                for one, new in zip(waiting, found, strict=True):
                    tried.add(one.number)
                    attempts[one.number] = new
                    if new is not stored[one.number]:
                        history.replace(new)
                    if on_priced:
                        on_priced(len(tried), most)
            except CompileError as error:  # the others would fail as well
                why_not = str(error).splitlines()[0]
    for number in known.keys() - tried:
        history.replace(attempts[number])
    return list(attempts.values()), why_not


def _priced(one: Attempt, scorer: Scorer) -> Attempt:
    """Attempt with its score as compiled, or with the reason for which it has none."""
    try:
        score = score_as_compiled(scorer, one.swizzle, one.score)
    except CompileError:
        raise
    except SwizzleSimError as error:
        return one.priced(one.score, f"no price: {str(error).splitlines()[0]}")
    lost = score.price is not None and score.price.is_costly
    return one.priced(score, str(score.price) if lost else one.critique)


def evaluate_as_compiled(point: Mapping[str, Any]) -> dict[str, Any]:
    """`swizzle_sim.search.sweep.evaluate` of a point, each swizzle with its own compile where there is one."""
    return evaluate(point, scored_as_compiled)


def scored_as_compiled(scorer: Scorer, swizzle: Swizzle) -> Score:
    """Score of a swizzle with its own compile where there is one."""
    try:
        return score_as_compiled(scorer, swizzle)
    except SwizzleSimError:  # no source or compiler: the kernel's own resources; no bijection: refused
        return scorer.score(swizzle)
