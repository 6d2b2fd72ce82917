"""Fetches of a kernel's own code: they reach the L2, and its counters, like loads.

    requests of an XCD = min(workgroups, instruction caches) * (lines of code + prefetched lines)

Each instruction cache that serves a CU with work fetches the code once a launch, since a launch begins with empty
ones. Of a large launch that is nothing; of a launch of 64 small workgroups it is a third of the L2's hits. The
fetches are added to a replay's counts afterwards: code takes next to no room in an L2.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from xcd_model.analysis.bounds import Bound
from xcd_model.dispatch.occupancy import Resources
from xcd_model.dispatch.round_robin import xcd_of
from xcd_model.replay.traffic import COLUMNS, MALL_HITS, MALL_REQUESTS, READ_MISSES, READ_REQUESTS, Traffic
from xcd_model.spec.gpu import Gpu

CODE = "(code)"  # among the tensors of a `Traffic`


def instruction_fetches(gpu: Gpu, resources: Resources, n_workgroups: int) -> np.ndarray:
    """Count the fetches of code of one launch.

    Parameters
    ----------
    gpu : Gpu
        One without ``l1i`` counts none.
    resources : Resources
        With ``code_bytes``; 0 counts none.
    n_workgroups : int
        Workgroups, or persistent programs, of the launch.

    Returns
    -------
    counts : (n_xcds, len(COLUMNS)) int64
        As reads. All instruction caches of an XCD fetch the same lines, so only the first of them misses the L2;
        only the misses of the first XCD get past the Infinity Cache.

    Source: ROCm Compute Profiler documentation, "L2 cache": it serves requests of the L1 instruction caches.
    """
    counts = np.zeros((gpu.xcds, len(COLUMNS)), np.int64)
    if gpu.l1i is None or not resources.code_bytes:
        return counts
    workgroups = np.bincount(xcd_of(n_workgroups, gpu), minlength=gpu.xcds)
    caches = np.minimum(workgroups, -(-gpu.cus_per_xcd // gpu.l1i.cus))  # workgroups are dealt to caches in turn
    lines = -(-resources.code_bytes // gpu.l1i.line_bytes) + gpu.l1i.prefetch_lines
    counts[:, READ_REQUESTS] = caches * lines
    counts[:, READ_MISSES] = (caches > 0) * -(-lines * gpu.l1i.line_bytes // gpu.l2.fetch_bytes)
    if gpu.mall is not None:
        counts[:, MALL_REQUESTS] = counts[:, READ_MISSES]
        counts[:, MALL_HITS] = counts[:, READ_MISSES] * (np.arange(gpu.xcds) != xcd_of(1, gpu)[0])
    return counts


def add_fetches(traffic: Traffic, fetches: np.ndarray) -> Traffic:
    """Counts with `instruction_fetches` in the first bin, and as a tensor called `CODE`."""
    if not fetches.any():
        return traffic
    timeline = traffic.timeline.copy()
    timeline[0] += fetches
    by_tensor = np.concatenate([traffic.by_tensor, fetches[None]])
    return dataclasses.replace(traffic, timeline=timeline, by_tensor=by_tensor, tensors=(*traffic.tensors, CODE))


def bound_with_fetches(bound: Bound, fetches: np.ndarray) -> Bound:
    """Bound on the hit rate of a launch that fetches its code, which no order of workgroups changes."""
    requests = bound.l2_requests + int(fetches[:, READ_REQUESTS].sum())
    misses = bound.l2_misses + int(fetches[:, READ_MISSES].sum())
    return Bound(l2_hit_rate=(requests - misses) / requests, l2_misses=misses, l2_requests=requests)
