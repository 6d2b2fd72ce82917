"""`sampled_hit_rate`: the L2 hit rate of a few XCDs, a rung of the search between the bound and a whole replay.

XCDs share no L2, so a few of them can be replayed in lockstep without the others, and dispatch deals every order out to
all of them alike. What comes out is exact for those XCDs and an estimate for the GPU: it decides which candidates are
replayed, and never stands in a score.
"""

from __future__ import annotations

import numpy as np

from swizzle_sim.scoring import Scorer
from xcd_model.cache.batch import scratch
from xcd_model.cache.l1 import empty_l1
from xcd_model.dispatch.round_robin import slots_of
from xcd_model.fast.lru_simd import aligned_words
from xcd_model.replay.infinity_cache import queue_of
from xcd_model.replay.launches import l2_words
from xcd_model.replay.lockstep_loop import _advance
from xcd_model.replay.traffic import COLUMNS, READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS

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
    plan = scorer.plan
    slots = scorer.gpu.cus_per_xcd * scorer.occupancy
    machine = plan.machine._replace(slots=slots, mall=plan.machine.mall._replace(n_sets=0))  # no queue behind the L2s
    running, l1, queue = slots_of(machine), empty_l1(machine), queue_of(machine, 1, 1)
    timeline = np.zeros((1, machine.xcds, len(COLUMNS)), np.int64)
    totals = np.zeros((len(plan.trace.tensors), machine.xcds, len(COLUMNS)), np.int64)
    turns = plan.trace.n_instructions + 1  # more than any XCD can have
    for xcd in sampled_xcds(machine.xcds):
        l2 = aligned_words(l2_words(machine))
        _advance(
            plan.stream, machine, order, running, l1, l2, xcd, 0, turns, turns, timeline, totals, queue,
            scratch(machine),
        )  # fmt: skip
    counts = timeline[0].sum(axis=0)
    requests = counts[READ_REQUESTS] + counts[WRITE_REQUESTS]
    return float(1 - (counts[READ_MISSES] + counts[WRITE_MISSES]) / requests) if requests else 1.0
