"""`Bench`: the scorers of a kernel at one problem size or several, and cheap looks at an order before a replay.

XCDs share no L2, so a few of them can be replayed in lockstep without the others, and dispatch deals every order out to
all of them alike: that rate is exact for those XCDs and an estimate for the GPU. It decides which candidates are
replayed in full, and never stands in a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.ranking import Objective
from swizzle_sim.search.sharing_graph import SharingGraph, sharing_graph
from xcd_model import xcd_of
from xcd_model.replay.lockstep import replay_some_xcds
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS

SAMPLED = 2  # XCDs


class Bench:
    """Scorers of one kernel at its sizes, the main one first, with what several judges of them share."""

    def __init__(self, *scorers: Scorer):
        self.scorers = list(scorers)

    @property
    def main(self) -> Scorer:
        """Scorer of the first size."""
        return self.scorers[0]

    @cached_property
    def lockstep(self) -> list[Scorer]:
        """Lockstep scorers of the same plans; none where the replay is lockstep already."""
        return [] if self.main.replay == "lockstep" else [scorer.quick for scorer in self.scorers]

    @cached_property
    def graphs(self) -> list[SharingGraph]:
        """Sharing graph at each size."""
        return [sharing_graph(scorer.plan) for scorer in self.scorers]

    @property
    def is_cold(self) -> bool:
        """Whether every counted launch begins with cold L2s, so that bounds hold."""
        return all(s.kernel.launches == 1 or not s.gpu.l2.kept_between_launches for s in self.scorers)

    @property
    def room(self) -> float:
        """Points of hit rate between the launch order and the proven bound, in the mean over the sizes."""
        return sum(s.bound.l2_hit_rate - s.baseline.l2_hit_rate for s in self.scorers) / len(self.scorers)

    def bound_gain(self, orders: Sequence[np.ndarray]) -> float:
        """Upper bound of the gain in hit rate over the launch order, for any cache, with this assignment to XCDs."""
        gains = []
        for scorer, graph, order in zip(self.scorers, self.graphs, orders, strict=True):
            if scorer.kernel.claims:  # which XCD computes a tile is not known before the replay
                gains.append(scorer.bound.l2_hit_rate - scorer.baseline.l2_hit_rate)
                continue
            xcd = np.empty(order.size, np.int64)
            xcd[order] = xcd_of(order.size, scorer.gpu, scorer.kernel.programs)
            code = int(scorer.fetches[:, READ_MISSES].sum())  # misses under every order
            rate = 1 - (graph.misses(xcd, scorer.gpu.xcds) + code) / scorer.bound.l2_requests
            gains.append(rate - scorer.baseline.l2_hit_rate)
        return float(np.mean(gains))

    @cached_property
    def _sampled_launch_order(self) -> list[float]:
        return [sampled_hit_rate(s, np.arange(s.kernel.grid.num_pids)) for s in self.scorers]

    def sample(self, orders: Sequence[np.ndarray]) -> float:
        """Minus the mean gain in hit rate over the launch order, of a few XCDs in lockstep."""
        rates = [sampled_hit_rate(scorer, order) for scorer, order in zip(self.scorers, orders, strict=True)]
        return float(np.mean(self._sampled_launch_order) - np.mean(rates))

    def screen(self, orders: Sequence[np.ndarray], objectives: Sequence[Objective]) -> tuple[float, ...]:
        """Costs in the lockstep replay."""
        scores = [score_on(scorer, order) for scorer, order in zip(self.lockstep, orders, strict=True)]
        return costs_of(self.lockstep, scores, objectives)


def costs_of(scorers: Sequence[Scorer], scores: Sequence[Score], objectives: Sequence[Objective]) -> tuple[float, ...]:
    """Minus the mean gain over the sizes, for each objective: less is better."""
    pairs = list(zip(scorers, scores, strict=True))
    return tuple(-float(np.mean([one.gain(score, s.baseline) for s, score in pairs])) for one in objectives)


def score_on(scorer: Scorer, order: np.ndarray) -> Score:
    """Score of a permutation; the launch order is replayed once."""
    if np.array_equal(order, np.arange(order.size)):
        return scorer.baseline
    return scorer.score_order(order, baseline_us=scorer.baseline.time_us)


def score_alone(scorer: Scorer, order: np.ndarray) -> Score:
    """Score of a permutation without a speedup, so that the launch order is not replayed."""
    return scorer.score_order(order, baseline_us=None)


def sampled_xcds(n_xcds: int) -> tuple[int, ...]:
    """XCDs of the sample, evenly spaced; all of them where there are at most `SAMPLED`."""
    return tuple(dict.fromkeys(i * n_xcds // SAMPLED for i in range(SAMPLED)))


def sampled_hit_rate(scorer: Scorer, order: np.ndarray) -> float:
    """L2 hit rate of a few XCDs in lockstep with cold caches, 0 to 1; without instruction fetches, which all have.

    It is 1 where those XCDs request nothing.
    """
    xcds = sampled_xcds(scorer.plan.machine.xcds)
    counts = replay_some_xcds(scorer.plan, order, workgroups_per_cu=scorer.occupancy, xcds=xcds)
    requests = counts[READ_REQUESTS] + counts[WRITE_REQUESTS]
    return float(1 - (counts[READ_MISSES] + counts[WRITE_MISSES]) / requests) if requests else 1.0
