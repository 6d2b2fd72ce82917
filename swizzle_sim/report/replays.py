"""Input of a run's pictures: launch order and best swizzle, replayed once more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from xcd_model import Time, Traffic
from xcd_model.analysis.sampled_misses import misses_of_workgroups, sampled_touches
from xcd_model.analysis.schedule import Schedule, schedule_of
from xcd_model.analysis.stack_distance import MAX_DEPTH, CapacityCurve, capacity_curve
from xcd_model.errors import SpecError

MOST_TOUCHES = 2 * 10**8  # line touches of a capacity curve: some seconds


@dataclass(frozen=True, eq=False)
class Replayed:
    """One order of a run's kernel.

    Parameters
    ----------
    order : (n_workgroups,) int64
    traffic : Traffic
    time : Time
    schedule : Schedule
        In lockstep, whatever the run's replay; without its instructions, which fill memory.
    misses : (n_workgroups,) float [lines]
        Estimated, see `xcd_model.analysis.sampled_misses`.
    curve : CapacityCurve or None
        In lockstep, cold; None where it takes too long, or the L2 has two sides.
    """

    order: np.ndarray = field(repr=False)
    traffic: Traffic
    time: Time
    schedule: Schedule
    misses: np.ndarray = field(repr=False)
    curve: CapacityCurve | None


def replay_pair(scorer: Scorer, order: np.ndarray) -> tuple[Replayed, Replayed]:
    """Replay a kernel in launch order and under another.

    Parameters
    ----------
    scorer : Scorer
    order : (n_workgroups,) int64

    Returns
    -------
    before, after : Replayed
        The same one if the order is that of the launch.
    """
    launched, _ = np.arange(order.size), scorer.plan
    if np.array_equal(order, launched):
        found = _replayed(scorer, launched)
        return found, found
    with ThreadPoolExecutor(2) as pool:  # compiled replays hold no lock
        before, after = pool.map(lambda one: _replayed(scorer, one), (launched, order))
    return before, after


def _replayed(scorer: Scorer, order: np.ndarray) -> Replayed:
    traffic = scorer.traffic(order)
    schedule = schedule_of(scorer.plan, order, workgroups_per_cu=scorer.occupancy)
    misses = misses_of_workgroups(scorer.plan, schedule, sampled_touches(scorer.plan, schedule))
    curve = _curve(scorer, order)
    return Replayed(order, traffic, scorer.time(traffic), schedule.without_instructions(), misses, curve)


def _curve(scorer: Scorer, order: np.ndarray) -> CapacityCurve | None:
    """Hit rates with the GPU's own sets, and with four times as many; None where that is not known."""
    sets, ways = scorer.gpu.l2.sets, scorer.gpu.l2.ways
    if scorer.plan.trace.n_touches > MOST_TOUCHES or ways > MAX_DEPTH or scorer.gpu.l2_partitions:
        return None
    for wanted in ([sets, 4 * sets], [sets]):
        try:
            return capacity_curve(scorer.plan, order, workgroups_per_cu=scorer.occupancy, sets=wanted, depth=ways)
        except SpecError:  # an index that takes no such number of sets
            continue
    return None
