"""An autotuner's configurations together with swizzles: which pair is fastest, in a bounded number of replays.

Every configuration is replayed in launch order and with the first of the shortlist; then the better half of them goes
on with more, and so on (successive halving, as in the search of templates). All figures are of the same replay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from swizzle_sim.capture.configurations import Configuration
from swizzle_sim.language import family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate, distinct_shortlist
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.ranking import default_objectives
from swizzle_sim.search.strategies.halving import rounds_of

LAUNCH_ORDER = "identity"
FEWEST = 24  # replays, however few configurations there are
A_CONFIGURATION = 6  # replays that a search without a budget spends, on average
OnReplay = Callable[[int, int, "Tuned"], None]


@dataclass(eq=False)
class Tuned:
    """A configuration and the swizzles that were replayed on it.

    Parameters
    ----------
    configuration : Configuration
    scorer : Scorer or None
        None where the configuration is refused.
    scores : dict of str to Score
        By family specification, the launch order first.
    """

    configuration: Configuration
    scorer: Scorer | None
    scores: dict[str, Score] = field(default_factory=dict)
    _left: Iterator[tuple[Candidate, np.ndarray]] | None = field(default=None, repr=False)

    @property
    def launch_order(self) -> Score | None:
        """Score without a swizzle; None where nothing was replayed."""
        return self.scores.get(LAUNCH_ORDER)

    @property
    def best(self) -> tuple[str, Score] | None:
        """Best swizzle by what ranks orders of one grid on the GPU, of equal ones the fastest."""
        if not self.scores or not self.scorer:
            return None
        (objective,) = default_objectives(self.scorer.gpu.name, self.scorer.replay)
        tied = min(map(objective.cost, self.scores.values())) + objective.tolerance(self.scorer.gpu.name)
        return min(
            (one for one in self.scores.items() if objective.cost(one[1]) <= tied), key=lambda one: one[1].time_us
        )

    @property
    def time_us(self) -> float:
        """Of the best; infinite without any."""
        return self.best[1].time_us if self.best else float("inf")

    def point(self, swizzle: str) -> dict[str, Any]:
        """What a stored replay goes by."""
        assert self.scorer
        return {
            "kernel": self.scorer.kernel.digest,
            "resources": asdict(self.scorer.kernel.resources),
            "gpu": self.scorer.gpu.name,
            "replay": self.scorer.replay,
            "seed": self.scorer.seed,
            "swizzle": swizzle,
        }

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        about = {"config": self.configuration.place, "chosen": dict(self.configuration.chosen)}
        if self.scorer is None:
            return {**about, "refused": self.configuration.refused}
        base, best = self.launch_order, self.best
        return {
            **about,
            "resources": asdict(self.scorer.kernel.resources),
            "workgroups_per_cu": self.scorer.occupancy,
            "tried": len(self.scores),
            "launch_order": base.as_dict() if base else None,
            "best": {"swizzle": best[0], "score": best[1].as_dict()} if best else None,
        }

    def take(self) -> tuple[Candidate, np.ndarray] | None:
        """Next swizzle to replay, and its permutation; None where there is none left."""
        if self._left is None:
            self._left = distinct_orders(self.scorer) if self.scorer else iter(())
        return next(self._left, None)


def distinct_orders(scorer: Scorer) -> Iterator[tuple[Candidate, np.ndarray]]:
    """Launch order, then the families' shortlist, as far as they are permutations of the grid and new."""
    yield Candidate(LAUNCH_ORDER, family(LAUNCH_ORDER), "baseline"), np.arange(scorer.kernel.grid.num_pids)
    yield from distinct_shortlist(scorer)


@dataclass(frozen=True, kw_only=True)
class TuningPlan:
    """How much is replayed.

    Parameters
    ----------
    replays : int or None
        Budget; by default `A_CONFIGURATION` times as many as configurations, and at least `FEWEST`.
    threads : int
        Replays at a time; the result does not depend on it.
    end_s : float [s]
        No replay is begun after that point of ``time.monotonic``.
    on_replay : callable, optional
        ``on_replay(done, budget, tuned)`` after each.
    """

    replays: int | None = None
    threads: int = 1
    end_s: float = float("inf")
    on_replay: OnReplay | None = None

    def budget(self, configurations: int) -> int:
        """Replays for so many configurations."""
        return self.replays or max(FEWEST, A_CONFIGURATION * configurations)


def tune(every: Sequence[Tuned], plan: TuningPlan, store: PointStore) -> None:
    """Replay configurations with swizzles; whoever interrupts it finds in ``every`` what was replayed so far.

    Parameters
    ----------
    every : sequence of Tuned
    plan : TuningPlan
    store : PointStore
        Replays that are in it are not repeated.
    """
    arms = [one for one in every if one.scorer]
    budget, done = plan.budget(len(arms)), 0
    with ThreadPoolExecutor(plan.threads) as pool:
        for n_arms, quota in rounds_of(len(arms), budget):
            arms = sorted(arms, key=lambda one: one.time_us)[:n_arms]
            for _ in range(quota):  # each a step further, so that a stop leaves none behind
                taken = [(one, *found) for one in arms[: budget - done] if (found := one.take())]
                waiting = [(*job, store.find(job[0].point(job[1].name))) for job in taken]
                while waiting and time.monotonic() <= plan.end_s:
                    batch, waiting = waiting[: plan.threads], waiting[plan.threads :]
                    for one, name, score in pool.map(_replayed, *zip(*batch, strict=True)):
                        one.scores[name], done = score, done + 1
                        store.add(one.point(name), {"score": score.as_dict()})
                        if plan.on_replay:
                            plan.on_replay(done, budget, one)


def _replayed(one: Tuned, candidate: Candidate, order: np.ndarray, known: Mapping[str, Any] | None):
    if known:
        return one, candidate.name, Score.from_dict(dict(known["score"]))
    assert one.scorer
    base = one.launch_order
    return one, candidate.name, one.scorer.score_order(order, baseline_us=base.time_us if base else None)
