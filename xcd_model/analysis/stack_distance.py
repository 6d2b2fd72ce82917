"""Hit rate of the L2s for every number of ways up to a depth, and several numbers of sets, from one pass.

In lockstep the order in which lines reach an L2 does not depend on what the L2 holds. So one pass can keep, for each
number of sets, the recency stack of every set: a look-up that finds its line at depth d hits in all caches of more than
d ways, and in no other.

Source: Mattson et al., IBM Systems Journal 9(2), 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numba import njit

from xcd_model.cache.batch import CHUNK, _gather, _gather_lines, _gather_sets, scratch
from xcd_model.cache.l1 import empty_l1
from xcd_model.cache.lru import DIRTY_BITS, FILL_BITS, index_of
from xcd_model.dispatch.round_robin import _next_instruction, check_order, slots_of
from xcd_model.errors import ReplayError
from xcd_model.numba_setup import uncounted
from xcd_model.replay.lockstep_loop import NO_TIMES, _ask_tile
from xcd_model.replay.plan import Plan, prepare
from xcd_model.spec.gpu import Gpu
from xcd_model.trace.packed import BY_LINE, BY_TILE

MAX_DEPTH = 64
REACH_BITS = 7
PIECES_BITS = FILL_BITS * REACH_BITS
NEVER_TOUCHED = (1 << PIECES_BITS) - 1


@dataclass(frozen=True, eq=False)
class CapacityCurve:
    """L2 hit rates of a kernel under one order, by size of the L2.

    Parameters
    ----------
    sets : tuple of int
        Numbers of sets, rising.
    l2_hit_rate : (n_sets, depth) float64
        Column ``w - 1`` is the rate with ``w`` ways, in requests, cold.
    line_bytes : int
    requests : int
    """

    sets: tuple[int, ...]
    l2_hit_rate: np.ndarray = field(repr=False)
    line_bytes: int
    requests: int

    def size_bytes(self, sets: int, ways: int) -> int:
        """Size of one XCD's L2 [bytes]."""
        return sets * ways * self.line_bytes


@njit(inline="always")
def _deepest(word, piece):
    """Deepest place where a line was found since a piece of it was last touched; over any depth if it never was."""
    return (word >> (piece * REACH_BITS)) & ((1 << REACH_BITS) - 1)


@uncounted()
def _stack(lines, marks, n, indexes, hashes, places, depth, words, found):
    """Look ``n`` lines up in every configuration and move them to the front.

    A piece of a line is there in caches of more ways than the depth of the line at this touch and at all others since
    one touched the piece: the deepest of them is kept with the line.

    indexes : (n_configs, 3) int64: sets, mask, shift; hashes : (n_configs, n_tags) int64; places : (n_configs,) int64
    words : int64, line + 1 and `_deepest` of its pieces, by recency
    found : (n_configs, depth + 1) int64: pieces wanted by depth, the last for misses
    """
    for c in range(indexes.shape[0]):
        n_sets, mask, shift = indexes[c]
        for i in range(n):
            line = lines[i]
            at = line % n_sets if mask < 0 else (line & mask) ^ hashes[c, line >> shift]
            row = places[c] + at * depth
            word = (line + 1) << PIECES_BITS
            carry, mine, way = word, word | NEVER_TOUCHED, np.int64(0)
            while way < depth:
                held = words[row + way]
                words[row + way] = carry
                if held >> PIECES_BITS == line + 1:
                    mine = held
                    break
                carry = held
                way += 1
            for piece in range(FILL_BITS):
                deepest = max(way, _deepest(mine, piece))
                if (np.int64(marks[i]) >> (DIRTY_BITS + piece)) & 1:
                    found[c, min(deepest, depth)] += 1
                    deepest = np.int64(0)
                word |= deepest << (piece * REACH_BITS)
            words[row] = word


@uncounted()
def _requests(stream, machine, l1, unit, instruction, scratch, indexes, hashes, places, depth, words, found):
    """Send one instruction through its L1 to the stacks; return its L2 requests. As `_issue` of the lockstep replay."""
    template = stream.template[instruction]
    base, is_write = stream.base[instruction], stream.is_write[template]
    begin, end = stream.rel_start[template], stream.rel_start[template + 1]
    requests, missing, whole = stream.requests[template], np.int64(-1), True
    by_line = machine.l1_mode == BY_LINE and not is_write
    if machine.l1_mode == BY_TILE and not is_write:
        missing, requests, _ = _ask_tile(stream, machine, l1, unit, instruction)
        whole = missing == stream.tile_sets[stream.tile[instruction]]
    if by_line:
        requests = np.int64(0)
    for start in range(begin, end if missing else begin, CHUNK):
        first, n = np.uint64(start), min(CHUNK, end - start)
        if by_line:
            n, asked, _ = _gather_lines(
                stream.rel, stream.marks, stream.pieces, machine.l1, machine.l1_ways, l1, unit, base, first, n,
                instruction, NO_TIMES, scratch.line, scratch.marks, scratch.asked,
            )  # fmt: skip
            requests += asked
        elif whole:
            _gather(stream.rel, stream.marks, stream.pieces, base, first, n, scratch.line, scratch.marks, scratch.asked)
        else:
            n = _gather_sets(
                stream.rel, stream.marks, stream.pieces, machine.l1, base, first, n, missing, scratch.line,
                scratch.marks, scratch.asked,
            )  # fmt: skip
        _stack(scratch.line, scratch.marks, n, indexes, hashes, places, depth, words, found)
    return requests


@uncounted()
def _curve(stream, machine, order, slots, l1, xcd, scratch, indexes, hashes, places, depth, words, found):
    """Run one XCD to its end; return its L2 requests."""
    requests, idle = np.int64(0), False
    while not idle:
        idle = True
        for slot in range(machine.slots):
            at = _next_instruction(stream.start, machine, order, slots, xcd, slot)
            if at < 0:
                continue
            idle = False
            unit = xcd * machine.cus + slot % machine.cus
            requests += _requests(
                stream, machine, l1, unit, at, scratch, indexes, hashes, places, depth, words, found
            )  # fmt: skip
    return requests


def check_has_curve(gpu: Gpu) -> None:
    """Refuse a GPU whose hit rates at all sizes do not follow from one pass.

    Raises
    ------
    ReplayError
    """
    if gpu.l2_sides:
        raise ReplayError(
            f"{gpu.name}: no curve by size of an L2 of two sides, which keep copies (l2_sides); replay each size, "
            "l2.ways = 5, 10 and so on"
        )


def capacity_curve(
    plan: Plan,
    order: np.ndarray,
    *,
    workgroups_per_cu: int,
    sets: Sequence[int] | None = None,
    depth: int = 16,
) -> CapacityCurve:
    """L2 hit rate by ways and sets, all from one pass through the trace.

    Parameters
    ----------
    plan : Plan
    order : (n_workgroups,) int array
    workgroups_per_cu : int
    sets : sequence of int, optional
        Numbers of sets of one XCD's L2; by default a quarter of the GPU's up to four times as many.
    depth : int
        Most ways, 1 to `MAX_DEPTH`.

    Returns
    -------
    CapacityCurve
        At the GPU's own sets and ways the rate of the lockstep replay, cold.

    Raises
    ------
    ReplayError
        If the order is no permutation, depth or occupancy are out of range, or the L2 has two sides: no stack says what
        one of them holds.
    SpecError
        If the GPU's index function has no such number of sets.
    """
    order, l2 = check_order(order, plan.n_workgroups), plan.gpu.l2
    if workgroups_per_cu < 1 or not 1 <= depth <= MAX_DEPTH:
        raise ReplayError(f"workgroups_per_cu = {workgroups_per_cu}, depth = {depth}: at least 1, depth to {MAX_DEPTH}")
    check_has_curve(plan.gpu)
    wanted = tuple(sorted(set(sets or [l2.sets * 2**k // 4 for k in range(5)])))
    if wanted[0] < 1:
        raise ReplayError(f"sets = {wanted[0]}: a cache has at least one set")
    whole = prepare(plan.trace, plan.gpu, programs=plan.machine.programs or None, symmetry=False)
    machine = whole.machine._replace(slots=plan.gpu.cus_per_xcd * workgroups_per_cu)
    highest = max(t.base_line + t.n_lines for t in plan.trace.tensors)
    index = [index_of(replace(l2, size_bytes=n * l2.ways * l2.line_bytes), highest) for n in wanted]
    hashes = np.zeros(
        (len(index), max(1, *(i.hash.size for i in index), *(highest // i.n_sets + 1 for i in index))), np.int64
    )
    for c, one in enumerate(index):
        hashes[c, : one.hash.size] = one.hash
    indexes = np.array([(i.n_sets, i.mask, i.shift) for i in index], np.int64)
    places = depth * (np.cumsum(indexes[:, 0]) - indexes[:, 0])
    found, requests = np.zeros((len(index), depth + 1), np.int64), 0
    slots, l1, work = slots_of(machine), empty_l1(machine), scratch(machine)
    for xcd in range(machine.xcds):
        words = np.zeros(depth * int(indexes[:, 0].sum()), np.int64)
        requests += _curve(
            whole.stream, machine, order, slots, l1, xcd, work, indexes, hashes, places, depth, words, found
        )  # fmt: skip
    misses = found.sum(axis=1, keepdims=True) - np.cumsum(found[:, :-1], axis=1)
    return CapacityCurve(wanted, 1 - misses / requests, l2.line_bytes, int(requests))
