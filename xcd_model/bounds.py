"""Bounds on the L2 hit rate that need no replay, so that a search knows when to stop.

Every line that the workgroups of an XCD touch misses its cold L2 at least once. So misses are at least the number of
distinct (XCD, line) pairs, and any lower bound on the distinct lines that a set of ``n`` workgroups can touch bounds
the hit rate of every assignment that gives each XCD its share of workgroups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .dispatch import xcd_of
from .gpu import Gpu
from .plan import Plan
from .trace import Trace


@dataclass(frozen=True, eq=False)
class _Panels:
    """How one tensor cuts the grid: workgroups of one class touch the same lines, those of two classes none alike.

    ``of`` is (n_workgroups,): class of each workgroup; ``lines`` is the fewest lines a class touches;
    ``largest`` is the most workgroups in a class; ``count`` the number of classes.
    """

    of: np.ndarray
    lines: int
    largest: int
    count: int


def _panels(trace: Trace, tensor: int) -> _Panels | None:
    """Classes of workgroups by what they touch of one tensor; None where classes share lines or one has none."""
    mine = np.flatnonzero(trace.tensor[trace.template] == tensor)
    owner = np.searchsorted(trace.start, mine, side="right") - 1
    if np.unique(owner).size < trace.n_workgroups:
        return None
    # Set of (base, template) of a workgroup, as a sum of hashes over its distinct pairs.
    key = np.unique(np.stack([owner, trace.base[mine], trace.template[mine]]), axis=1)
    draw = np.random.default_rng(0).integers(1, 2**63, 4, dtype=np.int64).astype(np.uint64)
    h = (key[1].astype(np.uint64) * draw[0] + draw[1]) ^ (key[2].astype(np.uint64) * draw[2] + draw[3])
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    signature = np.zeros(trace.n_workgroups, np.uint64)
    np.add.at(signature, key[0], h ^ (h >> np.uint64(32)))
    _, first, of, members = np.unique(signature, return_index=True, return_inverse=True, return_counts=True)
    sizes = [_distinct_lines(trace, key[1:, slice(*np.searchsorted(key[0], [w, w + 1]))]) for w in first]
    together = _distinct_lines(trace, np.unique(key[1:], axis=1))
    if sum(sizes) != together:
        return None
    return _Panels(of.reshape(-1), min(sizes), int(members.max()), first.size)


def _distinct_lines(trace: Trace, pairs: np.ndarray) -> int:
    """Distinct lines of (base, template) pairs; ``pairs`` is (2, n)."""
    base, template = pairs
    count = trace.entries_per_template[template]
    entry = np.repeat(trace.rel_start[template] - np.cumsum(count) + count, count) + np.arange(count.sum())
    line = np.repeat(base, count) + trace.rel[entry]
    seen = np.zeros(int(line.max() - line.min()) + 1, bool)
    seen[line - line.min()] = True
    return int(seen.sum())


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
    """

    l2_hit_rate: float
    l2_misses: int


def hit_rate_bound(plan: Plan) -> Bound:
    """L2 hit rate that no assignment of workgroups to XCDs can exceed, given the hardware's round robin.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    Bound

    Notes
    -----
    Proof. Round robin fixes how many workgroups each XCD gets, and a bijection only chooses which. The misses of
    XCD x are at least the distinct lines its workgroups touch, at least `_fewest_lines` of that many workgroups over
    the tensors whose classes are disjoint. Over all XCDs they are also at least the distinct lines of the trace.

    Source: Loomis and Whitney, Bull. AMS 55, 1949; Irony, Toledo and Tiskin, JPDC 64(9), 2004, for GEMM.
    """
    trace, gpu = plan.trace, plan.gpu
    requests = int(
        trace.requests_per_template(gpu.l2.read_request_bytes, gpu.l2.write_request_bytes)[trace.template].sum()
    )
    panels = [p for t in range(len(trace.tensors)) if (p := _panels(trace, t)) is not None]
    shares = np.bincount(xcd_of(trace.n_workgroups, gpu), minlength=gpu.xcds)
    per_xcd = {int(n): _fewest_lines(panels, int(n)) if n and panels else 0 for n in np.unique(shares)}
    pairs = np.unique(np.stack([trace.base, trace.template.astype(np.int64)]), axis=1)
    misses = max(sum(per_xcd[int(n)] for n in shares), _distinct_lines(trace, pairs))
    return Bound((requests - misses) / requests, misses)  # rounds as Traffic.l2_hit_rate does, so they compare exactly


def assigned_misses(trace: Trace, order: np.ndarray, gpu: Gpu) -> np.ndarray:
    """Compulsory misses of each XCD under one order: the distinct lines that its workgroups touch.

    Returns
    -------
    misses : (n_xcds,) int64 [lines]
    """
    xcd = np.empty(trace.n_workgroups, np.int64)
    xcd[order] = xcd_of(trace.n_workgroups, gpu)
    of_instruction = np.repeat(xcd, np.diff(trace.start))
    misses = np.zeros(gpu.xcds, np.int64)
    for x in range(gpu.xcds):
        mine = of_instruction == x
        if mine.any():
            pairs = np.unique(np.stack([trace.base[mine], trace.template[mine].astype(np.int64)]), axis=1)
            misses[x] = _distinct_lines(trace, pairs)
    return misses
