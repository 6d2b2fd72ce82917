"""Orders of workgroups together with settings of a kernel: the direction of its main loop, or the rows of its matrices.

Every setting is replayed in lockstep under the launch order and the first of the families' shortlist; the best are
replayed in time, beside the launch order as it is and the best order that leaves the kernel alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import score_on
from swizzle_sim.search.candidates import LAUNCH_ORDER, Candidate, distinct_shortlist
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import InMemory, one_after_another, run
from swizzle_sim.search.ranking import OBJECTIVES

OnReplay = Callable[[int, int], None]


@dataclass(frozen=True)
class Setting:
    """One order with one setting, `Knobs` or a `Padding`, and its scores; ``timed`` of a finalist."""

    order: Candidate
    what: Any
    lockstep: Score
    timed: Score | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        scores = {"lockstep": self.lockstep.as_dict(), "timed": self.timed and self.timed.as_dict()}
        return {"swizzle": self.order.name, **self.what.as_dict(), **scores}


@dataclass(frozen=True)
class Found:
    """Finalists by the timed replay, best first, the launch order as it is among them; settings refused, and why.

    ``tried`` are the lockstep replays.
    """

    ranked: list[Setting]
    tried: int
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is tried: settings, the one that leaves the kernel alone first, ``scorer(setting, replay)`` of each.

    ``weight`` orders settings that are equal in the objective.
    """

    every: Sequence[Any]
    scorer: Callable[[Any, str], Scorer]
    weight: Callable[[Any], int]
    finalists: int
    refused: Mapping[str, str]

    def search(self, objective: str, evaluations: int, on_replay: OnReplay) -> Found:
        """Replay every setting under as many orders as the evaluations allow, and the finalists in time."""
        plain = self.every[0]
        launched, cost = self.scorer(plain, "lockstep"), OBJECTIVES[objective].cost
        orders = [one for one, _ in islice(distinct_shortlist(launched), max(1, evaluations // len(self.every)) - 1)]
        place = {one.name: i for i, one in enumerate([LAUNCH_ORDER, *orders])}
        tried = self.every[: max(2, evaluations)]
        found: list[Setting] = []
        for what in tried:
            scorer = launched if what is plain else self.scorer(what, "lockstep")
            attempts = run(
                one_after_another(orders), Judge(scorer), InMemory(),
                on_attempt=lambda one: on_replay(len(found) + 1 + one.number, len(place) * len(tried)),
            )  # fmt: skip
            for one in attempts:
                if one.score is not None:
                    order = Candidate(one.name, one.source, one.proposer)
                    found.append(Setting(order, what, _against(one.score, launched)))
        found.sort(key=lambda one: (cost(one.lockstep), self.weight(one.what), place[one.order.name]))
        timed = self.scorer(plain, "timed")
        ranked: list[Setting] = []
        for final in self._finalists(found):
            scorer = timed if final.what is plain else self.scorer(final.what, "timed")
            score = score_on(scorer, Judge(scorer).orders(final.order.source)[0])
            ranked.append(replace(final, timed=_against(score, timed)))
        ranked.sort(key=lambda one: (cost(one.timed or one.lockstep), self.weight(one.what)))
        return Found(ranked, len(found), dict(self.refused))

    def _finalists(self, found: Sequence[Setting]) -> Iterator[Setting]:
        """The best order of each of the best settings, and of those that leave the kernel alone best and launched."""
        plain = [one for one in found if one.what is self.every[0]]
        best: dict[Any, Setting] = {}
        for one in found:
            best.setdefault(one.what, one)
        yield from [one for what, one in best.items() if what is not self.every[0]][: self.finalists]
        yield plain[0]
        if plain[0].order.name != LAUNCH_ORDER.name:
            yield next(one for one in plain if one.order.name == LAUNCH_ORDER.name)


def _against(score: Score, launched: Scorer) -> Score:
    """Score whose speedup is over the launch order of the kernel as it is."""
    return replace(score, speedup=launched.baseline.time_us / score.time_us)
