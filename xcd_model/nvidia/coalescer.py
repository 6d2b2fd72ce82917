"""The L2 request coalescer: reads of one line by SMs of one GPC, while one of them is under way, go to the L2 as one.

    readers k   workgroups on a GPC that load the same tile, among those that run at once
    as one      min(reads_as_one, 1 + (k - 1) * under_way)    requests, of which one goes to the L2
    a request takes  at the L2, of the time that it takes by itself, the mean of 1 / as one over requests

Each of the other readers' requests is under way with one for a small part of the time, ``under_way``: they start
together and drift apart. Workgroups go to GPC after GPC, neighbours in the order to one. An SM takes in what others
asked for no faster than what it asked for itself. Decision 0022.

Source: Nsight Compute's counters of the unit (``lrc__*``); a microbenchmark and counts on one H200
(benchmarks/evidence/pages/laboratory/h200-l2.md).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from xcd_model.nvidia.at_once import Window, windows
from xcd_model.spec.nvidia import L2Partitions
from xcd_model.trace.trace import Trace


def requests_by_readers(
    trace: Trace, order: np.ndarray, *, running: int, gpc: np.ndarray, request_bytes: int
) -> np.ndarray:
    """How many workgroups on a GPC want what is requested.

    Parameters
    ----------
    trace, order, running
        See `xcd_model.nvidia.at_once.windows`.
    gpc : (cus,) int array
        Of each SM, in the order in which workgroups are dispatched to them.
    request_bytes : int [bytes]
        Of a read request.

    Returns
    -------
    by_readers : (most readers + 1,) float64 array
        Requests of the windows for which 0, 1, 2, ... workgroups ask; whole numbers.
    """
    requests = trace.requests_per_template(request_bytes, request_bytes)
    found = [_by_readers(window, gpc, trace.template, requests) for window in windows(trace, order, running)]
    total = np.zeros(max(one.size for one in found))
    for one in found:
        total[: one.size] += one
    return total


def _by_readers(window: Window, gpc: np.ndarray, template: np.ndarray, requests: np.ndarray) -> np.ndarray:
    wanted = np.zeros(int(window.tile.max(initial=0)) + 1, np.int64)
    wanted[window.tile] = 1
    tile = (np.cumsum(wanted) - 1)[window.tile]
    tiles = int(wanted.sum())
    group = gpc[np.arange(window.n) % gpc.size]
    once = np.sort(window.of * tiles + tile)  # far faster than `numpy.unique`
    once = once[np.append(True, once[1:] != once[:-1])[: once.size]]  # a workgroup counts once, however often it loads
    readers = np.bincount(group[once // max(tiles, 1)] * tiles + once % max(tiles, 1))
    return np.bincount(readers[group[window.of] * tiles + tile], requests[template[window.instruction]])


def share_sent(by_readers: np.ndarray, reads_as_one: int, under_way: float) -> Fraction:
    """Of requests by readers, see `requests_by_readers`, the share that goes to the L2."""
    sent, most = Fraction(0), Fraction(reads_as_one)
    for others, requests in enumerate(by_readers[1:].tolist()):
        sent += int(requests) / min(most, 1 + others * Fraction(under_way))
    return sent / int(by_readers.sum()) if sent else Fraction(1)


def read_time(
    trace: Trace,
    order: np.ndarray,
    *,
    running: int,
    xcds: int,
    cus: int,
    partitions: L2Partitions,
    request_bytes: int,
    alone: int,
) -> int:
    """Time [fs] of a read request at the L2.

    Parameters
    ----------
    trace, order, running, request_bytes
        See `requests_by_readers`.
    xcds, cus : int
        L2s, to which workgroups go in turn, and CUs of each.
    partitions : L2Partitions
        Whose reads go as one.
    alone : int [fs]
        Time of a request that goes by itself.
    """
    assert partitions.reads_as_one is not None and partitions.under_way is not None
    gpc = (partitions.group_of(cus)[:, None] * xcds + np.arange(xcds)).reshape(-1)
    by_readers = requests_by_readers(trace, order, running=running, gpc=gpc, request_bytes=request_bytes)
    return round(alone * share_sent(by_readers, partitions.reads_as_one, partitions.under_way))
