"""The timed replay: workgroups issue when their loads have come back, so they drift apart, as on hardware.

An event is "a slot can issue its next tensor instruction" or "a CU can compute". Events are taken in order of time; of
those at one time CUs go first, then the workgroup with the lowest hardware id, the oldest, then the slot, then the XCD.
An instruction's lines go to the L2 back to back; its misses share one trip through fabric, Infinity Cache and HBM,
each a queue that serves in order of arrival. A read of a line in flight is a hit that waits for it. A workgroup has
at most ``in_flight`` instructions between issue and the end of their compute. A CU computes for one workgroup at a
time, the one whose data was there first, then the oldest; it does not wait for a load while another's data is there.
A load waits for room among the reads that its CU has under way (`xcd_model.replay.read_queue`). Workgroups compute at
speeds that differ a little, drawn for each with the seed of the pace.

All times are whole femtoseconds: the same inputs give the same bytes on every machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xcd_model.dispatch.round_robin import _next_work, check_order
from xcd_model.errors import ReplayError
from xcd_model.numba_setup import uncounted
from xcd_model.replay.event_queue import _drop, _put
from xcd_model.replay.launches import Caches, cold_caches
from xcd_model.replay.lockstep import MAX_BINS
from xcd_model.replay.lockstep_loop import flush_all
from xcd_model.replay.memory_path import Clockwork, _issue_at, clockwork_of
from xcd_model.replay.plan import Plan
from xcd_model.replay.read_queue import _room_at
from xcd_model.replay.service_times import SPREAD_UNIT, Pace, Rates, rates_of
from xcd_model.replay.traffic import COLUMNS, Traffic
from xcd_model.splitmix import _mix


@njit(inline="always")
def _bin_at(timeline, now, bin_fs):
    """Bin of a time and the length of a bin, after merging pairs of bins as often as the time asks for."""
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
def _compute(pace, tile):
    """Compute time of one instruction of a workgroup [fs]."""
    if pace.spread == 0:
        return np.int64(pace.compute_fs)
    draw = _mix(_mix(pace.seed) ^ np.uint64(tile)) % np.uint64(2 * pace.spread + 1)
    return pace.compute_fs + pace.compute_fs // SPREAD_UNIT * (np.int64(draw) - pace.spread)


@njit(inline="always")
def _computed(pace, clockwork, slot, unit, done):
    """Note when the next instruction of a slot's workgroup is done."""
    position = clockwork.computed[slot]
    clockwork.ring[slot, position % pace.in_flight] = done
    clockwork.computed[slot] = position + 1
    clockwork.cu[unit] = done


@njit(inline="always")
def _issue(stream, machine, rates, pace, clockwork, order, slot, now, counts, totals):
    """Issue the next instruction of a slot; return the latest time it made."""
    agenda = clockwork.agenda
    xcd, place = slot % machine.xcds, slot // machine.xcds
    unit = xcd * machine.cus + place % machine.cus
    running = clockwork.slots.running[xcd, place]
    instruction = running[0]
    is_write = stream.is_write[stream.template[instruction]]
    if clockwork.reads.limit and not is_write:
        room_at = _room_at(clockwork.reads, unit, now)
        if room_at > now:
            _put(agenda, slot, room_at)
            return np.int64(0)
    arrive, l2_end = _issue_at(stream, machine, rates, clockwork, xcd, unit, instruction, now, counts, totals[:, xcd])
    position = clockwork.issued[slot]
    tile = order[clockwork.slots.pid[xcd, place]]
    if pace.jitter_fs and not is_write:
        draw = _mix(_mix(_mix(pace.seed) ^ np.uint64(tile)) ^ np.uint64(position))
        arrive += np.int64(draw % np.uint64(pace.jitter_fs + 1))
    clockwork.arrive[slot, position % pace.in_flight] = arrive
    clockwork.issued[slot] = position + 1
    running[0] = instruction + 1
    if machine.slots == machine.cus:  # alone on its CU: nobody else's turn to wait for
        done = max(arrive, clockwork.cu[unit]) + _compute(pace, tile)
        _computed(pace, clockwork, slot, unit, done)
        ended = running[0] == running[1]
        _put(agenda, slot, done if ended else max(now, clockwork.ring[slot, (position + 1) % pace.in_flight]))
        return max(done, l2_end)
    can = max(arrive, clockwork.cu[unit])
    cu = machine.xcds * machine.slots + unit
    if agenda.place[cu] < 0 or agenda.time[agenda.place[cu]] > can:
        _put(agenda, cu, can)
    if running[0] < running[1] and position + 1 - pace.in_flight < clockwork.computed[slot]:
        _put(agenda, slot, max(now, clockwork.ring[slot, (position + 1) % pace.in_flight]))
    else:
        _drop(agenda, slot)
    return l2_end


@njit(inline="always")
def _compute_next(machine, pace, clockwork, order, unit, now):
    """Let a CU compute for the workgroup whose data came first; return when that is done."""
    agenda = clockwork.agenda
    xcd, cu = unit // machine.cus, unit % machine.cus
    who = machine.xcds * machine.slots + unit
    chosen, first = np.int64(-1), np.int64(0)
    for place in range(cu, machine.slots, machine.cus):
        slot = place * machine.xcds + xcd
        if clockwork.issued[slot] > clockwork.computed[slot]:
            arrive = clockwork.arrive[slot, clockwork.computed[slot] % pace.in_flight]
            if chosen < 0 or (arrive, agenda.age[slot]) < (first, agenda.age[chosen]):
                chosen, first = slot, arrive
    if chosen < 0:
        _drop(agenda, who)
        return np.int64(0)
    if first > now:
        _put(agenda, who, first)
        return np.int64(0)
    place = chosen // machine.xcds
    done = now + _compute(pace, order[clockwork.slots.pid[xcd, place]])
    _computed(pace, clockwork, chosen, unit, done)
    _put(agenda, who, done)
    running = clockwork.slots.running[xcd, place]
    ended = running[0] == running[1] and clockwork.computed[chosen] == clockwork.issued[chosen]
    waited = running[0] < running[1] and clockwork.issued[chosen] - clockwork.computed[chosen] == pace.in_flight - 1
    if ended or waited:
        _put(agenda, chosen, done)
    return done


@njit(inline="always")
def _start(stream, machine, rates, clockwork, order, slot, now):
    """Give an empty slot its next workgroup; return when that begins, or -1 if there is none."""
    xcd, place, slots = slot % machine.xcds, slot // machine.xcds, clockwork.slots
    before = slots.pid[xcd, place]
    pid = _next_work(stream.start, machine, order, before, slots.waiting, xcd)
    if pid < 0:
        return np.int64(-1)
    goes_on = machine.programs and (pid - before) % machine.programs == 0  # a persistent program's next tile
    if before >= 0 and not goes_on:
        now += rates.workgroup_gap
    slots.pid[xcd, place] = pid
    clockwork.agenda.age[slot] = pid
    clockwork.issued[slot] = clockwork.computed[slot] = 0
    slots.running[xcd, place, 0] = stream.start[order[pid]]
    slots.running[xcd, place, 1] = stream.start[order[pid] + 1]
    for i in range(clockwork.ring.shape[1]):
        clockwork.ring[slot, i] = now
    return np.int64(now)


@uncounted()
def _timed(stream, machine, rates, pace, order, clockwork: Clockwork, timeline, totals, bin_fs):
    """Replay the whole grid; fill ``timeline``, return (time of the kernel, time a bin, last bin). Checks nothing."""
    agenda, slots = clockwork.agenda, machine.xcds * machine.slots
    latest = np.int64(0)
    at = np.int64(0)
    while agenda.size[0]:
        now, who = agenda.time[0], np.int64(agenda.who[0])
        if who >= slots:
            latest = max(latest, _compute_next(machine, pace, clockwork, order, who - slots, now))
            continue
        running = clockwork.slots.running[who % machine.xcds, who // machine.xcds]
        if running[0] == running[1]:
            begins = _start(stream, machine, rates, clockwork, order, who, now)
            if begins < 0:
                _drop(agenda, who)
                continue
            if begins > now:
                _put(agenda, who, begins)
                continue
        at, bin_fs = _bin_at(timeline, now, bin_fs)
        counts = timeline[at, who % machine.xcds]
        made = _issue(stream, machine, rates, pace, clockwork, order, who, now, counts, totals)
        latest = max(latest, made)
    return latest, bin_fs, at


def _check_pace(plan: Plan, rates: Rates, pace: Pace) -> None:
    """Refuse a pace that makes no sense, or times that might leave 64 bits, were all to run one after the other."""
    pace.check()
    touches = plan.trace.n_touches * (8 + int(plan.trace.wave_requests.max()))
    latencies = sum(rates[rates._fields.index("l1_latency") :])  # once an instruction; the others once a request
    served, once = sum(rates) - latencies, latencies + 2 * pace.compute_fs + pace.jitter_fs
    slowest = touches * served + plan.trace.n_instructions * once
    if slowest >= 2**63:
        raise ReplayError(
            f"one after the other the instructions take up to {slowest} fs, over 64 bits: a smaller problem"
        )


def replay_timed(
    plan: Plan,
    order: np.ndarray,
    *,
    workgroups_per_cu: int,
    pace: Pace,
    bin_fs: int = 1_000_000_000,
    caches: Caches | None = None,
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
    pace : Pace
        How fast the kernel computes, how far it loads ahead, and the jitter.
    bin_fs : int [fs]
        Length of a bin of the timeline; doubled as often as the kernel's time asks for.
    caches : Caches, optional
        Left by an earlier launch, and left for the next; cold where not given.

    Returns
    -------
    Traffic
        With ``time_fs``, when the last workgroup is done and what it drove out of the L2s is written; the flush of
        dirty lines at the end is counted, not timed.

    Raises
    ------
    ReplayError
        If ``order`` is no permutation of the trace's workgroups, or occupancy, pace or bin make no sense.

    Notes
    -----
    Fills of one instruction arrive together. So cache sets of one class (see `xcd_model.fast.symmetry`) stay alike, and
    counts and times by symmetry equal those of the plain replay.
    """
    order = check_order(order, plan.n_workgroups)
    if workgroups_per_cu < 1 or bin_fs < 1:
        raise ReplayError(f"workgroups_per_cu = {workgroups_per_cu}, bin_fs = {bin_fs}: both are at least 1")
    rates: Rates = rates_of(plan.gpu)
    _check_pace(plan, rates, pace)
    machine = plan.machine._replace(slots=plan.gpu.cus_per_xcd * workgroups_per_cu)
    caches = cold_caches(plan) if caches is None else caches
    caches.begin(plan)
    timeline = np.zeros((MAX_BINS, machine.xcds, len(COLUMNS)), np.int64)
    totals = np.zeros((len(plan.trace.tensors), machine.xcds, len(COLUMNS)), np.int64)
    clockwork = clockwork_of(plan, machine, pace.in_flight, caches)
    time_fs, bin_fs, last = _timed(plan.stream, machine, rates, pace, order, clockwork, timeline, totals, bin_fs)
    flushed = flush_all(plan.stream, machine, caches.l2, timeline, last, totals)
    return Traffic(
        timeline=timeline[: last + 1].copy(),
        turns_per_bin=0,
        turns=0,
        fetch_bytes=plan.gpu.l2.fetch_bytes,
        write_request_bytes=plan.gpu.l2.write_request_bytes,
        simulated_fraction=plan.simulated_fraction,
        time_fs=max(int(time_fs), int(clockwork.free.max()), int(clockwork.shared[:2].max())),
        opening_fs=int(clockwork.shared[2]),
        flushed=flushed,
        far_hits=int(clockwork.scratch.far[0]),
        late_hits=int(clockwork.scratch.late[0]),
        bin_fs=int(bin_fs),
        by_tensor=totals,
        tensors=tuple(t.name for t in plan.trace.tensors),
    )
