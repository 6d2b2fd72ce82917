"""The timed replay: workgroups issue when their loads have come back, so they drift apart, as on hardware.

    slot s can issue instruction k of its workgroup at   max(now, done[k - in_flight], room among the CU's reads)
    its data arrives at                                  `xcd_model.replay.memory_path`
    its compute is done at   done[k] = max(arrive[k], CU free) + compute_fs * (1 + the workgroup's speed variation)

An event is "a slot can issue its next tensor instruction" or "a CU can compute". Events are taken in order of time; of
those at one time CUs go first, then the workgroup with the lowest hardware id, the oldest, then the slot, then the XCD.
What a CU computes touches nothing beyond it: after each event its CU computes on until one of its slots can issue.
An instruction's lines go to the L2 back to back. A workgroup has at most ``in_flight`` instructions between issue and
the end of their compute. A CU computes for one workgroup at a time, the one whose data was there first, then the
oldest; it does not wait for a load while another's data is there. Workgroups compute at speeds that differ a little,
drawn for each with the seed of the issue model. `xcd_model.replay.service_times` says why loads and stores compute.

All times are whole femtoseconds: the same inputs give the same bytes on every machine.
"""

from __future__ import annotations

import numpy as np

from xcd_model.compiled.numba_inline import inlined
from xcd_model.compiled.numba_setup import uncounted
from xcd_model.errors import ReplayError
from xcd_model.nvidia.coalescer import read_time
from xcd_model.nvidia.in_step import fill_time
from xcd_model.replay.event_queue import NEVER, SLOT_BITS, _first
from xcd_model.replay.launches import Caches, cold_caches
from xcd_model.replay.lockstep import MAX_BINS
from xcd_model.replay.memory_path import ACTIVATION, TimedInputs, timed_state
from xcd_model.replay.plan import Plan
from xcd_model.replay.service_times import IssueModel, ServiceTimes, service_times_of
from xcd_model.replay.slot_events import _can_issue, _compute, _issue, _note, _start, _start_cluster
from xcd_model.replay.through_l2 import flush_all
from xcd_model.replay.traffic import COLUMNS, Tally, Traffic, traffic_of

SPAN_COLUMNS = 5  # of ``spans``: begin, end, slot, L2 requests, L2 misses


@inlined
def _bin_at(timeline, now, bin_fs):
    """Bin of a time and the length of a bin, after merging pairs of bins until the time fits."""
    bins, xcds, columns = timeline.shape
    while now // bin_fs >= bins:
        for i in range(bins):
            for xcd in range(xcds):
                for column in range(columns):
                    merged = timeline[2 * i, xcd, column] + timeline[2 * i + 1, xcd, column] if 2 * i < bins else 0
                    timeline[i, xcd, column] = merged
        bin_fs *= 2
    return now // bin_fs, bin_fs


@uncounted()
def _timed(inputs, state, timeline, totals, bin_fs, spans):
    """Replay the whole grid; fill ``timeline``, return (time of the kernel, time a bin, last bin). Checks nothing."""
    machine, events = inputs.machine, state.events
    latest = at = np.int64(0)
    while True:
        now, rank = _first(events)
        if now == NEVER:
            return latest, bin_fs, at
        who = rank & ((1 << SLOT_BITS) - 1)
        if who == rank:
            latest = max(latest, _compute(inputs, state, who, now))
            continue
        xcd = who % machine.xcds
        running = state.slots.running[xcd, who // machine.xcds]
        if running[0] == running[1]:
            _note(spans, state, machine, who, 1, now)
            if machine.cluster > 1:
                _start_cluster(inputs, state, who, now, spans)
                continue
            begins = _start(inputs, state, who, now)
            if begins < NEVER:
                _note(spans, state, machine, who, 0, begins)
            if begins > now:
                latest = max(latest, _can_issue(inputs, state, who, now, begins))
                continue
        at, bin_fs = _bin_at(timeline, now, bin_fs)
        tally = Tally(timeline[at, xcd], totals[:, xcd])
        latest = max(latest, _issue(inputs, state, who, now, tally, spans))


def _check_times(plan: Plan, times: ServiceTimes, issue: IssueModel) -> None:
    """Refuse an issue model that makes no sense, or times that might leave 64 bits, were all to run one by one."""
    issue.check()
    touches = plan.trace.n_touches * (8 + int(plan.trace.wave_requests.max()))
    latencies = sum(times[times._fields.index("l1_latency") :])  # once an instruction; the others once a request
    served, once = sum(times) - latencies, latencies + 2 * issue.compute_fs + issue.jitter_fs
    once += issue.remap_fs + issue.remap_wait_fs
    once += int(plan.stream.passes.max()) * times.l1
    slowest = touches * served + plan.trace.n_instructions * once
    if slowest >= 2**63:
        raise ReplayError(f"worst-case simulated time {slowest} fs overflows int64; reduce the problem size")


def _times_of(plan: Plan, order: np.ndarray, workgroups_per_cu: int) -> ServiceTimes:
    """Times under one order, where several CUs ask for the same: one takes in less, and the L2 is asked once."""
    times, machine, gpu = service_times_of(plan.gpu), plan.machine, plan.gpu
    slots = machine.xcds * machine.cus * workgroups_per_cu
    at_once: dict[str, int] = {"running": min(slots, machine.programs or slots), "cus": machine.cus}
    fill, read, sides = times.cu_fill, times.l2_read, gpu.l2_partitions
    if fill:
        l2_lines = gpu.l2.size_bytes // gpu.l2.line_bytes
        fill = fill_time(plan.trace, order, **at_once, l2_lines=l2_lines, alone=fill, of_l2=read)
    if sides and sides.reads_as_one:
        at_once |= {"xcds": machine.xcds, "request_bytes": gpu.l2.read_request_bytes}
        read = read_time(plan.trace, order, partitions=sides, **at_once, alone=read)
    return times._replace(cu_fill=fill, l2_read=read)


def replay_timed(
    plan: Plan,
    order: np.ndarray,
    *,
    workgroups_per_cu: int,
    issue: IssueModel,
    bin_fs: int = 1_000_000_000,
    caches: Caches | None = None,
    spans: np.ndarray | None = None,
) -> Traffic:
    """Replay a trace under one order of workgroups, letting them drift.

    Parameters
    ----------
    plan : Plan
        A trace made ready for a GPU, see `prepare`; shared by all orders.
    order : (n_workgroups,) int array
        ``order[w]`` is the workgroup of the trace that hardware workgroup ``w`` computes: a permutation; of clusters,
        where the plan has them, also by cluster.
    workgroups_per_cu : int
        Occupancy, at least 1.
    issue : IssueModel
        Compute time of an instruction, instructions in flight, speed variation, jitter and seed.
    bin_fs : int [fs]
        Length of a bin of the timeline; doubled until the kernel's time fits.
    caches : Caches, optional
        Left by an earlier launch, and left for the next; cold where not given.
    spans : (n_workgroups, 5) int64 array [fs, fs, slot, requests, requests], optional
        Output: when each hardware workgroup begins and ends; its slot ``s``: on XCD ``s % xcds``, in place
        ``s // xcds`` of it, of CU ``place % cus_per_xcd``; its requests to the L2 and those that missed. Rows of
        workgroups that touch nothing stay as they are.

    Returns
    -------
    Traffic
        With ``time_fs``, when the last workgroup is done and what it drove out of the L2s is written; the flush of
        dirty lines at the end is counted, not timed.

    Raises
    ------
    ReplayError
        If ``order`` is no permutation of the trace's workgroups, or occupancy, issue model or bin make no sense.

    Notes
    -----
    Fills of one instruction arrive together. So cache sets of one class (see `xcd_model.fast.symmetry`) stay alike, and
    counts and times by symmetry equal those of the plain replay.
    """
    order = plan.order_of_workgroups(order)
    if workgroups_per_cu < 1 or bin_fs < 1:
        raise ReplayError(
            f"workgroups_per_cu = {workgroups_per_cu}, bin_fs = {bin_fs} out of range; both must be at least 1"
        )
    times = _times_of(plan, order, workgroups_per_cu)
    _check_times(plan, times, issue)
    caches = cold_caches(plan) if caches is None else caches
    machine = caches.begin(plan, workgroups_per_cu=workgroups_per_cu)
    timeline = np.zeros((MAX_BINS, machine.xcds, len(COLUMNS)), np.int64)
    totals = np.zeros((len(plan.trace.tensors), machine.xcds, len(COLUMNS)), np.int64)
    inputs = TimedInputs(plan.stream, machine, order, times, issue)
    state = timed_state(plan, machine, issue.in_flight, caches)
    spans = np.zeros((0, SPAN_COLUMNS), np.int64) if spans is None else spans
    time_fs, bin_fs, last = _timed(inputs, state, timeline, totals, bin_fs, spans)
    flushed = flush_all(plan, caches.l2, timeline, last, totals)
    return traffic_of(
        plan,
        timeline[: last + 1].copy(),
        totals,
        turns_per_bin=0,
        turns=0,
        time_fs=max(int(time_fs), int(state.free.max()), int(state.shared[:ACTIVATION].max())),
        activation_fs=int(state.shared[ACTIVATION]),
        l2_read_fs=times.l2_read,
        flushed=flushed,
        remote_hits=int(state.scratch.remote_hits[0]),
        hits_under_miss=int(state.scratch.hits_under_miss[0]),
        bin_fs=int(bin_fs),
        cu_finish=state.cu.reshape(machine.xcds, machine.cus),
    )
