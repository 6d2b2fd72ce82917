r"""The lockstep replay: dispatch, trace and caches put together, with no time.

    turn t:  for every XCD:  for slot 0, 1, 2, ...:  issue the next tensor instruction of the slot's workgroup
                             instruction -> L1 -> L2 -> (queue, merged over XCDs) -> Infinity Cache

It is the fast bound: real workgroups drift apart and lose each other's lines, so lockstep overestimates hit rates of
poor mappings. Compare mappings by the timed replay.

There is one queue of missed reads an XCD, merged in the order of issue:

    XCD 0:  (turn 0, slot 0) (turn 0, slot 2)      ...  \
    XCD 1:           (turn 0, slot 1)              ...   }->  merged by (turn, slot), then XCD  ->  one look-up each
    XCD 2:  (turn 0, slot 0)      (turn 1, slot 0) ...  /

XCDs share nothing before the Infinity Cache, so each is replayed by itself for a window of turns, on any thread, while
the misses of the window before are merged: in the order in which XCDs running side by side would have sent them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from xcd_model.cache.locate import HIT, _locate_all
from xcd_model.cache.packed import Inputs, Machine
from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import inlined
from xcd_model.compiled.numba_setup import uncounted
from xcd_model.dispatch import Slots, _next_instruction, _unit_of, slots_in_step
from xcd_model.errors import ReplayError
from xcd_model.replay.plan import Caches, Plan, cold_caches
from xcd_model.replay.through_l1 import CHUNK, L1, _enter_l1, _gather, empty_l1, scratch_of
from xcd_model.replay.through_l2 import (
    _access,
    _count_instruction,
    _count_misses,
    _look_up,
    _miss,
    _touch_bit,
    flush_all,
)
from xcd_model.replay.traffic import COLUMNS, MALL_HITS, MALL_REQUESTS, MAX_BINS, Tally, Traffic, _count
from xcd_model.speed import _prefetch, _touch_whole

NEVER = 2**62  # a place after all others
QUEUE_LINES = 1 << 18  # wanted length of a queue: its part that is used stays in the host's caches


class Window(NamedTuple):
    """Turns that every XCD runs for before their missed reads are merged."""

    first_turn: int
    turns: int
    turns_per_bin: int


@by_reference
class Queue(NamedTuple):
    """Missed reads of one window, for each XCD.

    ``line, weight`` (n_xcds, capacity); an instruction's are ``end[i - 1] .. end[i] - 1``, with its ``place``
    (turn * slots + slot, within the window) and ``tensor``, each (n_xcds, n_instructions); ``size`` (n_xcds,) of these.
    ``at, begin`` (n_xcds,): how far the merge is, in instructions and in lines.
    """

    line: np.ndarray
    weight: np.ndarray
    end: np.ndarray
    place: np.ndarray
    tensor: np.ndarray
    size: np.ndarray
    at: np.ndarray
    begin: np.ndarray


def window_turns(slots: int, most_lines: int) -> int:
    """Turns of a window in which every slot issues the largest instruction, for a queue of about `QUEUE_LINES`."""
    return int(np.clip(QUEUE_LINES // (slots * most_lines), 1, 4096))


def queue_of(machine: Machine, turns: int, most_lines: int) -> Queue:
    """Empty queues for windows of ``turns``; of no length where there is no Infinity Cache."""
    issues = machine.slots * turns if machine.mall.n_sets else 0
    return Queue(
        line=np.empty((machine.xcds, issues * most_lines), np.int64),
        weight=np.empty((machine.xcds, issues * most_lines), np.int32),
        end=np.empty((machine.xcds, issues), np.int64),
        place=np.empty((machine.xcds, issues), np.int64),
        tensor=np.empty((machine.xcds, issues), np.int32),
        size=np.zeros(machine.xcds, np.int64),
        at=np.zeros(machine.xcds, np.int64),
        begin=np.zeros(machine.xcds, np.int64),
    )


@by_reference
class LockstepState(NamedTuple):
    """What changes during a lockstep replay."""

    slots: Slots
    l1: L1
    l2: np.ndarray  # (n_xcds, words) uint32: see `xcd_model.replay.plan.l2_words`
    queue: Queue
    timeline: np.ndarray  # (n_bins, n_xcds, n_columns) int64
    totals: np.ndarray  # (n_tensors, n_xcds, n_columns) int64
    finish: np.ndarray  # (n_xcds, cus_per_xcd) int64 [turns]: after the last instruction of each CU


@inlined
def _through_l2(inputs, state, scratch, xcd, access, n, queued, tally):
    """Send ``n`` gathered lines to an L2; return the length of the XCD's queue of missed reads."""
    stream, machine = inputs.stream, inputs.machine
    queued_line, queued_weight = state.queue.line[xcd], state.queue.weight[xcd]
    n_missed, _, _ = _look_up(n, state.l2[xcd], None, inputs, access, scratch, None, np.int64(0))
    queues = machine.mall.n_sets and not access.is_write
    misses = np.int64(0)
    for entry in range(n_missed):
        i, weight, fetched, _, _ = _miss(stream, machine, scratch, entry, tally)
        misses += fetched
        if queues:
            queued_line[queued] = scratch.line[i]
            queued_weight[queued] = weight
            queued += 1
    _count_misses(tally, access, misses, np.int64(0), False)  # the Infinity Cache comes later
    return queued


@inlined
def _issue_in_turn(inputs, state, scratch, xcd, unit, instruction, queued, tally):
    """Send one instruction to the L1 ``unit`` and the L2; return the length of the queue of missed reads."""
    stream, machine = inputs.stream, inputs.machine
    passage = _enter_l1(stream, machine, state.l1, unit, instruction)
    access = _access(stream, machine, unit, instruction)
    requests, l1_hits = passage.requests, passage.l1_hits
    for start in range(passage.begin, passage.end, CHUNK):
        n, more, missed, _ = _gather(stream, machine, state.l1, passage, start, scratch)
        requests += more
        l1_hits -= missed
        queued = _through_l2(inputs, state, scratch, xcd, access, n, queued, tally)
    _count_instruction(tally, access, requests, passage.l1_requests, l1_hits)
    return queued


@uncounted()
def _advance(inputs, state, scratch, xcd, window):
    """Let one XCD run for a window of turns, or until its work is done; return the turn after the last that issued."""
    stream, machine, queue = inputs.stream, inputs.machine, state.queue
    by_tensor = state.totals[:, xcd]
    queued, segments = np.int64(0), np.int64(0)
    turn, idle = np.int64(window.first_turn), False
    while turn < window.first_turn + window.turns and not idle:
        tally = Tally(state.timeline[turn // window.turns_per_bin, xcd], by_tensor)
        idle = True
        for slot in range(machine.slots):
            at = _next_instruction(stream.start, machine, inputs.order, state.slots, xcd, slot)
            if at < 0:
                continue
            idle = False
            before, unit = queued, _unit_of(xcd, slot, machine.cus)
            queued = _issue_in_turn(inputs, state, scratch, xcd, unit, at, queued, tally)
            state.finish[xcd, slot % machine.cus] = turn + 1
            if queued > before:
                queue.end[xcd, segments] = queued
                queue.place[xcd, segments] = (turn - window.first_turn) * machine.slots + slot
                queue.tensor[xcd, segments] = stream.tensor[stream.template[at]]
                segments += 1
        turn += 1 - np.int64(idle)
    queue.size[xcd] = segments
    return turn


@inlined
def _fetch(machine, mall, line, weight, first, end, scratch):
    """Look lines ``first .. end - 1`` of a queue up in the Infinity Cache; return (requests, hits)."""
    requests = hits = 0
    row, word, ways = scratch.row, scratch.word, machine.mall_ways
    if machine.mall_has_room:
        for i in range(np.uint64(first), np.uint64(end)):
            pieces = np.int64(weight[i])
            requests += pieces
            hits += pieces * _touch_bit(mall, line[i])
        return requests, hits
    for start in range(first, end, CHUNK):
        n = min(CHUNK, end - start)
        _locate_all(line[start:end], n, machine.mall, scratch.cache_set, row, word)
        for i in range(np.uint64(n)):
            _prefetch(mall, np.int64(row[i]) * ways)
        for i in range(np.uint64(n)):
            found = _touch_whole(mall, None, np.int64(row[i]) * ways, ways, np.int64(word[i]), 0)
            pieces = np.int64(weight[start + i])
            requests += pieces
            hits += pieces * np.int64(found == HIT)
    return requests, hits


@uncounted()
def _merge(machine, queue, mall, window, timeline, totals, scratch):
    """Send a window's missed reads to the Infinity Cache, in order of place, then XCD; empties the queues."""
    n_xcds, size, at, begin = queue.size.size, queue.size, queue.at, queue.begin
    for xcd in range(n_xcds):
        at[xcd] = begin[xcd] = 0
    place = np.int64(0)
    while place < NEVER:
        place = NEVER
        for xcd in range(n_xcds):
            if at[xcd] < size[xcd]:
                place = min(place, queue.place[xcd, at[xcd]])
        if place == NEVER:
            continue
        where = (window.first_turn + place // machine.slots) // window.turns_per_bin
        for xcd in range(n_xcds):
            i = at[xcd]
            if i == size[xcd] or queue.place[xcd, i] != place:
                continue
            end, tensor = queue.end[xcd, i], queue.tensor[xcd, i]
            requests, hits = _fetch(machine, mall, queue.line[xcd], queue.weight[xcd], begin[xcd], end, scratch)
            tally = Tally(timeline[where, xcd], totals[:, xcd])
            _count(tally, tensor, MALL_REQUESTS, requests)
            _count(tally, tensor, MALL_HITS, hits)
            begin[xcd], at[xcd] = end, i + 1
    for xcd in range(n_xcds):
        size[xcd] = 0


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
    order = plan.order_of_workgroups(order)
    if workgroups_per_cu < 1 or threads < 1:
        raise ReplayError(
            f"workgroups_per_cu = {workgroups_per_cu}, threads = {threads} out of range; both must be at least 1"
        )
    caches = cold_caches(plan) if caches is None else caches
    machine = caches.begin(plan, workgroups_per_cu=workgroups_per_cu)
    inputs = Inputs(plan.stream, machine, order)
    if threads == 1:
        return _replay(plan, inputs, caches, map)
    with ThreadPoolExecutor(threads) as pool:

        def deal(do: Callable[[int], int], parts: Iterable[int]) -> Iterable[int]:
            left = iter(parts)  # a job a thread, which takes the next part: a job a part would cost a tenth of the time
            return pool.map(lambda _: max((do(part) for part in left), default=0), range(threads))

        return _replay(plan, inputs, caches, deal)


def _state_of(plan: Plan, inputs: Inputs, l2: np.ndarray, window: int, n_bins: int) -> LockstepState:
    """Empty slots, L1s and queues, and nothing counted."""
    machine, most_lines = inputs.machine, int(np.diff(inputs.stream.rel_start).max())
    return LockstepState(
        slots=slots_in_step(inputs.stream.start, machine, inputs.order, inputs.stream.multicast),
        l1=empty_l1(machine),
        l2=l2,
        queue=queue_of(machine, window, most_lines),
        timeline=np.zeros((n_bins, machine.xcds, len(COLUMNS)), np.int64),
        totals=np.zeros((len(plan.trace.tensors), machine.xcds, len(COLUMNS)), np.int64),
        finish=np.zeros((machine.xcds, machine.cus), np.int64),
    )


def _replay(plan: Plan, inputs: Inputs, caches: Caches, run: Callable[..., Iterable[int]]) -> Traffic:
    """Replay window by window; ``run(do, xcds)`` maps a function over XCDs."""
    machine = inputs.machine
    most_lines = int(np.diff(inputs.stream.rel_start).max())
    window = Window(0, window_turns(machine.slots, most_lines), 1)
    state = _state_of(plan, inputs, caches.l2, window.turns, MAX_BINS)
    timeline, scratches = state.timeline, [scratch_of(machine) for _ in range(machine.xcds + 1)]
    full = queue_of(machine, window.turns, most_lines)  # of the window before, of which there is none

    def merge(full: Queue, window: Window) -> None:
        if machine.mall.n_sets:
            _merge(machine, full, caches.mall, window, timeline, state.totals, scratches[-1])

    while True:
        while (window.first_turn + window.turns - 1) // window.turns_per_bin >= MAX_BINS:
            timeline[: MAX_BINS // 2] = timeline[::2] + timeline[1::2]
            timeline[MAX_BINS // 2 :] = 0
            window = window._replace(turns_per_bin=2 * window.turns_per_bin)

        def step(xcd: int, state: LockstepState = state, full: Queue = full, window: Window = window) -> int:
            if xcd == machine.xcds:
                merge(full, window._replace(first_turn=window.first_turn - window.turns))
                return 0
            return _advance(inputs, state, scratches[xcd], xcd, window)

        turns = max(run(step, range(machine.xcds, -1, -1)))
        state, full = state._replace(queue=full), state.queue
        if turns < window.first_turn + window.turns:
            break
        window = window._replace(first_turn=window.first_turn + window.turns)
    merge(full, window)
    per_bin = window.turns_per_bin
    flushed = flush_all(plan, caches.l2, timeline, max(0, turns - 1) // per_bin, state.totals)
    return plan.traffic(
        timeline[: -(-turns // per_bin)].copy(),
        state.totals,
        turns_per_bin=per_bin,
        turns=turns,
        flushed=flushed,
        remote_hits=sum(int(one.remote_hits[0]) for one in scratches),
        cu_finish=state.finish,
    )


def replay_some_xcds(plan: Plan, order: np.ndarray, *, workgroups_per_cu: int, xcds: Sequence[int]) -> np.ndarray:
    """Counts of some XCDs up to their L2s, in lockstep and cold: XCDs share nothing before the Infinity Cache.

    ``order`` is a permutation of workgroups. Returns (n_columns,) int64, their sum, without write-backs of the flush.
    """
    machine = plan.machine._replace(
        slots=plan.gpu.cus_per_xcd * workgroups_per_cu, mall=plan.machine.mall._replace(n_sets=0)
    )
    inputs = Inputs(plan.stream, machine, plan.order_of_workgroups(order))
    state = _state_of(plan, inputs, cold_caches(plan).l2, 1, 1)
    turns = plan.trace.n_instructions + 1  # more than any XCD can have
    for xcd in xcds:
        _advance(inputs, state, scratch_of(machine), xcd, Window(0, turns, turns))
    return state.timeline[0].sum(axis=0)
