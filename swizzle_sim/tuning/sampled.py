"""`sampled_hit_rate`: the L2 hit rate of a few XCDs, a rung of the search between the bound and a whole replay.

XCDs share no L2, so a few of them can be replayed in lockstep without the others, and dispatch deals every order out to
all of them alike. What comes out is exact for those XCDs and an estimate for the GPU: it decides which candidates are
replayed, and never stands in a score.
"""

from __future__ import annotations

import numpy as np

from swizzle_sim.scoring import Scorer
from xcd_model.replay.lockstep import replay_some_xcds
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS

SAMPLED = 2  # XCDs


def sampled_xcds(n_xcds: int) -> tuple[int, ...]:
    """XCDs of the sample, spread evenly; all of them where there are no more than `SAMPLED`."""
    return tuple(dict.fromkeys(i * n_xcds // SAMPLED for i in range(SAMPLED)))


def sampled_hit_rate(scorer: Scorer, order: np.ndarray) -> float:
    """L2 hit rate of some XCDs in lockstep, with cold caches; fetches of code, the same for all orders, left out.

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
