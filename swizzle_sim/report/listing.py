"""The attempts of a run as the page lists them: verdict, critique, cost and text of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swizzle_sim.base.text import cut, microseconds, percent
from swizzle_sim.report.spending import Spending
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking

MOST = 300  # attempts listed; of more, the best and the first of the others
BEST_OF_MOST = 200
LONGEST_NAME = 120
LONGEST_CRITIQUE = 2000
LONGEST_SOURCE = 6000


@dataclass(frozen=True)
class Row:
    """One attempt.

    Parameters
    ----------
    number : int
    name, proposer, source : str
        Cut where too long.
    outcome : str
        Class of the style sheet: scored, refused or unscored.
    verdict : str
    l2, time : str
        Empty without a score.
    critique, cost : str
    """

    number: int
    name: str
    proposer: str
    source: str
    outcome: str
    verdict: str
    l2: str
    time: str
    critique: str
    cost: str


def listed(attempts: Sequence[Attempt], ranking: Ranking) -> list[Attempt]:
    """Attempts to list, in the order made."""
    if len(attempts) <= MOST:
        return list(attempts)
    best = ranking.order(attempts)[:BEST_OF_MOST]
    chosen = {one.number for one in best}
    others = [one for one in attempts if one.number not in chosen][: MOST - len(best)]
    return sorted([*best, *others], key=lambda one: one.number)


def rows(attempts: Sequence[Attempt], spending: Spending) -> list[Row]:
    """Rows of the list."""
    return [_row(one, spending) for one in attempts]


def _row(one: Attempt, spending: Spending) -> Row:
    spent = spending.of(one.number)
    refused = one.score is None and not one.verdict.get("bijective", False)
    return Row(
        number=one.number,
        name=cut(one.name, LONGEST_NAME),
        proposer=cut(one.proposer, LONGEST_NAME),
        source=cut(one.source, LONGEST_SOURCE),
        outcome="scored" if one.score else "refused" if refused else "unscored",
        verdict=_verdict(one, refused),
        l2=percent(one.score.l2_hit_rate) if one.score else "",
        time=f"{microseconds(one.score.time_us)} µs" if one.score else "",
        critique=cut(one.critique, LONGEST_CRITIQUE),
        cost=f"{_duration(one.cost_ms)}{'; ' + spent if spent else ''}",
    )


def _verdict(one: Attempt, refused: bool) -> str:
    code, domain = one.verdict.get("code", ""), one.verdict.get("domain", "not recorded")
    said = "refused" if refused else f"bijection: {domain}"
    if one.verdict.get("bijective", False) is None:
        said = "undecided"
    return f"{said} ({code})" if code and code != "scored" else said


def _duration(cost_ms: float) -> str:
    return f"{cost_ms / 1e3:.1f} s" if cost_ms >= 1000 else f"{cost_ms:.1f} ms"


def counts(attempts: Sequence[Attempt]) -> dict[str, Any]:
    """How the attempts ended."""
    none = [a for a in attempts if a.score is None]
    refused = sum(not a.verdict.get("bijective", False) for a in none)
    return {
        "all": len(attempts),
        "scored": len(attempts) - len(none),
        "refused": refused,
        "unscored": len(none) - refused,
    }
