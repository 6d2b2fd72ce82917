"""Hit rate of the L2s for every number of ways up to a depth, and several numbers of sets, from one pass.

    depth of a touch = distinct lines of its set touched since the line was;   hit with w ways  <=>  depth < w

In lockstep the order in which lines reach an L2 does not depend on what is in the L2. So one pass can follow, for each
number of sets, the recency stack of every set: a look-up that finds its line at depth d hits in all caches of more than
d ways, and in no other.

Source: Mattson et al., IBM Systems Journal 9(2), 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from xcd_model.cache.locate import DIRTY_BITS, FILL_BITS, _locate
from xcd_model.cache.packed import Inputs, index_of
from xcd_model.compiled.numba_setup import njit, uncounted
from xcd_model.dispatch import _next_instruction, _unit_of, slots_in_step
from xcd_model.errors import ReplayError
from xcd_model.replay.plan import Plan, prepare
from xcd_model.replay.through_l1 import CHUNK, _enter_l1, _gather, empty_l1, scratch_of
from xcd_model.spec.caches import Index
from xcd_model.spec.gpu import Gpu

MAX_DEPTH = 64
REACH_BITS = 7
PIECES_BITS = FILL_BITS * REACH_BITS
NEVER_TOUCHED = (1 << PIECES_BITS) - 1


@dataclass(frozen=True, eq=False)
class CapacityCurve:
    """L2 hit rates of a kernel under one order, by size of the L2."""

    sets: tuple[int, ...]  # numbers of sets, rising
    # (n_sets, depth) float64: column ``w - 1`` is the rate with ``w`` ways, in requests, cold
    l2_hit_rate: np.ndarray = field(repr=False)
    line_bytes: int
    requests: int

    def size_bytes(self, sets: int, ways: int) -> int:
        """Size of one XCD's L2 [bytes]."""
        return sets * ways * self.line_bytes


class Stacks(NamedTuple):
    """Recency stacks of every set of every configuration, of one XCD."""

    numbers: np.ndarray  # (n_configs, 3) int64: sets, mask and shift of each, as `xcd_model.spec.caches.Index`
    hash: np.ndarray  # (n_configs, n_tags) int64: and its hash; zeros for none
    place: np.ndarray  # (n_configs,) int64: where its stacks begin
    depth: int
    words: np.ndarray  # line + 1 and `_deepest` of its pieces, by recency
    found: np.ndarray  # (n_configs, depth + 1) int64: pieces wanted by depth, the last for misses; summed over XCDs


@njit(inline="always")
def _deepest(word, piece):
    """Deepest place where a line was found since a piece of it was last touched; over any depth if it never was."""
    return (word >> (piece * REACH_BITS)) & ((1 << REACH_BITS) - 1)


@uncounted()
def _stack(stacks, scratch, n):
    """Look ``n`` gathered lines up in every configuration and move them to the front.

    A piece of a line is there in caches of more ways than the depth of the line at this touch and at all others since
    one touched the piece: the deepest of them stays with the line.
    """
    words, found, depth = stacks.words, stacks.found, stacks.depth
    for c in range(stacks.numbers.shape[0]):
        index = Index(stacks.numbers[c, 0], stacks.numbers[c, 1], stacks.numbers[c, 2], stacks.hash[c])
        for i in range(n):
            line = scratch.line[i]
            at, _ = _locate(line, index)
            row = stacks.place[c] + at * depth
            word = (line + 1) << PIECES_BITS
            carry, mine, way = word, word | NEVER_TOUCHED, np.int64(0)
            while way < depth:
                there = words[row + way]
                words[row + way] = carry
                if there >> PIECES_BITS == line + 1:
                    mine = there
                    break
                carry = there
                way += 1
            for piece in range(FILL_BITS):
                deepest = max(way, _deepest(mine, piece))
                if (np.int64(scratch.marks[i]) >> (DIRTY_BITS + piece)) & 1:
                    found[c, min(deepest, depth)] += 1
                    deepest = np.int64(0)
                word |= deepest << (piece * REACH_BITS)
            words[row] = word


@uncounted()
def _curve(inputs, slots, l1, xcd, scratch, stacks):
    """Run one XCD to its end in lockstep, its lines to the stacks; return its L2 requests."""
    stream, machine = inputs.stream, inputs.machine
    requests, idle = np.int64(0), False
    while not idle:
        idle = True
        for slot in range(machine.slots):
            at = _next_instruction(stream.start, machine, inputs.order, slots, xcd, slot)
            if at < 0:
                continue
            idle = False
            passage = _enter_l1(stream, machine, l1, _unit_of(xcd, slot, machine.cus), at)
            requests += passage.requests
            for start in range(passage.begin, passage.end, CHUNK):
                n, more, _, _ = _gather(stream, machine, l1, passage, start, scratch)
                requests += more
                _stack(stacks, scratch, n)
    return requests


def check_has_curve(gpu: Gpu) -> None:
    """Refuse a GPU whose hit rates at all sizes do not follow from one pass."""
    if gpu.l2_partitions:
        raise ReplayError(
            f"{gpu.name}: no curve by size of a partitioned L2, whose partitions cache copies (l2_partitions); replay "
            "each size: l2.ways = 5, 10 and so on"
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
    order : (n_workgroups,) int array
    """
    order, l2 = plan.order_of_workgroups(order), plan.gpu.l2
    if workgroups_per_cu < 1 or not 1 <= depth <= MAX_DEPTH:
        raise ReplayError(
            f"workgroups_per_cu = {workgroups_per_cu}, depth = {depth} out of range; occupancy must be at least 1, "
            f"depth 1..{MAX_DEPTH}"
        )
    check_has_curve(plan.gpu)
    wanted = tuple(sorted(set(sets or [l2.sets * 2**k // 4 for k in range(5)])))
    if wanted[0] < 1:
        raise ReplayError(f"sets = {wanted[0]} is out of range; a cache has at least one set")
    whole = prepare(plan.trace, plan.gpu, symmetry=False)
    launched = {name: getattr(plan.machine, name) for name in ("programs", "pools", "local", "steals", "cluster")}
    machine = whole.machine._replace(slots=plan.gpu.cus_per_xcd * workgroups_per_cu, **launched)
    highest = plan.trace.highest_line
    index = [index_of(replace(l2, size_bytes=n * l2.ways * l2.line_bytes), highest) for n in wanted]
    most_tags = max(1, *(i.hash.size for i in index), *(highest // i.n_sets + 1 for i in index))
    numbers = np.array([(i.n_sets, i.mask, i.shift) for i in index], np.int64)
    stacks = Stacks(
        numbers=numbers,
        hash=np.zeros((len(index), most_tags), np.int64),
        place=depth * (np.cumsum(numbers[:, 0]) - numbers[:, 0]),
        depth=depth,
        words=np.zeros(depth * int(numbers[:, 0].sum()), np.int64),
        found=np.zeros((len(index), depth + 1), np.int64),
    )
    for c, one in enumerate(index):
        stacks.hash[c, : one.hash.size] = one.hash
    slots, l1 = slots_in_step(plan.trace.start, machine, order, plan.stream.multicast), empty_l1(machine)
    scratch, requests = scratch_of(machine), 0
    for xcd in range(machine.xcds):
        stacks.words[:] = 0
        requests += _curve(Inputs(whole.stream, machine, order), slots, l1, xcd, scratch, stacks)
    found = stacks.found
    misses = found.sum(axis=1, keepdims=True) - np.cumsum(found[:, :-1], axis=1)
    return CapacityCurve(wanted, 1 - misses / requests, l2.line_bytes, int(requests))
