"""`reward` and `rewards`: the judge as a verifiable reward, for training models to write swizzles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import permutation_digest
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.judge import Judge, left_of
from swizzle_sim.search.ranking import TIME, uneven_of
from swizzle_sim.search.strategies.families import is_settled
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu

DONE = "done"  # in place of a swizzle: no better order is expected
REFUSED = {"parse": 0.0, "grid": 0.1, "bound": 0.0}  # of a candidate without a score, by its stage
NO_BETTER = 0.2
REWARDS = "swizzle_sim.rewards"  # entry points
Reward = Callable[[Attempt, Scorer], float]


def reward(kernel: Kernel, text: str, gpu: Gpu, *, replay: str = "timed", of: Reward | None = None) -> float:
    """Verifiable reward of one candidate, for training models to write swizzles.

    Parameters
    ----------
    kernel : Kernel
    text : str
        Candidate in the closed language, a family's name, or ``"done"``; hostile text costs nothing but a refusal.
    gpu : Gpu
    replay : {"timed", "lockstep"}
    of : callable, optional
        Reward of your own: takes the `Attempt` and its `Scorer`. ``"done"`` is paid as below all the same.

    Returns
    -------
    reward : float
        0 for text outside the language, and for one that beats the proven bound (a defect, never a win); 0.1 for text
        of the language that is no bijection at the kernel's grid; 0.2 for a bijection no better than the launch
        order; above that up to 1 with the share of what can be gained: of hit rate up to the fewest misses of any
        order, of time down to what no order can avoid, as the GPU ranks, and where work is uneven half of it by the
        makespan. A candidate that holds only on some grids of the lattice gets nine tenths of the part above 0.2.
        ``"done"`` gets 1 where the launch order leaves nothing to gain, else 0.2.

    Notes
    -----
    The same candidate gets the same reward in every process. Nothing of the text is ever executed, every workgroup of
    the grid is checked before any score, and the score comes from a replay: there is nothing to game but the model.
    """
    return rewards(kernel, (text,), gpu, replay=replay, of=of)[0]


def rewards(
    kernel: Kernel, texts: Sequence[str], gpu: Gpu, *, replay: str = "timed", of: Reward | None = None
) -> list[float]:
    """Rewards of several candidates, as `reward` gives them; each permutation is replayed once, also over calls."""
    scorer = scorer_for(kernel, gpu, replay)
    return [answer_reward(text, scorer, of)[0] for text in texts]


def answer_reward(text: str, scorer: Scorer, of: Reward | None = None) -> tuple[float, Attempt | None]:
    """Reward of an answer, and its attempt; none of `DONE`."""
    if text.strip().lower() == DONE:
        return (1.0 if is_settled(scorer) else NO_BETTER), None
    found = Judge(scorer, far_worse=True).judge(text)
    return (of or reward_of)(found, scorer), found


def reward_of(found: Attempt, scorer: Scorer) -> float:
    """Reward of an attempt, 0 to 1: see `reward`."""
    if found.score is None:
        return REFUSED.get(found.verdict["stage"], NO_BETTER)
    whole = 1.0 if found.verdict["code"] == "scored" else 0.9
    return NO_BETTER + (1 - NO_BETTER) * whole * _share(found.score, scorer)


def _share(score: Score, scorer: Scorer) -> float:
    """Share of what can be gained, 0 to 1."""
    ranking = Judge(scorer).ranking
    gain, launched = ranking.main.gain(score, scorer.baseline), scorer.baseline
    if is_settled(scorer):
        return float(gain >= -ranking.tolerance)
    if ranking.main == TIME:
        return _part(launched.time_us - score.time_us, launched.time_us - _floor_us(scorer))
    share = _part(gain, gain + max(0.0, left_of(scorer, score)))
    if not scorer.work.uneven:
        return share
    return (share + _part(uneven_of(launched) - uneven_of(score), uneven_of(launched) - 1)) / 2


def _floor_us(scorer: Scorer) -> float:
    """Time [us] that no order avoids: the arithmetic, and without an Infinity Cache the fewest misses at HBM's rate."""
    gpu, cold = scorer.gpu, scorer.baseline.launch == 1
    fetched = 0.0 if gpu.mall or not cold else scorer.bound.l2_misses * gpu.l2.fetch_bytes
    return max(scorer.baseline.busy_us.get("compute", 0.0), fetched / gpu.hbm.peak_bandwidth_gbps / 1e3)


def _part(gained: float, room: float) -> float:
    return min(1.0, max(0.0, gained / room)) if room > 0 else 0.0


class _Known(Scorer):
    """Scorer that remembers the score of every permutation: models in training repeat themselves."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._scores: dict[bytes, Score] = {}

    def score_order(self, order: np.ndarray, *, baseline_us: float | None) -> Score:
        key = permutation_digest(order)
        if key not in self._scores:
            self._scores[key] = super().score_order(order, baseline_us=baseline_us)
        return self._scores[key]


@lru_cache(maxsize=4)
def scorer_for(kernel: Kernel, gpu: Gpu, replay: str) -> Scorer:
    """Scorer that later calls share."""
    return _Known(kernel, gpu, replay=replay)
