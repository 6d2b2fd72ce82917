"""The timed replay: workgroups issue when their loads have come back, so they drift apart, as on hardware.

    slot s can issue instruction k of its workgroup, and its compute is done, at      `xcd_model.replay.events`
    its data arrives at                                                               `xcd_model.replay.memory_path`

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

from typing import NamedTuple

import numpy as np

from xcd_model.cache.packed import Machine, Stream, aligned_words
from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import inlined
from xcd_model.compiled.numba_setup import uncounted
from xcd_model.dispatch import Seats, Slots, seats_of, slots_of
from xcd_model.errors import ReplayError
from xcd_model.nvidia.memory import Hbm, idle_hbm
from xcd_model.nvidia.rates import times_under
from xcd_model.replay.events import (
    NEVER,
    SLOT_BITS,
    EventQueue,
    ReadQueue,
    _can_issue,
    _compute,
    _first,
    _issue,
    _note,
    _start,
    _start_cluster,
    event_queue_of,
    read_queue,
)
from xcd_model.replay.memory_path import ACTIVATION
from xcd_model.replay.plan import Caches, Plan, cold_caches
from xcd_model.replay.service_times import IssueModel, ServiceTimes, check_times, service_times_of
from xcd_model.replay.through_l1 import L1, Scratch, empty_l1, scratch_of
from xcd_model.replay.through_l2 import flush_all
from xcd_model.replay.traffic import COLUMNS, MAX_BINS, Tally, Traffic

SPAN_COLUMNS = 5  # of ``spans``: begin, end, slot, L2 requests, L2 misses


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
    """What changes during a timed replay; times are int64 [fs]."""

    # (n_xcds, `xcd_model.replay.plan.l2_words`): of the L2s: lines, and the instruction that sent each;
    # ``n_instructions`` marks what an earlier launch left
    words: np.ndarray
    filler: np.ndarray
    # (n_instructions + 1,): when an instruction's fills were in the L2; the last, 0, is that of an earlier launch
    arrival: np.ndarray
    mall: np.ndarray  # (words,) uint32
    l1: L1
    slots: Slots
    seats: Seats
    free: np.ndarray  # (n_xcds, 2): when L2 port and fabric are free
    shared: np.ndarray  # (3,): when Infinity Cache and HBM are free, and the time that row activations took so far
    hbm: Hbm  # what only an NVIDIA GPU's memory remembers
    # (n_xcds * cus,): when L1 port, arithmetic, the way in from the L2 and scalar unit of each CU are free
    port: np.ndarray
    cu: np.ndarray
    fill: np.ndarray
    scalar: np.ndarray
    # (n_slots, in_flight): of each slot: when its latest instructions were computed, and when their data was there
    ring: np.ndarray
    arrive: np.ndarray
    computed: np.ndarray  # (n_slots,): instructions of its workgroup so far
    issued: np.ndarray
    # (n_xcds * cus, slots a CU): when the data is there of the next instruction that a CU can compute for each of its
    # slots; `NEVER` for none
    there: np.ndarray
    events: EventQueue
    reads: ReadQueue
    scratch: Scratch


def timed_state(plan: Plan, machine: Machine, in_flight: int, caches: Caches) -> TimedState:
    """Everything idle, at time 0; the caches as they are."""
    seats = seats_of(machine.xcds, machine.cus, machine.slots // machine.cus)
    (n_cus, _), n_slots, n_instructions = seats.on.shape, seats.xcd.size, plan.trace.n_instructions
    slots, scratch = slots_of(machine, plan.stream.multicast), scratch_of(machine)
    l1 = empty_l1(machine, n_instructions=n_instructions)
    filler = aligned_words(caches.l2.size).view(np.int32).reshape(caches.l2.shape)
    filler[:] = n_instructions  # what an earlier launch left has arrived
    return TimedState(
        words=caches.l2,
        filler=filler,
        arrival=np.zeros(n_instructions + 1, np.int64),
        mall=caches.mall,
        l1=l1,
        slots=slots,
        seats=seats,
        free=np.zeros((machine.xcds, 2), np.int64),
        shared=np.zeros(3, np.int64),
        hbm=idle_hbm(plan.gpu.hbm_rows, plan.gpu.l2.line_bytes),
        port=np.zeros(n_cus, np.int64),
        cu=np.zeros(n_cus, np.int64),
        fill=np.zeros(n_cus, np.int64),
        scalar=np.zeros(n_cus, np.int64),
        ring=np.zeros((n_slots, in_flight), np.int64),
        arrive=np.zeros((n_slots, in_flight), np.int64),
        computed=np.zeros(n_slots, np.int64),
        issued=np.zeros(n_slots, np.int64),
        there=np.full(seats.on.shape, NEVER),
        events=event_queue_of(seats),
        reads=read_queue(plan.gpu.limits.reads_in_flight_per_cu, *seats.on.shape),
        scratch=scratch,
    )


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
        xcd = state.seats.xcd[who]
        running = state.slots.running[xcd, state.seats.place[who]]
        if running[0] == running[1]:
            _note(spans, state, who, 1, now)
            if machine.cluster > 1:
                _start_cluster(inputs, state, who, now, spans)
                continue
            begins = _start(inputs, state, who, now)
            if begins < NEVER:
                _note(spans, state, who, 0, begins)
            if begins > now:
                latest = max(latest, _can_issue(inputs, state, who, now, begins))
                continue
        at, bin_fs = _bin_at(timeline, now, bin_fs)
        tally = Tally(timeline[at, xcd], totals[:, xcd])
        latest = max(latest, _issue(inputs, state, who, now, tally, spans))


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
        Output: when each hardware workgroup begins and ends; its slot, which `xcd_model.dispatch.seat_of` places; its
        requests to the L2 and those that missed. Rows of workgroups that touch nothing stay as they are.

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
    slots = plan.gpu.xcds * plan.gpu.cus_per_xcd * workgroups_per_cu
    running = min(slots, plan.machine.programs or slots)
    times = times_under(service_times_of(plan.gpu), plan.trace, order, plan.gpu, running)
    check_times(times, issue, plan.trace, int(plan.stream.passes.max()))
    caches = cold_caches(plan) if caches is None else caches
    machine = caches.begin(plan, workgroups_per_cu=workgroups_per_cu)
    timeline = np.zeros((MAX_BINS, machine.xcds, len(COLUMNS)), np.int64)
    totals = np.zeros((len(plan.trace.tensors), machine.xcds, len(COLUMNS)), np.int64)
    inputs = TimedInputs(plan.stream, machine, order, times, issue)
    state = timed_state(plan, machine, issue.in_flight, caches)
    spans = np.zeros((0, SPAN_COLUMNS), np.int64) if spans is None else spans
    time_fs, bin_fs, last = _timed(inputs, state, timeline, totals, bin_fs, spans)
    flushed = flush_all(plan, caches.l2, timeline, last, totals)
    return plan.traffic(
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
