"""Dispatch: hardware workgroup id to XCD to CU slot, and how many workgroups are resident on a CU.

    XCD of workgroup w  =  (w // run + offset) mod X          round robin: runs of 1 id; chunked: of a chunk;
    ids served by XCD x =  its runs, from ((x - offset) mod X) run on     one after another: of n / X
    slots of a CU       =  workgroups a CU; a slot that is free takes the XCD's next id

    place of an XCD        0    1  ..  CUs - 1  |  CUs  CUs + 1  ..         slot of the GPU = place * X + XCD
    its CU, row on that   0,0  1,0 ..           |  0,1    1,1    ..         (`Seat`)

A persistent kernel launches P programs in this way, and program p computes tiles p, p + P, p + 2 P, ... one after the
other, or, where it has `Claims`, the tiles that atomic counters give it each time that it has ended one. The rule
stands here twice: in numpy (`xcd_of`, `first_ids`) and compiled (`_next_pid`).

A cluster begins on neighbouring CUs when all of them have room, and its fetches are common:

    CUs of an XCD     | 0 1 | 2 3 | 4 5 | 6      clusters of 2: three places side by side, CU 6 is left over
    XCD of cluster k  = (k + offset) mod X       as workgroups without clusters

A place that has ended waits for the others, and the last one takes up the XCD's next cluster for all. A multicast load
is issued when all workgroups of the cluster have come to it, each its part, and they go on when all parts are there. In
lockstep both are settled when the first place is asked in a turn, before the others.

    workgroups a CU = min over threads, VGPRs, LDS, barriers of (what the CU has) // (what a workgroup takes)
    loads in flight = min(stages * loads a step, bytes of registers and LDS that loads can land in // bytes a load)

Sources: HipKittens (arXiv 2511.08083) section 3.4 for the round robin; a constant start offset was seen in public
counter logs of an MI300X virtual function. CUDA C++ Programming Guide (a cluster is co-scheduled on one GPC) and
ROCm/rocm-systems PRs 10284 and 10289 (AMD's emulator of gfx1250 deals clusters to XCDs in turn, whole); that places are
neighbouring CUs is assumed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xcd_model.compiled.by_reference import by_reference
from xcd_model.compiled.numba_inline import inlined
from xcd_model.compiled.numba_setup import njit
from xcd_model.errors import ReplayError
from xcd_model.resources import Resources
from xcd_model.spec.gpu import Gpu
from xcd_model.trace.trace import SECTOR_BYTES, Trace


def loads_in_flight(resources: Resources, trace: Trace) -> int:
    """Tensor instructions of one workgroup in flight at once: what a load brings needs registers or LDS to land in.

    Parameters
    ----------
    resources : Resources
        Of one workgroup.
    trace : Trace
        Its reads, in whole sectors, say what a load brings in the mean.

    Returns
    -------
    n : int
        ``resources.instructions_in_flight``, or fewer; at least 1.
    """
    sectors = np.add.reduceat(np.bitwise_count(trace.sectors), trace.rel_start[:-1], dtype=np.int64)
    is_write = trace.is_write[trace.template]
    read, written = sectors[trace.template[~is_write]], sectors[trace.template[is_write]]
    if not read.size:
        return resources.instructions_in_flight
    held_bytes = SECTOR_BYTES * written.mean() if written.size else 0.0
    room_bytes = 4 * resources.vgprs * resources.threads + resources.lds_bytes - held_bytes
    return max(1, min(resources.instructions_in_flight, int(room_bytes / (SECTOR_BYTES * read.mean()))))


def workgroups_per_cu(resources: Resources, gpu: Gpu) -> int:
    """Workgroups that fit one CU at once.

    Parameters
    ----------
    resources : Resources
        Of one workgroup.
    gpu : Gpu

    Returns
    -------
    n : int, at least 1

    Raises
    ------
    ReplayError
        If not even one workgroup fits; names the resource that is short.

    Source: AMD CDNA 3 ISA reference; 512 registers a SIMD lane are shared by the waves on it.
    """
    limits = gpu.limits
    waves = -(-resources.threads // limits.wave_size)
    granule = limits.vgpr_granule
    vgprs = -(-max(1, resources.vgprs) // granule) * granule
    waves_per_simd = min(limits.waves_per_cu // limits.simds_per_cu, limits.vgprs_per_simd // vgprs)
    fits = {
        f"threads ({resources.threads} of {limits.threads_per_workgroup} a workgroup)": int(
            resources.threads <= limits.threads_per_workgroup
        )
        * limits.workgroups_per_cu,
        f"waves and VGPRs ({waves} waves of {vgprs} registers)": waves_per_simd * limits.simds_per_cu // waves,
        f"LDS ({resources.lds_bytes} of {limits.lds_bytes_per_cu} B)": (
            limits.lds_bytes_per_cu // resources.lds_bytes if resources.lds_bytes else limits.workgroups_per_cu
        ),
    }
    if waves > 1:  # a workgroup of one wave needs no barrier
        fits["barriers"] = limits.barriers_per_cu
    short = min(fits, key=lambda name: fits[name])
    if fits[short] < 1:
        raise ReplayError(
            f"no workgroup fits a CU of {gpu.name}: short of {short}; use smaller blocks, fewer num_stages or num_warps"
        )
    return min(fits[short], limits.workgroups_per_cu)


def run_of(gpu: Gpu, n_dispatched: int) -> int:
    """Consecutive ids that an XCD gets before the next one's turn, of so many workgroups, programs or clusters."""
    if gpu.dispatch == "one_after_another":
        return max(1, -(-n_dispatched // gpu.xcds))
    return (gpu.dispatch_chunk or gpu.cus_per_xcd) if gpu.dispatch == "chunked" else 1


def xcd_of(n_workgroups: int, gpu: Gpu, programs: int | None = None) -> np.ndarray:
    """XCD that each hardware workgroup id runs on, or each tile of a persistent kernel of so many programs.

    Claimed tiles run there too if all take equally long; which a replay decides.

    Parameters
    ----------
    n_workgroups : int
    gpu : Gpu
    programs : int, optional
        Of a persistent kernel.

    Returns
    -------
    xcd : (n_workgroups,) int64 array, each in ``0 .. gpu.xcds - 1``
    """
    launched = programs or n_workgroups
    run = np.arange(n_workgroups, dtype=np.int64) % launched // run_of(gpu, launched)
    return (run + gpu.dispatch_offset) % gpu.xcds


def first_ids(xcds: int, offset: int, run: int = 1) -> np.ndarray:
    """(xcds,) int64: first hardware workgroup id of each XCD; the inverse of `xcd_of` for the first round."""
    return (np.arange(xcds, dtype=np.int64) - offset) % xcds * run


@inlined
def _after(machine, pid):
    """Hardware id that an XCD dispatches after ``pid``: the next of its run, or the first of its next run."""
    return pid + 1 if (pid + 1) % machine.run else pid + 1 + (machine.xcds - 1) * machine.run


class Seat(NamedTuple):
    """Where a slot is: its ``xcd`` and ``place`` there, its ``cu`` there, ``unit`` among all CUs, and ``row`` on it."""

    xcd: Any
    place: Any
    cu: Any
    unit: Any
    row: Any


def unit_of(xcd: Any, place: Any, cus: int) -> Any:
    """CU, among all of a GPU with ``cus`` an XCD, that a place of an XCD is on."""
    return xcd * cus + place % cus


_unit_of = inlined(unit_of)


def seat_of(slot: Any, xcds: int, cus: int) -> Seat:
    """`Seat` of a slot, or of an array of slots, of a GPU with so many XCDs, and CUs an XCD."""
    xcd, place = slot % xcds, slot // xcds
    return Seat(xcd, place, place % cus, unit_of(xcd, place, cus), place // cus)


@by_reference
class Seats(NamedTuple):
    """The seats of all slots of a GPU, looked up in both directions."""

    xcd: np.ndarray  # (n_slots,) int64: see `Seat`
    place: np.ndarray
    unit: np.ndarray
    row: np.ndarray
    at: np.ndarray  # (n_xcds, places) int64: slot at each place of an XCD
    on: np.ndarray  # (n_cus, rows) int64: slot in each row of a CU


def seats_of(xcds: int, cus: int, rows: int) -> Seats:
    """Seats of a GPU with so many XCDs, CUs an XCD and slots a CU."""
    slot = np.arange(xcds * cus * rows)
    xcd, place, _, unit, row = seat_of(slot, xcds, cus)
    at, on = np.empty((xcds, cus * rows), np.int64), np.empty((xcds * cus, rows), np.int64)
    at[xcd, place] = on[unit, row] = slot
    return Seats(xcd, place, unit, row, at, on)


@by_reference
class Slots(NamedTuple):
    """Which workgroup runs in which slot."""

    running: np.ndarray  # (n_xcds, slots, 2) int64: next and end instruction of the slot's workgroup
    pid: np.ndarray  # (n_xcds, slots) int64: hardware id, or tile of a persistent program; -1 before the first
    # (n_xcds, slots) int64: hardware id of the workgroup, or persistent program, in the slot; -1 before the first
    program: np.ndarray
    waiting: np.ndarray  # (n_xcds,) int64: next hardware id that each XCD dispatches
    counters: np.ndarray  # (pools + 1,) int64: tiles claimed from each pool, and from the counter for all; see `Claims`
    # (n_tiles + n_xcds * slots,) int64: tile that is claimed after each tile, and the first of each slot, -1 for none,
    # see `slots_in_step`; else empty
    follows: np.ndarray
    # (slots,) int64: first place of the cluster that each place of an XCD belongs to; -1 on a CU that is left over
    first: np.ndarray
    # (n_xcds, slots) bool: whether a place of a cluster waits for the others, or in lockstep may issue what it waited
    # for
    met: np.ndarray
    # (n_instructions,) bool: whether an instruction is issued by all workgroups of a cluster together; empty without
    # clusters
    multicast: np.ndarray


def slots_of(machine: Any, multicast: np.ndarray | None = None) -> Slots:
    """Empty slots of a `xcd_model.cache.packed.Machine`, every queue at its first hardware id, or cluster."""
    place, size = np.arange(machine.slots), machine.cluster
    cu, whole = place % machine.cus, machine.cus - machine.cus % size  # CUs from `whole` on are left over
    return Slots(
        running=np.zeros((machine.xcds, machine.slots, 2), np.int64),
        pid=np.full((machine.xcds, machine.slots), -1, np.int64),
        program=np.full((machine.xcds, machine.slots), -1, np.int64),
        waiting=first_ids(machine.xcds, machine.offset, machine.run),
        counters=np.zeros(machine.pools + 1, np.int64),
        follows=np.zeros(0, np.int64),
        first=np.where(cu < whole, place - cu % size, -1),
        met=np.zeros((machine.xcds, machine.slots), np.bool_),
        multicast=np.zeros(0, np.bool_) if multicast is None else multicast,
    )


def slots_in_step(start: np.ndarray, machine: Any, order: np.ndarray, multicast: np.ndarray | None = None) -> Slots:
    """Empty slots of a replay in lockstep, which runs XCD by XCD: who claims which tile is settled beforehand.

    In a turn every slot issues an instruction; slots that are free in the same turn claim in dispatch order: slot by
    slot, and of one slot XCD by XCD.
    """
    if not machine.pools:
        return slots_of(machine, multicast)
    follows = np.full(order.size + machine.xcds * machine.slots, -1, np.int64)
    _claim_in_step(start, machine, order, slots_of(machine), follows)
    return slots_of(machine)._replace(follows=follows)


@inlined
def _claim(machine, n_tiles, counters, program):
    """Tile that a program's atomics give it, ``n_tiles`` where none is left.

    of pool k:  claimed * pools + k,  while that is below ``local``;   else, of no pool:  local + claimed by all
    asked: k = program mod pools, and where programs steal k + 1, k + 2, ... mod pools
    """
    for step in range(machine.pools if machine.steals else 1):
        pool = (program + step) % machine.pools
        tile = counters[pool] * machine.pools + pool
        if tile < machine.local:
            counters[pool] += 1
            return tile
    tile = machine.local + counters[machine.pools]
    if tile < n_tiles:
        counters[machine.pools] += 1
    return min(tile, n_tiles)


@inlined
def _next_pid(machine, n_tiles, pid, slots, xcd, slot):
    """Hardware id (tile, if persistent) that a free slot takes up, or -1; ``pid`` is its last, -1 before the first.

    persistent: pid + P, or a claim, while that is a tile;  else: the XCD's next id, `_after` its last
    """
    if slots.follows.size:
        return slots.follows[pid if pid >= 0 else n_tiles + slot * machine.xcds + xcd]
    program = slots.program[xcd, slot]
    while True:
        if machine.programs and program >= 0:
            if machine.pools:
                tile = _claim(machine, n_tiles, slots.counters, program)
            else:
                tile = pid + machine.programs if pid >= 0 else program
            if tile < n_tiles:
                return tile
        program, pid = slots.waiting[xcd], np.int64(-1)
        if program >= (machine.programs if machine.programs else n_tiles):
            return np.int64(-1)
        slots.waiting[xcd] = _after(machine, program)
        slots.program[xcd, slot] = program
        if not machine.programs:
            return program


@inlined
def _next_work(start, machine, order, pid, slots, xcd, slot):
    """As `_next_pid`, past the workgroups that touch nothing: they end as soon as they begin."""
    pid = _next_pid(machine, order.size, pid, slots, xcd, slot)
    while pid >= 0 and start[order[pid]] == start[order[pid] + 1]:
        pid = _next_pid(machine, order.size, pid, slots, xcd, slot)
    return pid


@njit(cache=True)
def _claim_in_step(start, machine, order, slots, follows):
    """Fill ``follows``: turn by turn, in the order of `slots_in_step`, a slot without instructions claims a tile."""
    left, busy = np.zeros((machine.slots, machine.xcds), np.int64), True
    while busy:
        busy = False
        for slot in range(machine.slots):
            for xcd in range(machine.xcds):
                if left[slot, xcd] == 0:
                    before = slots.pid[xcd, slot]
                    pid = _next_work(start, machine, order, before, slots, xcd, slot)
                    if pid < 0:
                        continue
                    follows[before if before >= 0 else order.size + slot * machine.xcds + xcd] = pid
                    slots.pid[xcd, slot] = pid
                    left[slot, xcd] = start[order[pid] + 1] - start[order[pid]]
                left[slot, xcd] -= 1
                busy = True


@inlined
def _take_cluster(start, machine, order, slots, xcd, first):
    """Give the places from ``first`` on the XCD's next cluster that touches anything; False if there is none."""
    works = False
    while not works:
        pid = slots.waiting[xcd] * machine.cluster
        if pid >= order.size:
            return False
        slots.waiting[xcd] = _after(machine, slots.waiting[xcd])
        for place in range(first, first + machine.cluster):
            slots.pid[xcd, place] = slots.program[xcd, place] = pid
            slots.running[xcd, place, 0] = start[order[pid]]
            slots.running[xcd, place, 1] = start[order[pid] + 1]
            works |= slots.running[xcd, place, 0] < slots.running[xcd, place, 1]
            pid += 1
    return True


@inlined
def _open_turn(start, machine, order, slots, xcd, first):
    """Begin a turn of a cluster in lockstep: the next one if all have ended; its common fetch if all have come to it.

    ``slots.met`` says who may issue a multicast load in this turn.
    """
    ended = True
    for place in range(first, first + machine.cluster):
        ended &= slots.running[xcd, place, 0] == slots.running[xcd, place, 1]
    if ended and not _take_cluster(start, machine, order, slots, xcd, first):
        return
    met = True
    for place in range(first, first + machine.cluster):
        at = slots.running[xcd, place, 0]
        met = met and at < slots.running[xcd, place, 1] and slots.multicast[at]
    for place in range(first, first + machine.cluster):
        slots.met[xcd, place] = met


@inlined
def _next_of_cluster(start, machine, order, slots, xcd, slot):
    """Instruction that a slot issues in this turn; -1 where it has none, or waits for its cluster."""
    first = slots.first[slot]
    if first == slot:
        _open_turn(start, machine, order, slots, xcd, first)
    at = slots.running[xcd, slot, 0]
    if first < 0 or at == slots.running[xcd, slot, 1] or (slots.multicast[at] and not slots.met[xcd, slot]):
        return -1
    slots.running[xcd, slot, 0] = at + 1
    return at


@inlined
def _next_instruction(start, machine, order, slots, xcd, slot):
    """Instruction that a slot issues in this round, of its workgroup or of its next one; -1 where no work is left."""
    if machine.cluster > 1:
        return np.int64(_next_of_cluster(start, machine, order, slots, xcd, slot))
    at = slots.running[xcd, slot, 0]
    if at == slots.running[xcd, slot, 1]:
        pid = _next_work(start, machine, order, slots.pid[xcd, slot], slots, xcd, slot)
        if pid < 0:
            return np.int64(-1)
        slots.pid[xcd, slot] = pid
        at = start[order[pid]]
        slots.running[xcd, slot, 1] = start[order[pid] + 1]
    slots.running[xcd, slot, 0] = at + 1
    return np.int64(at)
