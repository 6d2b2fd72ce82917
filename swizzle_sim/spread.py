"""`spread`: how much of a score is the luck of the draw."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from swizzle_sim.scoring import Scorer
from swizzle_sim.swizzle import Swizzle
from xcd_model.errors import ReplayError


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of a candidate over seeds of the timed replay.

    Replays differ in the speeds of workgroups (`xcd_model.IssueModel.speed_variation`) and in jitter.

    Parameters
    ----------
    seeds : int
        Replays, with seeds ``seed, seed + 1, ...`` of the scorer.
    l2_hit_rate_mean, l2_hit_rate_std : float
        0 to 1.
    time_us_mean, time_us_std : float [us]
    """

    seeds: int
    l2_hit_rate_mean: float
    l2_hit_rate_std: float
    time_us_mean: float
    time_us_std: float

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def spread(scorer: Scorer, swizzle: Swizzle, seeds: int) -> Spread:
    """Replay a candidate over seeds of the timed replay.

    Parameters
    ----------
    scorer : Scorer
        With the timed replay, of a GPU with a ``compute_spread`` or with a jitter.
    swizzle : Swizzle
    seeds : int
        At least 2.

    Returns
    -------
    Spread

    Raises
    ------
    NotBijective
        If the candidate is not a permutation of the kernel's grid.
    ReplayError
        If the scorer draws no random numbers, or there are fewer than 2 seeds.
    """
    if scorer.replay != "timed" or not (scorer.jitter_ns or scorer.gpu.compute_spread):
        raise ReplayError(
            "every seed gives the same counts in the lockstep replay, and where neither speeds nor loads vary: "
            "use --replay timed"
        )
    if seeds < 2:
        raise ReplayError(f"seeds = {seeds}: a spread needs at least 2")
    order = scorer.permutation(swizzle)
    replays = [scorer.traffic(order, seed=scorer.seed + i) for i in range(seeds)]
    rate = np.array([traffic.l2_hit_rate for traffic in replays])
    time_us = np.array([traffic.time_fs / 1e9 for traffic in replays])
    return Spread(seeds, float(rate.mean()), float(rate.std(ddof=1)), float(time_us.mean()), float(time_us.std(ddof=1)))
