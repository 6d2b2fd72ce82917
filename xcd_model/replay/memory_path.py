"""Path of one load or store through L1, L2, fabric, Infinity Cache and HBM; returns its completion time.

    L1 port ──► L2 port ──► fabric ──► Infinity Cache ──► HBM          each a queue served in order of arrival:
       │           │                         │             │
       ▼           ▼                         ▼             ▼           end = max(arrival, free) + requests * time each
     + L1 lat.   + L2 lat.                + MALL lat.   + HBM lat.     free = end

A load is complete when the last of its lines is at the CU; a line that another instruction fetches arrives when that
one's fill does (a hit under miss). Its fills and write-backs share one trip through the queues. Where a CU takes in so
much and no more, it asks no faster: the last latency begins when there is room for the last line. A store is complete
when the L2 has taken it. Only an NVIDIA GPU has the remote L2 partition, row activations and read-write turnaround
(`xcd_model.nvidia`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.cache.packed import Machine, Stream, aligned_words
from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import inlined
from xcd_model.dispatch import Slots, slots_of
from xcd_model.nvidia.hbm_rows import Rows, _activation, closed_rows
from xcd_model.nvidia.hbm_turnaround import _note_busy, _turnaround, idle_memory
from xcd_model.replay.event_queue import NEVER, EventQueue, event_queue_of
from xcd_model.replay.launches import Caches
from xcd_model.replay.plan import Plan
from xcd_model.replay.read_queue import ReadQueue, _enqueue, read_queue
from xcd_model.replay.service_times import IssueModel, ServiceTimes
from xcd_model.replay.through_l1 import CHUNK, L1, Scratch, _enter_l1, _gather, empty_l1, scratch_of
from xcd_model.replay.through_l2 import (
    TimedL2,
    _access,
    _count_instruction,
    _count_misses,
    _look_up_by,
    _mall_hits,
    _miss,
)
from xcd_model.replay.traffic import MALL_HITS, MALL_REQUESTS, WRITEBACKS, _count

MALL_FREE, HBM_FREE, ACTIVATION = range(3)


@by_reference
class TimedInputs(NamedTuple):
    """What a timed replay reads and never writes."""

    stream: Stream
    machine: Machine
    order: np.ndarray
    times: ServiceTimes
    issue: IssueModel


@by_reference
class TimedState(NamedTuple):
    """What changes during a timed replay; times are int64 [fs].

    Parameters
    ----------
    words, filler : (n_xcds, `xcd_model.replay.launches.l2_words`)
        Of the L2s: lines, and the instruction that sent each; ``n_instructions`` marks what an earlier launch left.
    arrival : (n_instructions + 1,)
        When an instruction's fills were in the L2; the last, 0, is that of an earlier launch.
    mall : (words,) uint32
    l1 : L1
    slots : Slots
    free : (n_xcds, 2)
        When L2 port and fabric are free.
    shared : (3,)
        When Infinity Cache and HBM are free, and the time that row activations took so far.
    rows : Rows
        Open rows of the HBM.
    recent : (5,)
        What the HBM served lately, see `xcd_model.nvidia.hbm_turnaround`.
    port, cu, fill, scalar : (n_xcds * cus,)
        When L1 port, arithmetic, the way in from the L2 and scalar unit of each CU are free.
    ring, arrive : (n_slots, in_flight)
        Of slot ``slot * n_xcds + xcd``: when its latest instructions were computed, and when their data was there.
    computed, issued : (n_slots,)
        Instructions of its workgroup so far.
    there : (n_xcds * cus, slots a CU)
        When the data is there of the next instruction that a CU can compute for each of its slots; `NEVER` for none.
    events : EventQueue
    reads : ReadQueue
    scratch : Scratch
    """

    words: np.ndarray
    filler: np.ndarray
    arrival: np.ndarray
    mall: np.ndarray
    l1: L1
    slots: Slots
    free: np.ndarray
    shared: np.ndarray
    rows: Rows
    recent: np.ndarray
    port: np.ndarray
    cu: np.ndarray
    fill: np.ndarray
    scalar: np.ndarray
    ring: np.ndarray
    arrive: np.ndarray
    computed: np.ndarray
    issued: np.ndarray
    there: np.ndarray
    events: EventQueue
    reads: ReadQueue
    scratch: Scratch


class Moved(NamedTuple):
    """What one instruction moves behind the L2: fills, those from HBM, write-backs; and its row activations [fs]."""

    fills: int
    from_hbm: int
    writebacks: int
    activation_fs: int


@inlined
def _through_l2_at(inputs, state, xcd, access, n, tally):
    """Send ``n`` gathered lines to an L2 and what misses to the Infinity Cache.

    Returns (latest arrival of a line that hit, the same of remote ones (-1: none), misses, how many of them the
    Infinity Cache had).
    """
    stream, machine, times, scratch = inputs.stream, inputs.machine, inputs.times, state.scratch
    l2 = TimedL2(state.words[xcd], state.filler[xcd])
    n_missed, wait, remote = _look_up_by(n, l2, machine, access, scratch, state.arrival, stream.set_weight)
    misses = hits = np.int64(0)
    for entry in range(n_missed):
        i, _, fetched, written, pieces = _miss(stream, machine, scratch, entry, tally)
        misses += fetched
        if state.rows.open.size:
            if pieces:
                service = pieces * times.hbm_write
                state.shared[ACTIVATION] += _activation(state.rows, written, service, times.hbm_row_write)
            if fetched and not access.is_write:
                service = fetched * times.hbm
                state.shared[ACTIVATION] += _activation(state.rows, scratch.line[i], service, times.hbm_row_read)
    if n_missed and machine.mall.n_sets and not access.is_write:
        hits = _mall_hits(machine, state.mall, scratch, n_missed, stream.set_weight)
        _count(tally, access.tensor, MALL_REQUESTS, misses)
        _count(tally, access.tensor, MALL_HITS, hits)
    _count_misses(tally, access, misses)
    return wait, remote, misses, hits


@inlined
def _travel(inputs, state, xcd, l2_end, sent, moved):
    """Queue an instruction's fills and write-backs behind the others; return when the last fill is there.

    ``l2_end`` is when the L2 has taken the instruction, ``sent`` when its last line was asked for.
    """
    machine, times = inputs.machine, inputs.times
    fills, from_hbm, writebacks = moved.fills, moved.from_hbm, moved.writebacks
    if fills == 0 and writebacks == 0:
        return l2_end
    mall_end = max(l2_end, state.free[xcd, 1]) + fills * times.fabric + writebacks * times.fabric_write
    state.free[xcd, 1] = mall_end
    if machine.mall.n_sets:
        mall_end = max(mall_end, state.shared[MALL_FREE]) + fills * times.mall + writebacks * times.mall_write
        state.shared[MALL_FREE] = mall_end
    there = l2_end
    if fills > from_hbm:
        there = max(mall_end, sent) + times.mall_latency
    if from_hbm or writebacks:
        written = writebacks * times.hbm_write
        hbm_end = max(mall_end, state.shared[HBM_FREE]) + from_hbm * times.hbm + written + moved.activation_fs
        state.shared[HBM_FREE] = hbm_end
        wait = np.int64(0)
        if times.turnaround:
            _note_busy(state.recent, hbm_end, from_hbm * times.hbm + written + moved.activation_fs, written)
            wait = _turnaround(state.recent, hbm_end, times.turnaround)
        if from_hbm:
            there = max(there, max(hbm_end, sent) + times.hbm_latency + wait)
    return there


@inlined
def _through_port(inputs, state, passage, now):
    """Take a load through the port of its L1; return (when it leaves, when the CU has what the L1 has)."""
    if passage.l1_requests == 0:
        return np.int64(now), passage.wait
    passes = inputs.stream.passes[inputs.stream.template[passage.instruction]]
    end = max(now, state.port[passage.unit]) + passes * inputs.times.l1
    state.port[passage.unit] = end
    return end, max(end + inputs.times.l1_latency, passage.wait)


@inlined
def _issue_at(inputs, state, xcd, unit, instruction, now, tally):
    """Issue one instruction; return (when its data is there, when the L2 port is free)."""
    stream, machine, times = inputs.stream, inputs.machine, inputs.times
    passage = _enter_l1(stream, machine, state.l1, unit, instruction)
    l1_end, wait = _through_port(inputs, state, passage, now)
    in_time = max(l1_end, state.free[xcd, 0]) + times.l2_latency
    access = _access(stream, machine, unit, instruction, in_time)
    requests, l1_hits = passage.requests, passage.l1_hits
    misses = mall_hits = l2_wait = np.int64(0)
    remote_wait = np.int64(-1)
    written, activated = tally.counts[WRITEBACKS], state.shared[ACTIVATION]
    for start in range(passage.begin, passage.end, CHUNK):
        n, more, missed, there = _gather(stream, machine, state.l1, passage, start, state.scratch)
        requests += more
        l1_hits -= missed
        latest, remote, fetched, found = _through_l2_at(inputs, state, xcd, access, n, tally)
        wait, l2_wait, remote_wait = max(wait, there), max(l2_wait, latest), max(remote_wait, remote)
        misses += fetched
        mall_hits += found
    _count_instruction(tally, access, requests, passage.l1_requests, l1_hits)
    l2_end = sent = l1_end
    if requests:
        service = requests * (times.l2_write if access.is_write else times.l2_read)
        l2_end = max(l1_end, state.free[xcd, 0]) + service
        state.free[xcd, 0] = l2_end
        sent = l2_end
        if times.cu_fill and not access.is_write:
            sent = max(l2_end, max(now, state.fill[unit]) + requests * times.cu_fill)
            state.fill[unit] = sent
        wait = max(wait, sent + times.l2_latency, l2_wait)
    fills = np.int64(0) if access.is_write else misses
    writebacks, activation_fs = tally.counts[WRITEBACKS] - written, state.shared[ACTIVATION] - activated
    there = _travel(inputs, state, xcd, l2_end, sent, Moved(fills, fills - mall_hits, writebacks, activation_fs))
    if access.is_write:  # nothing waits for a store
        return l2_end, l2_end
    wait = max(wait, there) if fills else wait
    if remote_wait >= 0:  # copies of what the remote partition had
        remote_wait = max(remote_wait, sent + times.l2_latency + times.l2_remote)
        wait, there = max(wait, remote_wait), max(there, remote_wait)
    state.arrival[instruction], state.l1.arrival[instruction] = there, wait
    if requests and state.reads.limit:
        _enqueue(state.reads, unit, requests, wait)
    return wait, l2_end


def timed_state(plan: Plan, machine: Machine, in_flight: int, caches: Caches) -> TimedState:
    """Everything idle, at time 0; the caches as they are."""
    n_slots, n_cus, n_instructions = machine.xcds * machine.slots, machine.xcds * machine.cus, plan.trace.n_instructions
    filler = aligned_words(caches.l2.size).view(np.int32).reshape(caches.l2.shape)
    filler[:] = n_instructions  # what an earlier launch left has arrived
    return TimedState(
        words=caches.l2,
        filler=filler,
        arrival=np.zeros(n_instructions + 1, np.int64),
        mall=caches.mall,
        l1=empty_l1(machine, n_instructions=n_instructions),
        slots=slots_of(machine, plan.stream.multicast),
        free=np.zeros((machine.xcds, 2), np.int64),
        shared=np.zeros(3, np.int64),
        rows=closed_rows(plan.gpu.hbm_rows, plan.gpu.l2.line_bytes),
        recent=idle_memory(),
        port=np.zeros(n_cus, np.int64),
        cu=np.zeros(n_cus, np.int64),
        fill=np.zeros(n_cus, np.int64),
        scalar=np.zeros(n_cus, np.int64),
        ring=np.zeros((n_slots, in_flight), np.int64),
        arrive=np.zeros((n_slots, in_flight), np.int64),
        computed=np.zeros(n_slots, np.int64),
        issued=np.zeros(n_slots, np.int64),
        there=np.full((n_cus, machine.slots // machine.cus), NEVER),
        events=event_queue_of(machine.xcds, machine.cus, machine.slots // machine.cus),
        reads=read_queue(plan.gpu.limits.reads_in_flight_per_cu, n_cus),
        scratch=scratch_of(machine),
    )
