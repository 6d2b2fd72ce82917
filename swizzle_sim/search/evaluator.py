"""`Evaluator`: scores of a search's candidates at one problem size or several, by rungs of rising cost.

Rungs: permutation at every size, duplicate, for counts the bound of the assignment and a lockstep replay of a few XCDs
(or all of them), full replay. XCDs share no L2, so a few of them can be replayed in lockstep without the others, and
dispatch deals every order out to all of them alike: that rate is exact for those XCDs and an estimate for the GPU. It
decides which candidates are replayed in full, and never stands in a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import permutation_digest
from swizzle_sim.search.optimize import verdict_without_check
from swizzle_sim.search.ranking import OBJECTIVES, Objective, default_objectives
from swizzle_sim.search.sharing_graph import SharingGraph, sharing_graph
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, xcd_of
from xcd_model.errors import LanguageError, NotBijective
from xcd_model.replay.lockstep import replay_some_xcds
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS

BY_BOUND = (OBJECTIVES["l2_hit_rate"],)  # objectives that the bound of an assignment bounds
COUNTED = (*BY_BOUND, OBJECTIVES["hbm_bytes"])  # that the lockstep replay screens for: its times rank no orders
SAMPLED = 2  # XCDs


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate before any replay.

    Parameters
    ----------
    swizzle : Swizzle or None
    orders : tuple of (num_pids,) int64, or None
        Permutation at each size; None if the candidate is no bijection at one of them.
    critique, code : str
        The reason for that.
    """

    swizzle: Swizzle | None
    orders: tuple[np.ndarray, ...] | None
    critique: str = ""
    code: str = ""

    @property
    def digest(self) -> bytes:
        """Hash of the permutations."""
        return permutation_digest(*(self.orders or ()))


class Evaluator:
    """Scores of candidates at one or more sizes of a kernel.

    Parameters
    ----------
    kernels : sequence of Kernel
        Attempts are stored for the first.
    gpu : Gpu
    replay, seed, jitter_ns
        As `Scorer`.
    """

    def __init__(self, kernels: Sequence[Kernel], gpu: Gpu, *, replay: str, seed: int = 0, jitter_ns: float = 0.0):
        self.scorers = [Scorer(kernel, gpu, replay=replay, seed=seed, jitter_ns=jitter_ns) for kernel in kernels]

    @property
    def main(self) -> Scorer:
        """Scorer of the first kernel."""
        return self.scorers[0]

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What is optimized by default on this GPU with this replay."""
        return default_objectives(self.main.gpu.name, self.main.replay)

    @cached_property
    def screens(self) -> list[Scorer]:
        """Lockstep scorers of the same plans; none where the replay is lockstep already."""
        return [] if self.main.replay == "lockstep" else [lockstep_like(scorer) for scorer in self.scorers]

    @cached_property
    def graphs(self) -> list[SharingGraph]:
        """Sharing graph at each size."""
        return [sharing_graph(scorer.plan) for scorer in self.scorers]

    @cached_property
    def is_cold(self) -> bool:
        """Whether every counted launch begins with cold L2s, so that bounds hold."""
        return all(s.kernel.launches == 1 or not s.gpu.l2.kept_between_launches for s in self.scorers)

    def judge(self, source: str, name: str = "") -> Judged:
        """Parse a candidate and evaluate it at every size."""
        try:
            swizzle = Swizzle.parse(source, name=name)
            return Judged(swizzle, tuple(scorer.permutation(swizzle) for scorer in self.scorers))
        except (LanguageError, NotBijective) as error:
            return Judged(None, None, str(error), error.code)

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
        scores = [s.score_order(o, baseline_us=s.baseline.time_us) for s, o in zip(self.screens, orders, strict=True)]
        return self._costs(self.screens, scores, objectives)

    def score(self, orders: Sequence[np.ndarray]) -> list[Score]:
        """Score at each size by the full replay."""
        return [s.score_order(o, baseline_us=s.baseline.time_us) for s, o in zip(self.scorers, orders, strict=True)]

    def costs(self, scores: Sequence[Score], objectives: Sequence[Objective]) -> tuple[float, ...]:
        """Minus the mean gain over the sizes, for each objective: less is better."""
        return self._costs(self.scorers, scores, objectives)

    @staticmethod
    def _costs(
        scorers: Sequence[Scorer], scores: Sequence[Score], objectives: Sequence[Objective]
    ) -> tuple[float, ...]:
        pairs = list(zip(scorers, scores, strict=True))
        return tuple(-float(np.mean([one.gain(score, s.baseline) for s, score in pairs])) for one in objectives)

    def verdict(self, judged: Judged) -> dict[str, Any]:
        """Verdict at the main size and over the kernel's other grids."""
        if judged.swizzle is None:
            return verdict_without_check(judged.code)
        return self.main.verify(judged.swizzle).as_dict()


def lockstep_like(scorer: Scorer) -> Scorer:
    """Scorer by the lockstep replay on the plan of another, or that scorer if it is one."""
    if scorer.replay == "lockstep":
        return scorer
    made = Scorer(scorer.kernel, scorer.gpu, replay="lockstep")
    made.__dict__["plan"], made.__dict__["bound"] = scorer.plan, scorer.bound
    return made


def evaluator_like(scorer: Scorer) -> Evaluator:
    """Evaluator with its own scorer on the plan of another, whose trace, bound and baseline it shares."""
    made = Evaluator([scorer.kernel], scorer.gpu, replay=scorer.replay, seed=scorer.seed, jitter_ns=scorer.jitter_ns)
    for name in ("plan", "bound", "baseline"):
        made.main.__dict__[name] = getattr(scorer, name)
    return made


def sampled_xcds(n_xcds: int) -> tuple[int, ...]:
    """XCDs of the sample, evenly spaced; all of them where there are at most `SAMPLED`."""
    return tuple(dict.fromkeys(i * n_xcds // SAMPLED for i in range(SAMPLED)))


def sampled_hit_rate(scorer: Scorer, order: np.ndarray) -> float:
    """L2 hit rate of a few XCDs in lockstep with cold caches, without instruction fetches (the same for all orders).

    Parameters
    ----------
    scorer : Scorer
    order : (n_workgroups,) int64
        A permutation.

    Returns
    -------
    rate : float
        0 to 1, in requests; 1 where those XCDs request nothing.
    """
    xcds = sampled_xcds(scorer.plan.machine.xcds)
    counts = replay_some_xcds(scorer.plan, order, workgroups_per_cu=scorer.occupancy, xcds=xcds)
    requests = counts[READ_REQUESTS] + counts[WRITE_REQUESTS]
    return float(1 - (counts[READ_MISSES] + counts[WRITE_MISSES]) / requests) if requests else 1.0
