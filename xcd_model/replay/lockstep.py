"""Dispatch, trace and caches put together: the lockstep replay.

*Lockstep*: in each turn every resident workgroup issues one tensor instruction, slot by slot, the XCDs side by side.
It is the fast bound: real workgroups drift apart and lose each other's lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from xcd_model.cache.batch import scratch
from xcd_model.cache.l1 import empty_l1
from xcd_model.dispatch.round_robin import check_order, slots_of
from xcd_model.errors import ReplayError
from xcd_model.replay.infinity_cache import _merge, queue_of, window_turns
from xcd_model.replay.launches import Caches, cold_caches
from xcd_model.replay.lockstep_loop import _advance, flush_all
from xcd_model.replay.plan import Plan
from xcd_model.replay.traffic import COLUMNS, Traffic

MAX_BINS = 4096


def replay_lockstep(
    plan: Plan, order: np.ndarray, *, workgroups_per_cu: int, caches: Caches | None = None, threads: int = 1
) -> Traffic:
    """Replay a trace in lockstep under one order of workgroups.

    Parameters
    ----------
    plan : Plan
        A trace made ready for a GPU, see `prepare`; shared by all orders.
    order : (n_workgroups,) int array
        ``order[w]`` is the workgroup of the trace that hardware workgroup ``w`` computes: a permutation.
    workgroups_per_cu : int
        Occupancy, at least 1.
    caches : Caches, optional
        Left by an earlier launch, and left for the next; cold where not given.
    threads : int
        XCDs replayed at once; the counts are the same for any number.

    Returns
    -------
    Traffic

    Raises
    ------
    ReplayError
        If ``order`` is no permutation of the trace's workgroups, or the occupancy is below 1.
    """
    order = check_order(order, plan.n_workgroups)
    if workgroups_per_cu < 1 or threads < 1:
        raise ReplayError(
            f"workgroups_per_cu = {workgroups_per_cu}, threads = {threads}: at least one workgroup on a CU, one thread"
        )
    machine = plan.machine._replace(slots=plan.gpu.cus_per_xcd * workgroups_per_cu)
    caches = cold_caches(plan) if caches is None else caches
    caches.begin(plan)
    if threads == 1:
        return _replay(plan, machine, order, caches, map)
    with ThreadPoolExecutor(threads) as pool:
        return _replay(plan, machine, order, caches, pool.map)


def _replay(plan: Plan, machine, order: np.ndarray, caches: Caches, run: Callable[..., Iterable[int]]) -> Traffic:
    """Replay window by window; ``run(do, xcds)`` maps a function over XCDs."""
    most_lines = int(np.diff(plan.stream.rel_start).max())
    window = window_turns(machine.slots, most_lines)
    slots, l1, queue = slots_of(machine), empty_l1(machine), queue_of(machine, window, most_lines)
    scratches = [scratch(machine) for _ in range(machine.xcds)]
    timeline = np.zeros((MAX_BINS, machine.xcds, len(COLUMNS)), np.int64)
    totals = np.zeros((len(plan.trace.tensors), machine.xcds, len(COLUMNS)), np.int64)
    first, per_bin = 0, 1
    while True:
        while (first + window - 1) // per_bin >= MAX_BINS:
            timeline[: MAX_BINS // 2] = timeline[::2] + timeline[1::2]
            timeline[MAX_BINS // 2 :] = 0
            per_bin *= 2

        def advance(xcd: int, first: int = first, per_bin: int = per_bin) -> int:
            return _advance(
                plan.stream, machine, order, slots, l1, caches.l2[xcd], xcd, first, window, per_bin, timeline, totals,
                queue, scratches[xcd],
            )  # fmt: skip

        turns = max(run(advance, range(machine.xcds)))
        if machine.mall.n_sets:
            _merge(queue, machine, caches.mall, first, per_bin, timeline, totals, scratches[0])
        if turns < first + window:
            break
        first += window
    end = max(0, turns - 1) // per_bin
    flushed = flush_all(plan.stream, machine, caches.l2, timeline, end, totals)
    return Traffic(
        timeline=timeline[: -(-turns // per_bin)].copy(),
        turns_per_bin=per_bin,
        turns=turns,
        fetch_bytes=plan.gpu.l2.fetch_bytes,
        write_request_bytes=plan.gpu.l2.write_request_bytes,
        simulated_fraction=plan.simulated_fraction,
        flushed=flushed,
        far_hits=sum(int(one.far[0]) for one in scratches),
        by_tensor=totals,
        tensors=tuple(t.name for t in plan.trace.tensors),
    )
