"""Path of one load or store through L1, L2, fabric, Infinity Cache and HBM; returns its completion time.

    L1 port ──► L2 port ──► fabric ──► Infinity Cache ──► HBM          each a queue served in order of arrival:
       │           │                         │             │
       ▼           ▼                         ▼             ▼           end = max(arrival, free) + requests * time each
     + L1 lat.   + L2 lat.                + MALL lat.   + HBM lat.     free = end

A load is complete when the last of its lines is at the CU; a line that another instruction fetches arrives when that
one's fill does (a hit under miss). Its fills and write-backs share one trip through the queues. Where a CU takes in so
much and no more, it asks no faster: the last latency begins when there is room for the last line. A store is complete
when the L2 has taken it. Only an NVIDIA GPU has the remote L2 partition, row activations and read-write turnaround
(`xcd_model.nvidia.memory`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xcd_model.compiled.numba_inline import inlined
from xcd_model.nvidia.memory import _activated, _wait_among_writes
from xcd_model.replay.through_l1 import CHUNK, _enter_l1, _gather
from xcd_model.replay.through_l2 import _access, _count_instruction, _count_misses, _look_up, _mall_hits, _miss
from xcd_model.replay.traffic import WRITEBACKS

MALL_FREE, HBM_FREE, ACTIVATION = range(3)  # of ``state.shared``


class Moved(NamedTuple):
    """What one instruction moves behind the L2: fills, those from HBM, write-backs; and its row activations [fs]."""

    fills: int
    from_hbm: int
    writebacks: int
    activation_fs: int


@inlined
def _through_l2_at(inputs, state, xcd, access, n, in_time, tally):
    """Send ``n`` gathered lines to an L2 and what misses to the Infinity Cache.

    Returns (latest arrival of a line that hit, the same of remote ones (-1: none), misses, how many of them the
    Infinity Cache had).
    """
    stream, machine, times, scratch = inputs.stream, inputs.machine, inputs.times, state.scratch
    n_missed, wait, remote = _look_up(
        n, state.words[xcd], state.filler[xcd], inputs, access, scratch, state.arrival, in_time
    )
    misses = hits = np.int64(0)
    if n_missed and machine.mall.n_sets and not access.is_write:
        hits = _mall_hits(machine, state.mall, scratch, n_missed, stream.set_weight)
    for entry in range(n_missed):
        i, _, fetched, written, pieces = _miss(stream, machine, scratch, entry, tally)
        misses += fetched
        if state.hbm.open.size:
            read = np.int64(0) if access.is_write else fetched
            state.shared[ACTIVATION] += _activated(state.hbm, times, scratch.line[i], read, written, pieces)
    _count_misses(tally, access, misses, hits, machine.mall.n_sets)
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
    # fabric, Infinity Cache, HBM: end = max(arrival, free) + requests * time; fills and write-backs share the trip
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
            busy = from_hbm * times.hbm + written + moved.activation_fs
            wait = _wait_among_writes(state.hbm, hbm_end, busy, written, times.turnaround)
        if from_hbm:
            there = max(there, max(hbm_end, sent) + times.hbm_latency + wait)
    return there


@inlined
def _issue_at(inputs, state, xcd, unit, instruction, now, tally):
    """Issue one instruction; return (when its data is there, when the L2 port is free, its reads under way)."""
    stream, machine, times = inputs.stream, inputs.machine, inputs.times
    access = _access(stream, machine, unit, instruction)
    passage = _enter_l1(stream, machine, state.l1, unit, instruction)
    l1_end, wait = np.int64(now), passage.wait
    if passage.l1_requests:  # through the port of the L1
        l1_end = max(now, state.port[unit]) + stream.passes[stream.template[instruction]] * times.l1
        state.port[unit] = l1_end
        wait = max(l1_end + times.l1_latency, wait)
    in_time = max(l1_end, state.free[xcd, 0]) + times.l2_latency
    requests, l1_hits = passage.requests, passage.l1_hits
    misses = mall_hits = l2_wait = np.int64(0)
    remote_wait = np.int64(-1)
    written, activated = tally.counts[WRITEBACKS], state.shared[ACTIVATION]
    for start in range(passage.begin, passage.end, CHUNK):
        n, more, missed, there = _gather(stream, machine, state.l1, passage, start, state.scratch)
        requests += more
        l1_hits -= missed
        latest, remote, fetched, found = _through_l2_at(inputs, state, xcd, access, n, in_time, tally)
        wait, l2_wait, remote_wait = max(wait, there), max(l2_wait, latest), max(remote_wait, remote)
        misses += fetched
        mall_hits += found
    _count_instruction(tally, access, requests, passage.l1_requests, l1_hits)
    l2_end = sent = l1_end  # the L2 port: end = max(L1 port's end, free) + requests * time
    if requests:
        service = requests * (times.l2_write if access.is_write else times.l2_read)
        l2_end = max(l1_end, state.free[xcd, 0]) + service
        state.free[xcd, 0] = l2_end
        sent = l2_end
        if times.cu_fill and not access.is_write:  # no faster than the CU takes in
            sent = max(l2_end, max(now, state.fill[unit]) + requests * times.cu_fill)
            state.fill[unit] = sent
        wait = max(wait, sent + times.l2_latency, l2_wait)
    fills = np.int64(0) if access.is_write else misses
    writebacks, activation_fs = tally.counts[WRITEBACKS] - written, state.shared[ACTIVATION] - activated
    there = _travel(inputs, state, xcd, l2_end, sent, Moved(fills, fills - mall_hits, writebacks, activation_fs))
    if access.is_write:  # nothing waits for a store
        return l2_end, l2_end, np.int64(0)
    wait = max(wait, there) if fills else wait
    if remote_wait >= 0:  # copies of what the remote partition had
        remote_wait = max(remote_wait, sent + times.l2_latency + times.l2_remote)
        wait, there = max(wait, remote_wait), max(there, remote_wait)
    state.arrival[instruction], state.l1.arrival[instruction] = there, wait
    return wait, l2_end, requests
