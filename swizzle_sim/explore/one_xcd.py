"""One XCD alone: the hit rate of its own L2, and what its workgroups touch, beside what that L2 holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from xcd_model import xcd_of
from xcd_model.analysis.bounds import touched_bytes


@dataclass(frozen=True, kw_only=True)
class OneXcd:
    """What one XCD does under one order.

    Parameters
    ----------
    l2_hit_rate : float
        Of its own L2; nan for an XCD without work.
    touched_bytes : int [bytes]
        That all of its workgroups touch: compulsory misses, if each is fetched once.
    resident : int
        Workgroups that run on it at once, at the start.
    resident_bytes : int [bytes]
        That those touch together.
    """

    l2_hit_rate: float
    touched_bytes: int
    resident: int
    resident_bytes: int


def look_at(scorer: Scorer, order: np.ndarray, score: Score, xcd: int) -> OneXcd:
    """Look at one XCD of an order that has a score.

    Parameters
    ----------
    scorer : Scorer
    order : (num_pids,) int array
    score : Score
        Of the same order.
    xcd : int
        One that the GPU has.
    """
    mine = np.flatnonzero(xcd_of(order.size, scorer.gpu, scorer.kernel.programs) == xcd)
    resident = mine[: scorer.gpu.cus_per_xcd * scorer.occupancy]
    return OneXcd(
        l2_hit_rate=score.per_xcd_l2_hit_rate[xcd],
        touched_bytes=touched_bytes(scorer.trace, order[mine], scorer.gpu),
        resident=resident.size,
        resident_bytes=touched_bytes(scorer.trace, order[resident], scorer.gpu),
    )
