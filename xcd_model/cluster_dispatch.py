"""Dispatch of clusters: a cluster begins on neighbouring CUs when all of them have room, and its fetches are common.

    CUs of an XCD     | 0 1 | 2 3 | 4 5 | 6      clusters of 2: three places side by side, CU 6 is left over
    XCD of cluster k  = (k + offset) mod X       as workgroups without clusters

A place that has ended waits for the others, and the last one takes up the XCD's next cluster for all. A multicast load
is issued when all workgroups of the cluster have come to it, each its part, and they go on when all parts are there. In
lockstep both are settled when the first place is asked in a turn, before the others.

Sources: CUDA C++ Programming Guide (a cluster is co-scheduled on one GPC); ROCm/rocm-systems PRs 10284 and 10289 (AMD's
emulator of gfx1250 deals clusters to XCDs in turn, whole). That places are neighbouring CUs is assumed.
"""

from __future__ import annotations

from xcd_model.compiled.numba_inline import inlined


@inlined
def _first_place(machine, place):
    """First place of the cluster that a slot of an XCD belongs to, or -1 on a CU that is left over."""
    cu = place % machine.cus
    if cu // machine.cluster * machine.cluster + machine.cluster > machine.cus:
        return -1
    return place - cu % machine.cluster


@inlined
def _take_cluster(start, machine, order, slots, xcd, first):
    """Give the places from ``first`` on the XCD's next cluster that touches anything; False if there is none."""
    works = False
    while not works:
        pid = slots.waiting[xcd] * machine.cluster
        if pid >= order.size:
            return False
        slots.waiting[xcd] += machine.xcds
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
    first = _first_place(machine, slot)
    if first == slot:
        _open_turn(start, machine, order, slots, xcd, first)
    at = slots.running[xcd, slot, 0]
    if first < 0 or at == slots.running[xcd, slot, 1] or (slots.multicast[at] and not slots.met[xcd, slot]):
        return -1
    slots.running[xcd, slot, 0] = at + 1
    return at
