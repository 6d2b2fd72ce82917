"""Bounds on the L2 hit rate that need no replay, so that a search knows when to stop.

    misses(XCD) >= distinct lines of its workgroups >= min over sets of as many workgroups of their distinct lines
    hit rate    <= (requests - sum of those) / requests

Every line that the workgroups of an XCD touch misses its cold L2 at least once (of an L2 that fetches half lines, every
half line: read "half line" for "line" then). So misses are at least the number of
distinct (XCD, line) pairs, and any lower bound on the distinct lines that a set of ``n`` workgroups can touch bounds
the hit rate of every assignment that gives each XCD its share of workgroups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcd_model.compiled.numba_setup import uncounted
from xcd_model.compiled.splitmix import _mix
from xcd_model.dispatch import xcd_of
from xcd_model.replay.plan import Plan
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS
from xcd_model.spec.gpu import Gpu
from xcd_model.trace.tiles import _mark_lines, bits_of, numbered, room
from xcd_model.trace.trace import Trace

MAX_LINES = 1 << 26  # above this a tensor is left out of the per-XCD bound, which stays valid


@dataclass(frozen=True, eq=False)
class _Panels:
    """How one tensor cuts the grid: workgroups of one class touch the same lines, those of two classes none alike.

    ``of`` is (n_workgroups,): class of each workgroup; ``lines`` is the fewest lines a class touches, ``total``
    those of all; ``largest`` is the most workgroups in a class; ``count`` the number of classes.
    """

    of: np.ndarray
    lines: int
    total: int
    largest: int
    count: int


def _panels(trace: Trace, tensor: int) -> _Panels | None:
    """Classes of workgroups by what they touch of one tensor; None where classes share lines or one has none."""
    mine = trace.tensor == tensor
    signature, kept = np.zeros(trace.n_workgroups, np.uint64), np.zeros(trace.n_instructions, np.bool_)
    longest = int(np.diff(trace.start).max())
    seen = np.zeros(room(longest), np.uint64), np.full(room(longest), -1, np.int32)
    if not _sign(trace.start, trace.template, trace.base, mine, seen, signature, kept):
        return None
    of, first = numbered(signature)
    count = first.size
    chosen = _of_classes(trace.start, kept, first)
    if int(trace.entries_per_template[trace.template[chosen]].sum()) > MAX_LINES:
        return None
    sizes = _count(trace, tensor, of[np.searchsorted(trace.start, chosen, side="right") - 1], chosen, count)
    if sizes is None:
        return None
    return _Panels(of, int(sizes.min()), int(sizes.sum()), int(np.bincount(of).max()), count)


@uncounted()
def _sign(start, template, base, mine, seen, signature, kept):
    """Sum hashes of the distinct (base, template) pairs of each workgroup; False where one has none.

    mine      : (n_templates,) bool, the tensor's
    seen      : (n,) uint64 and int32, a hash table: pairs, and the workgroup that put them there; -1s
    signature : (n_workgroups,) uint64, zeros
    kept      : (n_instructions,) bool, output: the first of each pair in its workgroup
    """
    pairs, by = seen
    mask = np.uint64(pairs.size - 1)
    for workgroup in range(start.size - 1):
        has = False
        for i in range(start[workgroup], start[workgroup + 1]):
            if not mine[template[i]]:
                continue
            has = True
            pair = _mix(_mix(base[i]) ^ np.uint64(template[i]))
            at = pair & mask
            while by[at] == workgroup and pairs[at] != pair:
                at = (at + np.uint64(1)) & mask
            if by[at] != workgroup:
                by[at], pairs[at], kept[i] = workgroup, pair, True
                signature[workgroup] += pair
        if not has:
            return False
    return True


def _of_classes(start: np.ndarray, kept: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Kept instructions of the first workgroup of each class, rising."""
    is_first = np.zeros(start.size - 1, np.bool_)
    is_first[first] = True
    return np.flatnonzero(kept & np.repeat(is_first, np.diff(start)))


def _distinct_lines(trace: Trace, wanted: np.ndarray) -> int:
    """Distinct lines of the instructions of a mask."""
    instruction = np.flatnonzero(wanted)
    if not instruction.size:
        return 0
    template, base, once = trace.template[instruction], trace.base[instruction], np.zeros(instruction.size, np.bool_)
    seen = np.zeros(room(once.size), np.uint64), np.full(room(once.size), -1, np.int32)
    everything = np.ones(trace.tensor.size, np.bool_)
    _sign(np.array([0, once.size]), template, base, everything, seen, np.zeros(1, np.uint64), once)
    template, base = template[once], base[once]
    total = 0
    for number, tensor in enumerate(trace.tensors):  # one address range at a time: they may lie far apart
        mine, most = trace.tensor[template] == number, tensor.n_lines
        lines = base[mine] - tensor.base_line, template[mine], trace.rel_start, trace.rel
        total += _mark_lines(*lines, bits_of(most), most)
    return total


def _count(trace: Trace, tensor: int, of: np.ndarray, instruction: np.ndarray, n_classes: int) -> np.ndarray | None:
    """Distinct lines of one tensor that the instructions of each class touch; None where two touch the same.

    ``of`` is the class of each instruction, rising.
    """
    counts, owner = np.zeros(n_classes, np.int64), np.zeros(trace.tensors[tensor].n_lines, np.int32)
    base = trace.base - trace.tensors[tensor].base_line
    apart = _count_lines(of, instruction, base, trace.template, trace.rel_start, trace.rel, owner, counts)
    return counts if apart else None


@uncounted()
def _count_lines(of, instruction, base, template, rel_start, rel, owner, counts):
    """Count the lines of each class into ``counts``; returns whether no two classes touch the same.

    of, instruction : (n,) int64, rising class and instruction
    base            : (n_instructions,) int64, first line, from the tensor's first one
    owner           : (n_lines,) int32, zeros: 1 + the class that touches each line
    counts          : (n_classes,) int64, zeros
    """
    for i in range(instruction.size):
        k = template[instruction[i]]
        for entry in range(rel_start[k], rel_start[k + 1]):
            line = base[instruction[i]] + rel[entry]
            if owner[line] != of[i] + 1:
                if owner[line]:
                    return False
                owner[line] = of[i] + 1
                counts[of[i]] += 1
    return True


def _fewest_lines(panels: list[_Panels], n: int) -> int:
    """Fewest lines that ``n`` workgroups can touch.

    A tensor whose largest class has ``s`` workgroups needs ``k >= n / s`` classes. For two tensors, ``n`` workgroups
    lie in at most ``k1 k2`` pairs of classes of at most ``m`` workgroups each, so ``m k1 k2 >= n``: the
    Loomis-Whitney argument. The best pair is taken, the other tensors by their own classes.
    """
    alone = [-(-n // p.largest) for p in panels]
    best = floor = sum(k * p.lines for k, p in zip(alone, panels, strict=True))
    for i, p in enumerate(panels):
        for j in range(i + 1, len(panels)):
            q = panels[j]
            _, members = np.unique(p.of * np.int64(q.count) + q.of, return_counts=True)
            k1 = np.arange(alone[i], p.count + 1)
            k2 = np.maximum(alone[j], -(-n // (members.max() * k1)))
            possible = k2 <= q.count
            pair = (k1 * p.lines + k2 * q.lines)[possible].min()
            best = max(best, floor - alone[i] * p.lines - alone[j] * q.lines + int(pair))
    return best


@dataclass(frozen=True)
class Bound:
    """Upper bound on the L2 hit rate of every balanced bijection, cold caches.

    Parameters
    ----------
    l2_hit_rate : float
        0 to 1, in requests.
    l2_misses : int
        Fewest misses.
    l2_requests : int
        Most requests: none answered by an L1.
    """

    l2_hit_rate: float
    l2_misses: int
    l2_requests: int


def hit_rate_bound(plan: Plan) -> Bound:
    """L2 hit rate that no assignment of workgroups to XCDs can exceed, given the hardware's dispatch.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    Bound

    Notes
    -----
    Proof. Dispatch fixes how many workgroups each XCD gets, and a bijection only chooses which; of claimed tiles
    only those of a pool whose programs are all on one XCD are certain to run there. The misses of
    XCD x are at least the distinct lines its workgroups touch, at least `_fewest_lines` of that many workgroups over
    the tensors whose classes are disjoint. Over all XCDs those of any tensor are at least its distinct lines. What
    an L1 answers only takes requests away, so with the most requests the rate is a bound all the same. It is one for
    cold L2s: launches that find lines of the one before have no bound but 1.

    Source: Loomis and Whitney, Bull. AMS 55, 1949; Irony, Toledo and Tiskin, JPDC 64(9), 2004, for GEMM.
    """
    trace, gpu = plan.trace, plan.gpu
    requests = int(
        trace.requests_per_template(gpu.l2.read_request_bytes, gpu.l2.write_request_bytes)[trace.template].sum()
    )
    trace = trace.with_lines_of(gpu.l2.fetch_bytes)
    of_tensor = [_panels(trace, t) for t in range(len(trace.tensors))]
    panels = [p for p in of_tensor if p is not None]
    shares = _shares(plan)
    per_xcd = {int(n): _fewest_lines(panels, int(n)) if n and panels else 0 for n in np.unique(shares)}
    in_panels = np.array([p is not None for p in of_tensor])[trace.tensor[trace.template]]
    others = _distinct_lines(trace, ~in_panels)
    misses = max(sum(per_xcd[int(n)] for n in shares), sum(p.total for p in panels)) + others
    return Bound(
        (requests - misses) / requests, misses, requests
    )  # rounds as Traffic.l2_hit_rate does, so they compare exactly


def _shares(plan: Plan) -> np.ndarray:
    """(n_xcds,) int64: workgroups that each XCD gets, or of claimed tiles gets at least, under any order."""
    machine, clusters = plan.machine, plan.n_workgroups // plan.machine.cluster
    xcd = np.repeat(xcd_of(clusters, plan.gpu, machine.programs), machine.cluster)
    if machine.pools:
        on_one_xcd = machine.run == 1 and machine.pools % machine.xcds == 0 and not machine.steals
        certain = machine.local if on_one_xcd else 0
        xcd = xcd_of(plan.n_workgroups, plan.gpu)[:certain]
    return np.bincount(xcd, minlength=machine.xcds)


def assigned_misses(trace: Trace, order: np.ndarray, gpu: Gpu, *, programs: int | None = None) -> np.ndarray:
    """Compulsory misses of each XCD under one order: the distinct lines that its workgroups touch.

    Parameters
    ----------
    trace : Trace
    order : (n_workgroups,) int array
        Workgroup of the trace that each hardware workgroup computes: a permutation.
    gpu : Gpu
    programs : int, optional
        Of a persistent kernel, whose tiles are dealt out to so many.

    Returns
    -------
    misses : (n_xcds,) int64 [``gpu.l2.fetch_bytes``]
    """
    trace = trace.with_lines_of(gpu.l2.fetch_bytes)
    xcd = np.empty(trace.n_workgroups, np.int64)
    xcd[order] = xcd_of(trace.n_workgroups, gpu, programs)
    return np.array([_touched(trace, xcd == x) for x in range(gpu.xcds)], np.int64)


def _touched(trace: Trace, workgroups: np.ndarray) -> int:
    """Distinct lines of the workgroups of a mask."""
    return _distinct_lines(trace, np.repeat(workgroups, np.diff(trace.start)))


def bound_with_fetches(bound: Bound, fetches: np.ndarray) -> Bound:
    """Bound on the hit rate of a launch that fetches its code, which no order of workgroups changes."""
    requests = bound.l2_requests + int(fetches[:, READ_REQUESTS].sum())
    misses = bound.l2_misses + int(fetches[:, READ_MISSES].sum())
    return Bound(l2_hit_rate=(requests - misses) / requests, l2_misses=misses, l2_requests=requests)
