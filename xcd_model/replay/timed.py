"""The timed replay: workgroups issue when their loads have come back, so they drift apart, as on hardware.

    slot s can issue instruction k of its workgroup at   max(now, done[k - in_flight], room among the CU's reads)
    its data arrives at                                  `xcd_model.replay.memory_path`
    its compute is done at   done[k] = max(arrive[k], CU free) + compute_fs * (1 + the workgroup's speed variation)

An event is "a slot can issue its next tensor instruction" or "a CU can compute". Events are taken in order of time; of
those at one time CUs go first, then the workgroup with the lowest hardware id, the oldest, then the slot, then the XCD.
An instruction's lines go to the L2 back to back. A workgroup has at most ``in_flight`` instructions between issue and
the end of their compute. A CU computes for one workgroup at a time, the one whose data was there first, then the
oldest; it does not wait for a load while another's data is there. Workgroups compute at speeds that differ a little,
drawn for each with the seed of the issue model. `xcd_model.replay.service_times` says why loads and stores compute.

All times are whole femtoseconds: the same inputs give the same bytes on every machine.
"""

from __future__ import annotations

import numpy as np

from xcd_model.dispatch import _next_work, check_order
from xcd_model.errors import ReplayError
from xcd_model.numba_setup import njit, uncounted
from xcd_model.replay.event_queue import _drop, _put
from xcd_model.replay.launches import Caches, cold_caches
from xcd_model.replay.lockstep import MAX_BINS
from xcd_model.replay.memory_path import ACTIVATION, TimedInputs, _issue_at, timed_state
from xcd_model.replay.plan import Plan
from xcd_model.replay.read_queue import _room_at
from xcd_model.replay.service_times import VARIATION_UNIT, IssueModel, ServiceTimes, service_times_of
from xcd_model.replay.through_l2 import flush_all
from xcd_model.replay.traffic import (
    COLUMNS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_MISSES,
    WRITE_REQUESTS,
    Tally,
    Traffic,
    traffic_of,
)
from xcd_model.splitmix import _mix

SPAN_COLUMNS = 5  # of ``spans``: begin, end, slot, L2 requests, L2 misses


@njit(inline="always")
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


@njit(inline="always")
def _compute(issue, tile):
    """Compute time of one instruction of a workgroup [fs]."""
    if issue.speed_variation == 0:
        return np.int64(issue.compute_fs)
    draw = _mix(_mix(issue.seed) ^ np.uint64(tile)) % np.uint64(2 * issue.speed_variation + 1)
    return issue.compute_fs + issue.compute_fs // VARIATION_UNIT * (np.int64(draw) - issue.speed_variation)


@njit(inline="always")
def _computed(inputs, state, slot, unit, done):
    """Note when the next instruction of a slot's workgroup is done."""
    position = state.computed[slot]
    state.ring[slot, position % inputs.issue.in_flight] = done
    state.computed[slot] = position + 1
    state.cu[unit] = done


@njit(inline="always")
def _issue(inputs, state, slot, now, tally):
    """Issue the next instruction of a slot; return the latest time it made."""
    stream, machine, issue, events = inputs.stream, inputs.machine, inputs.issue, state.events
    xcd, place = slot % machine.xcds, slot // machine.xcds
    unit = xcd * machine.cus + place % machine.cus
    running = state.slots.running[xcd, place]
    instruction = running[0]
    is_write = stream.is_write[stream.template[instruction]]
    if state.reads.limit and not is_write:
        room_at = _room_at(state.reads, unit, now)
        if room_at > now:
            _put(events, slot, room_at)
            return np.int64(0)
    arrive, l2_end = _issue_at(inputs, state, xcd, unit, instruction, now, tally)
    position = state.issued[slot]
    tile = inputs.order[state.slots.pid[xcd, place]]
    if issue.jitter_fs and not is_write:
        draw = _mix(_mix(_mix(issue.seed) ^ np.uint64(tile)) ^ np.uint64(position))
        arrive += np.int64(draw % np.uint64(issue.jitter_fs + 1))
    state.arrive[slot, position % issue.in_flight] = arrive
    state.issued[slot] = position + 1
    running[0] = instruction + 1
    if machine.slots == machine.cus:  # one workgroup a CU: no other one to wait for
        done = max(arrive, state.cu[unit]) + _compute(issue, tile)
        _computed(inputs, state, slot, unit, done)
        ended = running[0] == running[1]
        _put(events, slot, done if ended else max(now, state.ring[slot, (position + 1) % issue.in_flight]))
        return max(done, l2_end)
    can = max(arrive, state.cu[unit])
    cu = machine.xcds * machine.slots + unit
    if events.place[cu] < 0 or events.time[events.place[cu]] > can:
        _put(events, cu, can)
    if running[0] < running[1] and position + 1 - issue.in_flight < state.computed[slot]:
        _put(events, slot, max(now, state.ring[slot, (position + 1) % issue.in_flight]))
    else:
        _drop(events, slot)
    return l2_end


@njit(inline="always")
def _compute_next(inputs, state, unit, now):
    """Let a CU compute for the workgroup whose data came first; return when that is done."""
    machine, issue, events = inputs.machine, inputs.issue, state.events
    xcd, cu = unit // machine.cus, unit % machine.cus
    who = machine.xcds * machine.slots + unit
    chosen, first = np.int64(-1), np.int64(0)
    for place in range(cu, machine.slots, machine.cus):
        slot = place * machine.xcds + xcd
        if state.issued[slot] > state.computed[slot]:
            arrive = state.arrive[slot, state.computed[slot] % issue.in_flight]
            if chosen < 0 or (arrive, events.age[slot]) < (first, events.age[chosen]):
                chosen, first = slot, arrive
    if chosen < 0:
        _drop(events, who)
        return np.int64(0)
    if first > now:
        _put(events, who, first)
        return np.int64(0)
    place = chosen // machine.xcds
    done = now + _compute(issue, inputs.order[state.slots.pid[xcd, place]])
    _computed(inputs, state, chosen, unit, done)
    _put(events, who, done)
    running = state.slots.running[xcd, place]
    ended = running[0] == running[1] and state.computed[chosen] == state.issued[chosen]
    waited = running[0] < running[1] and state.issued[chosen] - state.computed[chosen] == issue.in_flight - 1
    if ended or waited:
        _put(events, chosen, done)
    return done


@njit(inline="always")
def _start(inputs, state, slot, now):
    """Give an empty slot its next workgroup; return when that begins, or -1 if there is none."""
    start, machine, order, slots = inputs.stream.start, inputs.machine, inputs.order, state.slots
    xcd, place = slot % machine.xcds, slot // machine.xcds
    before = slots.program[xcd, place]
    pid = _next_work(start, machine, order, slots.pid[xcd, place], slots, xcd, place)
    if pid < 0:
        return np.int64(-1)
    if before >= 0 and slots.program[xcd, place] != before:  # else a persistent program goes on with its next tile
        now += inputs.times.workgroup_gap
    slots.pid[xcd, place] = pid
    state.events.age[slot] = pid
    state.issued[slot] = state.computed[slot] = 0
    slots.running[xcd, place, 0] = start[order[pid]]
    slots.running[xcd, place, 1] = start[order[pid] + 1]
    for i in range(state.ring.shape[1]):
        state.ring[slot, i] = now
    return np.int64(now)


@njit(inline="always")
def _note(spans, state, machine, slot, column, now):
    """Note in ``spans``, unless it is empty, when the workgroup of a slot begins (column 0) or ends (1)."""
    pid = state.slots.pid[slot % machine.xcds, slot // machine.xcds]
    if spans.shape[0] and pid >= 0:
        spans[pid, column], spans[pid, 2] = now, slot
        if column == 0:
            spans[pid, 3] = spans[pid, 4] = 0


@njit(inline="always")
def _count_span(spans, pid, counts, sign):
    """Add or take away (``sign``) what an XCD has counted in a bin, to or from its workgroup's requests and misses."""
    if spans.shape[0]:
        spans[pid, 3] += sign * (counts[READ_REQUESTS] + counts[WRITE_REQUESTS])
        spans[pid, 4] += sign * (counts[READ_MISSES] + counts[WRITE_MISSES])


@uncounted()
def _timed(inputs, state, timeline, totals, bin_fs, spans):
    """Replay the whole grid; fill ``timeline``, return (time of the kernel, time a bin, last bin). Checks nothing."""
    machine, events = inputs.machine, state.events
    slots = machine.xcds * machine.slots
    latest = at = np.int64(0)
    while events.size[0]:
        now, who = events.time[0], np.int64(events.who[0])
        if who >= slots:
            latest = max(latest, _compute_next(inputs, state, who - slots, now))
            continue
        xcd = who % machine.xcds
        running = state.slots.running[xcd, who // machine.xcds]
        if running[0] == running[1]:
            _note(spans, state, machine, who, 1, now)
            begins = _start(inputs, state, who, now)
            if begins < 0:
                _drop(events, who)
                continue
            _note(spans, state, machine, who, 0, begins)
            if begins > now:
                _put(events, who, begins)
                continue
        at, bin_fs = _bin_at(timeline, now, bin_fs)
        tally = Tally(timeline[at, xcd], totals[:, xcd])
        pid = state.slots.pid[xcd, who // machine.xcds]
        _count_span(spans, pid, tally.counts, -1)  # what the instruction adds is its workgroup's
        latest = max(latest, _issue(inputs, state, who, now, tally))
        _count_span(spans, pid, tally.counts, 1)
    return latest, bin_fs, at


def _check_times(plan: Plan, times: ServiceTimes, issue: IssueModel) -> None:
    """Refuse an issue model that makes no sense, or times that might leave 64 bits, were all to run one by one."""
    issue.check()
    touches = plan.trace.n_touches * (8 + int(plan.trace.wave_requests.max()))
    latencies = sum(times[times._fields.index("l1_latency") :])  # once an instruction; the others once a request
    served, once = sum(times) - latencies, latencies + 2 * issue.compute_fs + issue.jitter_fs
    slowest = touches * served + plan.trace.n_instructions * once
    if slowest >= 2**63:
        raise ReplayError(f"worst-case simulated time {slowest} fs overflows int64; reduce the problem size")


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
        ``order[w]`` is the workgroup of the trace that hardware workgroup ``w`` computes: a permutation.
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
    order = check_order(order, plan.n_workgroups)
    if workgroups_per_cu < 1 or bin_fs < 1:
        raise ReplayError(
            f"workgroups_per_cu = {workgroups_per_cu}, bin_fs = {bin_fs} out of range; both must be at least 1"
        )
    times = service_times_of(plan.gpu)
    _check_times(plan, times, issue)
    machine = plan.machine._replace(slots=plan.gpu.cus_per_xcd * workgroups_per_cu)
    caches = cold_caches(plan) if caches is None else caches
    caches.begin(plan)
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
        flushed=flushed,
        remote_hits=int(state.scratch.remote_hits[0]),
        hits_under_miss=int(state.scratch.hits_under_miss[0]),
        bin_fs=int(bin_fs),
        cu_finish=state.cu.reshape(machine.xcds, machine.cus),
    )
