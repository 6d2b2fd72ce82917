"""`Bench`: judges candidates of a search, at one problem size or several, cheapest question first.

Rungs: permutation at every size, permutation already seen, bound of the assignment, a few XCDs in lockstep (or all of
them), the replay asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from swizzle_sim.kernels import Kernel
from swizzle_sim.scoring import Score, Scorer
from swizzle_sim.swizzle import Swizzle
from swizzle_sim.tuning.objectives import OBJECTIVES, Objective
from swizzle_sim.tuning.sampled import sampled_hit_rate
from swizzle_sim.tuning.sharing_graph import SharingGraph, sharing_graph
from xcd_model import Gpu, xcd_of
from xcd_model.errors import LanguageError, NotBijective
from xcd_model.replay.traffic import READ_MISSES


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate before any replay.

    Parameters
    ----------
    swizzle : Swizzle or None
    orders : tuple of (num_pids,) int64, or None
        Permutation at each size; None where it is none at some size.
    critique, code : str
        Why there is none.
    """

    swizzle: Swizzle | None
    orders: tuple[np.ndarray, ...] | None
    critique: str = ""
    code: str = ""

    @property
    def digest(self) -> bytes:
        """Same for the same permutations."""
        found = blake2b(digest_size=16)
        for order in self.orders or ():
            found.update(order.tobytes())
        return found.digest()


class Bench:
    """Scores of candidates at one or more sizes of a kernel.

    Parameters
    ----------
    kernels : sequence of Kernel
        The first is the one that attempts are stored for.
    gpu : Gpu
    replay, seed, jitter_ns
        As `Scorer`.
    """

    def __init__(self, kernels: Sequence[Kernel], gpu: Gpu, *, replay: str, seed: int = 0, jitter_ns: float = 0.0):
        self.scorers = [Scorer(kernel, gpu, replay=replay, seed=seed, jitter_ns=jitter_ns) for kernel in kernels]

    @property
    def main(self) -> Scorer:
        """Scorer of the kernel that attempts are stored for."""
        return self.scorers[0]

    @cached_property
    def screens(self) -> list[Scorer]:
        """Lockstep scorers of the same plans; none where the replay is lockstep already."""
        if self.main.replay == "lockstep":
            return []
        found = [Scorer(scorer.kernel, scorer.gpu) for scorer in self.scorers]
        for screen, scorer in zip(found, self.scorers, strict=True):
            screen.__dict__["plan"], screen.__dict__["bound"] = scorer.plan, scorer.bound
        return found

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
        """Gain in hit rate over the order as launched that no cache could exceed with this assignment to XCDs."""
        gains = []
        for scorer, graph, order in zip(self.scorers, self.graphs, orders, strict=True):
            xcd = np.empty(order.size, np.int64)
            xcd[order] = xcd_of(order.size, scorer.gpu, scorer.kernel.programs)
            code = int(scorer.fetches[:, READ_MISSES].sum())  # misses under every order
            rate = 1 - (graph.misses(xcd, scorer.gpu.xcds) + code) / scorer.bound.l2_requests
            gains.append(rate - scorer.baseline.l2_hit_rate)
        return float(np.mean(gains))

    @cached_property
    def _sampled_as_launched(self) -> list[float]:
        return [sampled_hit_rate(s, np.arange(s.kernel.grid.num_pids)) for s in self.scorers]

    def sample(self, orders: Sequence[np.ndarray]) -> float:
        """Minus the mean gain in hit rate over the order as launched, of a few XCDs in lockstep."""
        rates = [sampled_hit_rate(scorer, order) for scorer, order in zip(self.scorers, orders, strict=True)]
        return float(np.mean(self._sampled_as_launched) - np.mean(rates))

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
            undecided = judged.code == "limit"  # a cap of ours says nothing of the candidate
            found = (
                {"bijective": None, "domain": "undecided"} if undecided else {"bijective": False, "domain": "nowhere"}
            )
            return {**found, "code": judged.code}
        return self.main.verify(judged.swizzle).as_dict()


def bench_of(scorer: Scorer) -> Bench:
    """Bench on the plan of a scorer, with a scorer of its own."""
    made = Bench([scorer.kernel], scorer.gpu, replay=scorer.replay, seed=scorer.seed, jitter_ns=scorer.jitter_ns)
    for name in ("plan", "bound", "baseline"):
        made.main.__dict__[name] = getattr(scorer, name)
    return made


BY_BOUND = (OBJECTIVES["l2_hit_rate"],)  # objectives that the bound of an assignment says something of
