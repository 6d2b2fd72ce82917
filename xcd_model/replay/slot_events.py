"""What an event of the timed replay does: a slot issues or begins a workgroup, a CU computes.

    _issue           a slot's next instruction, or that of all slots of its cluster where it is a multicast load
    _compute         a CU computes, each time for the workgroup whose data was there first
    _start           an empty slot takes up its next workgroup;  _start_cluster: all slots of a cluster do

Of a cluster the last place that ends takes up the next workgroups for all, and the last one that comes to a multicast
load sends the parts of all, in the order of their places; each goes on when all parts are there.
"""

from __future__ import annotations

import numpy as np

from xcd_model.cluster_dispatch import _first_place, _take_cluster
from xcd_model.compiled.numba_inline import called, inlined
from xcd_model.compiled.splitmix import _mix
from xcd_model.dispatch import _next_work
from xcd_model.replay.event_queue import NEVER, SLOT_BITS, _settle
from xcd_model.replay.memory_path import _issue_at
from xcd_model.replay.read_queue import _room_at
from xcd_model.replay.service_times import VARIATION_UNIT
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS


@inlined
def _compute_fs(issue, tile, position, last):
    """Compute time of one instruction of a workgroup [fs]: of a step's instructions the last computes for all."""
    times = np.int64(1)
    if issue.step:
        times = position % issue.step + 1
        if times < issue.step and not last:
            return np.int64(0)
    if issue.speed_variation == 0:
        return times * issue.compute_fs
    draw = _mix(_mix(issue.seed) ^ np.uint64(tile)) % np.uint64(2 * issue.speed_variation + 1)
    return times * (issue.compute_fs + issue.compute_fs // VARIATION_UNIT * (np.int64(draw) - issue.speed_variation))


@inlined
def _computed(inputs, state, slot, unit, done):
    """Note when the next instruction of a slot's workgroup is done, and when the data of the one after it is there."""
    machine, position, in_flight = inputs.machine, state.computed[slot], inputs.issue.in_flight
    state.ring[slot, position % in_flight] = done
    state.computed[slot] = position + 1
    state.cu[unit] = done
    left = state.issued[slot] > position + 1
    state.there[unit, slot // machine.xcds // machine.cus] = (
        state.arrive[slot, (position + 1) % in_flight] if left else NEVER
    )


@inlined
def _awaited(issue, position):
    """How many instructions must be computed before a workgroup issues one, less those that it has ahead."""
    return position - issue.in_flight + (issue.step if issue.after_products and position % issue.step == 0 else 1)


@inlined
def _next_at(inputs, state, slot, after):
    """When a slot can issue its next instruction: its place in flight is free, and a step's data before it is there."""
    position, in_flight, step = state.issued[slot], inputs.issue.in_flight, inputs.issue.step
    awaited = _awaited(inputs.issue, position)
    at = max(after, state.ring[slot, (awaited + in_flight - 1) % in_flight])
    if step and not inputs.issue.after_products and position % step == 0 and position >= in_flight - step:
        for i in range(step):
            at = max(at, state.arrive[slot, (position + step + i) % in_flight])
    return at + inputs.issue.step_fs if step and position % step == 0 else at


@called
def _compute(inputs, state, unit, now):
    """Let a CU compute, each time for the workgroup whose data came first; return when it is done.

    It goes on until one of its slots can issue. In clusters a common fetch may bring data before that: until ``now``.
    """
    machine, issue, events, free = inputs.machine, inputs.issue, state.events, state.cu
    there, times, ranks = state.there[unit], events.slot_time[unit], events.slot_rank[unit]
    xcd, cu, until, latest = unit // machine.cus, unit % machine.cus, np.int64(now), np.int64(0)
    if machine.cluster == 1:
        until = np.int64(NEVER)
        for i in range(times.size):
            until = min(until, times[i])
    while True:
        first, chosen = np.int64(NEVER), np.int64(-1)
        for i in range(there.size):
            first = min(first, there[i])
        begins = max(first, free[unit])
        if first == NEVER or begins > until:
            break
        for i in range(there.size):
            if there[i] == first:
                chosen = i if chosen < 0 or ranks[i] < ranks[chosen] else chosen
        place = chosen * machine.cus + cu
        slot = place * machine.xcds + xcd
        running, position = state.slots.running[xcd, place], state.computed[slot]
        ended = running[0] == running[1] and position + 1 == state.issued[slot]
        latest = begins + _compute_fs(issue, inputs.order[state.slots.pid[xcd, place]], position, ended)
        _computed(inputs, state, slot, unit, latest)
        waited = running[0] < running[1] and _awaited(issue, state.issued[slot]) == state.computed[slot]
        if ended or waited:
            times[chosen] = latest if ended else _next_at(inputs, state, slot, latest)
            until = min(until, times[chosen])
    if machine.cluster > 1:
        events.computes[unit] = begins if first < NEVER else NEVER
    _settle(events, unit)
    return latest


@inlined
def _can_issue(inputs, state, slot, now, time):
    """Let a slot issue at a time, `NEVER` for none, and its CU compute until then; return when it is done."""
    machine = inputs.machine
    unit = slot % machine.xcds * machine.cus + slot // machine.xcds % machine.cus
    state.events.slot_time[unit, slot // machine.xcds // machine.cus] = time
    return _compute(inputs, state, unit, now)


@inlined
def _note(spans, state, machine, slot, column, now):
    """Note in ``spans``, unless it is empty, when the workgroup of a slot begins (column 0) or ends (1)."""
    pid = state.slots.pid[slot % machine.xcds, slot // machine.xcds]
    if spans.shape[0] and pid >= 0:
        spans[pid, column], spans[pid, 2] = now, slot
        if column == 0:
            spans[pid, 3] = spans[pid, 4] = 0


@inlined
def _count_span(spans, pid, counts, sign):
    """Add or take away (``sign``) what an XCD has counted in a bin, to or from its workgroup's requests and misses."""
    if spans.shape[0]:
        spans[pid, 3] += sign * (counts[READ_REQUESTS] + counts[WRITE_REQUESTS])
        spans[pid, 4] += sign * (counts[READ_MISSES] + counts[WRITE_MISSES])


@called
def _together(inputs, state, slot, now):
    """Let a slot join its cluster's common fetch; return when all are there and have room, -1 while some are not."""
    machine, slots = inputs.machine, state.slots
    xcd, place = slot % machine.xcds, slot // machine.xcds
    first, room_at = _first_place(machine, place), np.int64(now)
    slots.met[xcd, place] = True
    for one in range(first, first + machine.cluster):
        if not slots.met[xcd, one]:
            return np.int64(-1)
        if state.reads.limit:
            room_at = max(room_at, _room_at(state.reads, xcd * machine.cus + one % machine.cus, now))
    if room_at == now:
        for one in range(first, first + machine.cluster):
            slots.met[xcd, one] = False
    return room_at


@inlined
def _send(inputs, state, slot, now, tally, spans):
    """Send a slot's next instruction, with its arrival in ``state.arrive``; return when the L2 port is done with it."""
    stream, machine, issue = inputs.stream, inputs.machine, inputs.issue
    xcd, place = slot % machine.xcds, slot // machine.xcds
    unit, instruction = xcd * machine.cus + place % machine.cus, state.slots.running[xcd, place, 0]
    pid = state.slots.pid[xcd, place]
    _count_span(spans, pid, tally.counts, -1)  # what the instruction adds is its workgroup's
    arrive, l2_end = _issue_at(inputs, state, xcd, unit, instruction, now, tally)
    _count_span(spans, pid, tally.counts, 1)
    position = state.issued[slot]
    is_load = not stream.is_write[stream.template[instruction]]
    if issue.step and is_load:
        arrive += inputs.times.copy
    if issue.jitter_fs and is_load:
        draw = _mix(_mix(_mix(issue.seed) ^ np.uint64(inputs.order[pid])) ^ np.uint64(position))
        arrive += np.int64(draw % np.uint64(issue.jitter_fs + 1))
    state.arrive[slot, position % issue.in_flight] = arrive
    state.issued[slot] = position + 1
    state.slots.running[xcd, place, 0] = instruction + 1
    return l2_end


@inlined
def _go_on(inputs, state, slot, now, arrive):
    """What a slot and its CU do next, when the data of the instruction that it has sent is there at ``arrive``."""
    machine, issue = inputs.machine, inputs.issue
    xcd, place = slot % machine.xcds, slot // machine.xcds
    unit, running, position = (
        xcd * machine.cus + place % machine.cus,
        state.slots.running[xcd, place],
        state.issued[slot],
    )
    if state.computed[slot] == position - 1:
        state.there[unit, place // machine.cus] = arrive
    more = running[0] < running[1] and _awaited(issue, position) <= state.computed[slot]
    return _can_issue(inputs, state, slot, now, _next_at(inputs, state, slot, now) if more else NEVER)


@inlined
def _issue(inputs, state, slot, now, tally, spans):
    """Issue the next instruction of a slot, or of all slots of its cluster; return the latest time it made."""
    stream, machine = inputs.stream, inputs.machine
    xcd, place = slot % machine.xcds, slot // machine.xcds
    instruction = state.slots.running[xcd, place, 0]
    first, together = np.int64(place), np.int64(1)
    if state.reads.limit and not stream.is_write[stream.template[instruction]]:
        room_at = _room_at(state.reads, xcd * machine.cus + place % machine.cus, now)
        if room_at > now:
            return _can_issue(inputs, state, slot, now, room_at)
    if machine.cluster > 1 and state.slots.multicast[instruction]:
        room_at = _together(inputs, state, slot, now)
        if room_at < 0:
            return _can_issue(inputs, state, slot, now, NEVER)
        if room_at > now:
            return _can_issue(inputs, state, slot, now, room_at)
        first, together = np.int64(_first_place(machine, place)), np.int64(machine.cluster)
    latest = arrive = np.int64(0)
    for one in range(first, first + together):
        who = one * machine.xcds + xcd
        latest = max(latest, _send(inputs, state, who, now, tally, spans))
        arrive = max(arrive, state.arrive[who, (state.issued[who] - 1) % inputs.issue.in_flight])
    for one in range(first, first + together):
        who = one * machine.xcds + xcd
        state.arrive[who, (state.issued[who] - 1) % inputs.issue.in_flight] = arrive
        latest = max(latest, _go_on(inputs, state, who, now, arrive))
    return latest


@called
def _start(inputs, state, slot, now):
    """Give an empty slot its next workgroup; return when that begins, `NEVER` if there is none."""
    start, machine, order, slots = inputs.stream.start, inputs.machine, inputs.order, state.slots
    xcd, place = slot % machine.xcds, slot // machine.xcds
    before = slots.program[xcd, place]
    pid = _next_work(start, machine, order, slots.pid[xcd, place], slots, xcd, place)
    if pid < 0:
        return np.int64(NEVER)
    if before >= 0 and slots.program[xcd, place] != before:  # else a persistent program goes on with its next tile
        now += inputs.times.workgroup_gap
    slots.pid[xcd, place] = pid
    slots.running[xcd, place, 0] = start[order[pid]]
    slots.running[xcd, place, 1] = start[order[pid] + 1]
    return _begin(inputs, state, slot, pid, now)


@inlined
def _begin(inputs, state, slot, pid, now):
    """Let a slot begin a workgroup with nothing issued; return when it does, behind its CU's other remaps."""
    machine = inputs.machine
    unit = slot % machine.xcds * machine.cus + slot // machine.xcds % machine.cus
    if inputs.issue.remap_fs:
        state.scalar[unit] = max(now, state.scalar[unit]) + inputs.issue.remap_fs
        now = max(now + inputs.issue.remap_wait_fs, state.scalar[unit])
    state.events.slot_rank[unit, slot // machine.xcds // machine.cus] = ((pid + 1) << SLOT_BITS) | slot
    state.issued[slot] = state.computed[slot] = 0
    for i in range(state.ring.shape[1]):
        state.ring[slot, i] = now
    return np.int64(now)


@called
def _start_cluster(inputs, state, slot, now, spans):
    """Let an empty slot wait for the others of its cluster; the last of them gives all their next workgroups."""
    machine, slots, start = inputs.machine, state.slots, inputs.stream.start
    xcd, place = slot % machine.xcds, slot // machine.xcds
    _can_issue(inputs, state, slot, now, NEVER)
    first = _first_place(machine, place)
    slots.met[xcd, place] = True
    if first < 0:
        return
    for one in range(first, first + machine.cluster):
        if not slots.met[xcd, one]:
            return
    at = now + (inputs.times.workgroup_gap if slots.program[xcd, first] >= 0 else 0)
    if not _take_cluster(start, machine, inputs.order, slots, xcd, first):
        return
    for one in range(first, first + machine.cluster):
        if slots.running[xcd, one, 0] < slots.running[xcd, one, 1]:
            who = one * machine.xcds + xcd
            slots.met[xcd, one] = False
            begins = _begin(inputs, state, who, slots.pid[xcd, one], at)
            _note(spans, state, machine, who, 0, begins)
            _can_issue(inputs, state, who, now, begins)
