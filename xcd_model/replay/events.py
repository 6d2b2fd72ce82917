"""The events of a timed replay: the queue that says which is next, and what a slot or a CU does at each.

    _issue           a slot's next instruction, or that of all slots of its cluster where it is a multicast load
    _compute         a CU computes, each time for the workgroup whose data was there first
    _start           an empty slot takes up its next workgroup;  _start_cluster: all slots of a cluster do

Instruction k of a workgroup, of which ``in_flight`` are between issue and the end of their compute:

    issue[k] = max(now, done[k - in_flight], room among the CU's reads)
    done[k]  = max(arrive[k], CU free) + compute_fs * (1 + speed variation)
    ring, arrive:  done and arrive of the last ``in_flight`` instructions, k at place k mod in_flight

    pipelined loop, in_flight 6 in steps of 2:      step  0 0 | 1 1 | 2 2 | 3 3
      step 3 takes the places in flight of step 0. Its loads go out when the data of step 1 is there,
      or, ``after_products``, when all of step 0 is computed.

The last place of a cluster that ends takes up the next workgroups for all, and the last one that comes to a multicast
load sends the parts of all, in the order of their places; each goes on when all parts are there.

    a CU's events:      (time, rank) of each of its slots, in a row;    rank = (age + 1) << 24 | slot, age: hardware id
    in clusters also:   (time, CU) of when it can compute, before those of slots at that time
    a tournament:       node i has the first of nodes 2 i and 2 i + 1;  node CUS + c: the first event of CU c

                          1                 the first of all
                    2           3
                 4     5     6     7        ...  node CUS + c

What has no event has one at the time `NEVER`. The nodes above a CU are known without a look at any of them, and their
number is no variable: LLVM unrolls the way up and selects, where a loop would have branches that are mispredicted.

A CU has a limited number of L2 reads under way (its MSHRs):

    outstanding requests of a CU >= limit   ->   it issues no further load until the first load under way is back

While it is full, the loads that wait are still with their workgroups, and when there is room the oldest workgroup's
goes first, as the arbiter of a CU prefers the oldest wave. That keeps the workgroups that run at once from sharing
their caches evenly: a few advance, the others wait. Loads come back in the order of issue, as an L1 returns them. No
load can go out before the first one under way is back, so each load that fills a CU moves the times of its others there
(`_hold_back`); else they would be tried, to no effect, several times an instruction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import called, inlined
from xcd_model.compiled.splitmix import _mix
from xcd_model.dispatch import Seats, _next_work, _take_cluster
from xcd_model.errors import ReplayError
from xcd_model.replay.memory_path import _issue_at
from xcd_model.replay.service_times import VARIATION_UNIT
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS

SLOT_BITS = 24  # of a rank; above it an age of up to 2^39 - 2
NEVER = 2**63 - 1
LEVELS = 12  # of the tournament
CUS = 1 << LEVELS  # most that a GPU may have
ONE = np.uint64(1)


@by_reference
class EventQueue(NamedTuple):
    """Events of slots and CUs."""

    # (n_cus, slots a CU) int64 [fs]: when each slot of a CU can issue or take up a workgroup, and who is first of
    # events at one time. What is changed counts from `_settle` on.
    slot_time: np.ndarray
    slot_rank: np.ndarray
    computes: np.ndarray  # (n_cus,) int64 [fs]: when each CU can compute, of clusters; else `NEVER`
    time: np.ndarray  # first event by node; node 0 has none, node 1 the first of all
    rank: np.ndarray


def event_queue_of(seats: Seats) -> EventQueue:
    """Every slot at time 0, no CU; a ReplayError where a GPU has more than `CUS`."""
    (xcds, _), (n, slots_per_cu) = seats.at.shape, seats.on.shape
    if n > CUS:
        raise ReplayError(f"{xcds} XCDs of {n // xcds} CUs are {n} CUs: the timed replay takes at most {CUS}")
    slot_rank = (1 << SLOT_BITS) + seats.on
    nodes = np.full((2, 2 * CUS), NEVER)
    nodes[:, CUS : CUS + n] = np.stack([np.zeros(n, np.int64), slot_rank[:, 0]])
    for level in reversed(range(LEVELS)):  # all events are at 0, so the least rank is that of the first
        nodes[:, 1 << level : 2 << level] = nodes[:, 2 << level : 4 << level].reshape(2, -1, 2).min(axis=2)
    return EventQueue(np.zeros((n, slots_per_cu), np.int64), slot_rank, np.full(n, NEVER), *nodes)


@inlined
def _first(events):
    """(Time, rank) of the first event, `NEVER` if there is none."""
    return events.time[1], events.rank[1]


@inlined
def _first_of(time, rank, other_time, other_rank):
    """(Time, rank) of the first of two events."""
    other = (other_time < time) | ((other_time == time) & (other_rank < rank))
    return other_time if other else time, other_rank if other else rank


@called
def _settle(events, unit):
    """Let all know of the events of a CU."""
    times, ranks = events.slot_time[unit], events.slot_rank[unit]
    time = computes = events.computes[unit]
    for i in range(times.size):
        time = min(time, times[i])
    rank = np.int64(unit)
    if time < computes:
        rank = np.int64(NEVER)
        for i in range(times.size):
            rank = min(rank, ranks[i] if times[i] == time else np.int64(NEVER))
    times, ranks, at = events.time, events.rank, np.uint64(CUS + unit)
    times[at], ranks[at] = time, rank
    for _ in range(LEVELS):
        time, rank = _first_of(time, rank, times[at ^ ONE], ranks[at ^ ONE])
        at >>= ONE
        times[at], ranks[at] = time, rank


HEAD, ENTRIES, REQUESTS = range(3)  # of ``ReadQueue.state``


@by_reference
class ReadQueue(NamedTuple):
    """Reads under way from each CU, a ring of loads in the order they were issued."""

    limit: int  # requests at which a CU issues no further load; 0 for no bound
    # (n_xcds * cus, limit) int64 [fs]: when each load is back. Every load under way has a request at least, so a ring
    # of ``limit`` never fills.
    back: np.ndarray
    requests: np.ndarray  # (n_xcds * cus, limit) int64: requests of each load
    state: np.ndarray  # (n_xcds * cus, 3) int64: first load of the ring, number of loads, and their requests together
    loads: np.ndarray  # (n_xcds * cus, slots a CU) bool: whether the next that a slot issues is a load


def read_queue(limit: int | None, n_cus: int, slots_per_cu: int) -> ReadQueue:
    """Nothing under way, from any of ``n_cus`` CUs."""
    ring = (n_cus if limit else 0, limit or 0)
    return ReadQueue(
        limit or 0,
        np.zeros(ring, np.int64),
        np.zeros(ring, np.int64),
        np.zeros((n_cus, 3), np.int64),
        np.zeros((n_cus, slots_per_cu), np.bool_),
    )


@inlined
def _room_at(queue, unit, now):
    """When a CU can issue a load: ``now``, or the time at which the first load under way is back."""
    state = queue.state[unit]
    while state[ENTRIES] and queue.back[unit, state[HEAD]] <= now:
        state[REQUESTS] -= queue.requests[unit, state[HEAD]]
        state[HEAD] = (state[HEAD] + 1) % queue.limit
        state[ENTRIES] -= 1
    return now if state[REQUESTS] < queue.limit else queue.back[unit, state[HEAD]]


@inlined
def _enqueue(queue, unit, requests, back):
    """Add a load of so many requests that is under way until ``back``, or until those before it are back."""
    state = queue.state[unit]
    if state[ENTRIES]:
        back = max(back, queue.back[unit, (state[HEAD] + state[ENTRIES] - 1) % queue.limit])
    place = (state[HEAD] + state[ENTRIES]) % queue.limit
    queue.back[unit, place] = back
    queue.requests[unit, place] = requests
    state[ENTRIES] += 1
    state[REQUESTS] += requests


@inlined
def _full_until(queue, unit):
    """Before when a CU issues no load, as far as is known: 0 where it has room."""
    state = queue.state[unit]
    return queue.back[unit, state[HEAD]] if queue.limit and state[REQUESTS] >= queue.limit else np.int64(0)


@inlined
def _hold_back(queue, times, unit):
    """Let the loads that the slots of a CU are to issue, at ``times``, wait for room."""
    until, loads = _full_until(queue, unit), queue.loads[unit]
    for i in range(times.size):
        times[i] = max(times[i], until if loads[i] else np.int64(0))


@inlined
def _schedule(inputs, state, slot, time):
    """Let a slot issue at a time, `NEVER` for none, or when its CU has room for its load; return when."""
    stream, unit, row = inputs.stream, state.seats.unit[slot], state.seats.row[slot]
    running = state.slots.running[state.seats.xcd[slot], state.seats.place[slot]]
    is_load = running[0] < running[1] and not stream.is_write[stream.template[running[0]]]
    state.reads.loads[unit, row] = is_load
    at = max(time, _full_until(state.reads, unit)) if is_load else time
    state.events.slot_time[unit, row] = at
    return at


@inlined
def _compute_fs(issue, tile, position, last):
    """Compute time of one instruction of a workgroup [fs]: the last instruction of a step computes for all of it."""
    times = np.int64(1)
    if issue.step:
        times = position % issue.step + 1
        if times < issue.step and not last:
            return np.int64(0)
    if issue.speed_variation == 0:
        return times * issue.compute_fs
    # compute_fs * (1 + d),  d even on -variation .. variation: one draw for a tile, whichever id computes it
    draw = _mix(_mix(issue.seed) ^ np.uint64(tile)) % np.uint64(2 * issue.speed_variation + 1)
    return times * (issue.compute_fs + issue.compute_fs // VARIATION_UNIT * (np.int64(draw) - issue.speed_variation))


@inlined
def _computed(inputs, state, slot, unit, done):
    """Note when the next instruction of a slot's workgroup is done, and when the data of the one after it is there."""
    position, in_flight, row = state.computed[slot], inputs.issue.in_flight, state.seats.row[slot]
    state.ring[slot, position % in_flight] = done
    state.computed[slot] = position + 1
    state.cu[unit] = done
    left = state.issued[slot] > position + 1
    state.there[unit, row] = state.arrive[slot, (position + 1) % in_flight] if left else NEVER


@inlined
def _awaited(issue, position):
    """Instructions that a workgroup must have computed before it can issue number ``position``."""
    # its place in flight is that of number position - in_flight; after products that of a step is free as a whole
    return position - issue.in_flight + (issue.step if issue.after_products and position % issue.step == 0 else 1)


@inlined
def _next_at(inputs, state, slot, after):
    """Earliest time, from ``after`` on, at which a slot can issue its next instruction."""
    position, in_flight, step = state.issued[slot], inputs.issue.in_flight, inputs.issue.step
    awaited = _awaited(inputs.issue, position)
    at = max(after, state.ring[slot, (awaited + in_flight - 1) % in_flight])  # done[awaited - 1]
    if step and not inputs.issue.after_products and position % step == 0 and position >= in_flight - step:
        for i in range(step):  # arrive of the step after the one whose place in flight it takes
            at = max(at, state.arrive[slot, (position + step + i) % in_flight])
    return at + inputs.issue.step_fs if step and position % step == 0 else at


@called
def _compute(inputs, state, unit, now):
    """Let a CU compute, each time for the workgroup whose data came first; return when it is done.

    It computes until one of its slots can issue: until then it touches nothing beyond itself. In clusters a common
    fetch may bring data earlier, so there it computes until ``now``.
    """
    machine, issue, events, free = inputs.machine, inputs.issue, state.events, state.cu
    there, times, ranks = state.there[unit], events.slot_time[unit], events.slot_rank[unit]
    until, latest = np.int64(now), np.int64(0)
    if machine.cluster == 1:
        until = np.int64(NEVER)
        for i in range(times.size):
            until = min(until, times[i])
    while True:
        first, chosen = np.int64(NEVER), np.int64(-1)  # data that was there first, and whose: of equals the oldest's
        for i in range(there.size):
            first = min(first, there[i])
        begins = max(first, free[unit])
        if first == NEVER or begins > until:
            break
        for i in range(there.size):
            if there[i] == first:
                chosen = i if chosen < 0 or ranks[i] < ranks[chosen] else chosen
        slot = state.seats.on[unit, chosen]
        xcd, place = state.seats.xcd[slot], state.seats.place[slot]
        running, position = state.slots.running[xcd, place], state.computed[slot]
        ended = running[0] == running[1] and position + 1 == state.issued[slot]
        # done[k] = max(arrive[k], CU free) + compute
        latest = begins + _compute_fs(issue, inputs.order[state.slots.pid[xcd, place]], position, ended)
        _computed(inputs, state, slot, unit, latest)
        waited = running[0] < running[1] and _awaited(issue, state.issued[slot]) == state.computed[slot]
        if ended or waited:
            at = latest if ended else _next_at(inputs, state, slot, latest)
            until = min(until, _schedule(inputs, state, slot, at))
    if machine.cluster > 1:
        events.computes[unit] = begins if first < NEVER else NEVER
    _settle(events, unit)
    return latest


@inlined
def _can_issue(inputs, state, slot, now, time):
    """Let a slot issue at a time, `NEVER` for none, and its CU compute until then; return when it is done."""
    _schedule(inputs, state, slot, time)
    return _compute(inputs, state, state.seats.unit[slot], now)


@inlined
def _note(spans, state, slot, column, now):
    """Note in ``spans``, unless it is empty, when the workgroup of a slot begins (column 0) or ends (1)."""
    pid = state.slots.pid[state.seats.xcd[slot], state.seats.place[slot]]
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
    """Let a slot come to its cluster's multicast load; return when all CUs have room for it.

    -1 while another place of the cluster has not come to it.
    """
    machine, slots, seats = inputs.machine, state.slots, state.seats
    xcd, place = seats.xcd[slot], seats.place[slot]
    first, room_at = slots.first[place], np.int64(now)
    slots.met[xcd, place] = True
    for one in range(first, first + machine.cluster):
        if not slots.met[xcd, one]:
            return np.int64(-1)
        if state.reads.limit:
            room_at = max(room_at, _room_at(state.reads, seats.unit[seats.at[xcd, one]], now))
    if room_at == now:
        for one in range(first, first + machine.cluster):
            slots.met[xcd, one] = False
    return room_at


@inlined
def _send(inputs, state, slot, now, tally, spans):
    """Send a slot's next instruction, with its arrival in ``state.arrive``; return when the L2 port is done with it."""
    stream, issue = inputs.stream, inputs.issue
    xcd, place, unit = state.seats.xcd[slot], state.seats.place[slot], state.seats.unit[slot]
    instruction, pid = state.slots.running[xcd, place, 0], state.slots.pid[xcd, place]
    _count_span(spans, pid, tally.counts, -1)  # what the instruction adds is its workgroup's
    arrive, l2_end, reads = _issue_at(inputs, state, xcd, unit, instruction, now, tally)
    _count_span(spans, pid, tally.counts, 1)
    position, there = state.issued[slot], arrive
    is_load = not stream.is_write[stream.template[instruction]]
    if issue.step and is_load:
        arrive += inputs.times.copy
    if issue.jitter_fs and is_load:
        draw = _mix(_mix(_mix(issue.seed) ^ np.uint64(inputs.order[pid])) ^ np.uint64(position))
        arrive += np.int64(draw % np.uint64(issue.jitter_fs + 1))
    if reads and state.reads.limit:
        _enqueue(state.reads, unit, reads, there)
        _hold_back(state.reads, state.events.slot_time[unit], unit)
    state.arrive[slot, position % issue.in_flight] = arrive
    state.issued[slot] = position + 1
    state.slots.running[xcd, place, 0] = instruction + 1
    return l2_end


@inlined
def _go_on(inputs, state, slot, now, arrive):
    """Let a slot and its CU go on after it has sent an instruction whose data arrives at ``arrive``."""
    seats, position = state.seats, state.issued[slot]
    running = state.slots.running[seats.xcd[slot], seats.place[slot]]
    if state.computed[slot] == position - 1:
        state.there[seats.unit[slot], seats.row[slot]] = arrive
    more = running[0] < running[1] and _awaited(inputs.issue, position) <= state.computed[slot]
    return _can_issue(inputs, state, slot, now, _next_at(inputs, state, slot, now) if more else NEVER)


@inlined
def _issue(inputs, state, slot, now, tally, spans):
    """Issue the next instruction of a slot, or of all slots of its cluster; return the latest time it made."""
    stream, machine, seats = inputs.stream, inputs.machine, state.seats
    xcd, place = seats.xcd[slot], seats.place[slot]
    instruction = state.slots.running[xcd, place, 0]
    first, together = np.int64(place), np.int64(1)
    if state.reads.limit and not stream.is_write[stream.template[instruction]]:
        room_at = _room_at(state.reads, seats.unit[slot], now)
        if room_at > now:
            return _can_issue(inputs, state, slot, now, room_at)
    if machine.cluster > 1 and state.slots.multicast[instruction]:
        room_at = _together(inputs, state, slot, now)
        if room_at < 0:
            return _can_issue(inputs, state, slot, now, NEVER)
        if room_at > now:
            return _can_issue(inputs, state, slot, now, room_at)
        first, together = state.slots.first[place], np.int64(machine.cluster)
    latest = arrive = np.int64(0)  # the data of all is there when the last part is
    for one in range(first, first + together):
        who = seats.at[xcd, one]
        latest = max(latest, _send(inputs, state, who, now, tally, spans))
        arrive = max(arrive, state.arrive[who, (state.issued[who] - 1) % inputs.issue.in_flight])
    for one in range(first, first + together):
        who = seats.at[xcd, one]
        state.arrive[who, (state.issued[who] - 1) % inputs.issue.in_flight] = arrive
        latest = max(latest, _go_on(inputs, state, who, now, arrive))
    return latest


@called
def _start(inputs, state, slot, now):
    """Give an empty slot its next workgroup; return when that begins, `NEVER` if there is none."""
    start, machine, order, slots = inputs.stream.start, inputs.machine, inputs.order, state.slots
    xcd, place = state.seats.xcd[slot], state.seats.place[slot]
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
    unit = state.seats.unit[slot]
    if inputs.issue.remap_fs:  # the scalar unit serves one after the other; a wave waits for its own part besides
        state.scalar[unit] = max(now, state.scalar[unit]) + inputs.issue.remap_fs
        now = max(now + inputs.issue.remap_wait_fs, state.scalar[unit])
    state.events.slot_rank[unit, state.seats.row[slot]] = ((pid + 1) << SLOT_BITS) | slot
    state.issued[slot] = state.computed[slot] = 0
    for i in range(state.ring.shape[1]):
        state.ring[slot, i] = now
    return np.int64(now)


@called
def _start_cluster(inputs, state, slot, now, spans):
    """Let an empty slot wait for the others of its cluster; the last of them gives all their next workgroups."""
    machine, slots, start = inputs.machine, state.slots, inputs.stream.start
    seats = state.seats
    xcd, place = seats.xcd[slot], seats.place[slot]
    first = slots.first[place]
    _can_issue(inputs, state, slot, now, NEVER)
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
            who = seats.at[xcd, one]
            slots.met[xcd, one] = False
            begins = _begin(inputs, state, who, slots.pid[xcd, one], at)
            _note(spans, state, who, 0, begins)
            _can_issue(inputs, state, who, now, begins)
