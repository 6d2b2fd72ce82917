"""What follows from an order and a launch on NVIDIA's GPUs: rates of the L2 and of the way into an SM, the L1's size.

    a read at the L2 takes       alone * mean over requests of 1 / as one
      readers k                  workgroups on a GPC that load the same tile, among those that run at once
      as one                     min(reads_as_one, 1 + (k - 1) * under_way)     requests, of which one goes to the L2
    a request into an SM takes   alone + in step * (together - alone)           in step: the mean over loads
      in step(i)                 mean of min(1, shared(i, j) / most(i)) over the others j that run beside i
      shared(i, j), most(i)      loads of j of tiles that i loads, too; loads of i of the operand that it loads most
    the L1 has                   array - carve-out        carve-out: smallest published size that shared memory asks for

The replay's hook is `times_under`. Both rates are found from a few windows of the order, each as many workgroups as run
at once.

Reads go as one: the L2 request coalescer joins reads of one line by SMs of one GPC while one of them is under way. Each
of the other readers' requests is under way with one for a small part of the time, ``under_way``: they start together
and drift apart. Workgroups go to GPC after GPC, neighbours in the order to one. An SM takes in what others asked for no
faster than what it asked for itself. Decision 0022.

In step: workgroups that wait for the same lines load at the same time, since whoever is ahead waits for memory, and
whoever follows finds the lines there. The L2 gives out what they ask for in turn. ``alone`` is the time of a request at
the rate of the SM's own way in, ``together`` at its part of what the L2 gives out; both are measured, no constant is
fitted. Where the L2 has room for all that the running workgroups load, nobody waits for memory, and nobody is in step.
Decision 0022.

Carve-out: L1 and shared memory are one array. The driver gives shared memory one of a few sizes before a launch, and
the rest is the L1. The sizes are published, the choice is not. The rule was read off 240 launches of one kernel, by
threads, registers and shared memory of a workgroup: room for twice as many workgroups as would fit if they took none,
but no more than half of all there is; beyond that, and for workgroups that fill an SM or have as many threads as can
be, room for those that fit and no more.

Sources: Nsight Compute's counters of the coalescer (``lrc__*``), a microbenchmark and counts on one H200
(docs/laboratory/h200-l2.md#reads-that-meet-on-their-way-to-the-l2); NVIDIA Hopper Tuning Guide for the carve-outs, and
``benchmarks/validation/data/machine/h200_carve_outs.csv``, of which the rule gives 239.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from xcd_model.dispatch import workgroups_per_cu
from xcd_model.resources import Resources
from xcd_model.spec.gpu import Gpu
from xcd_model.spec.nvidia import L2Partitions
from xcd_model.trace.tiles import tile_numbers, touch_more
from xcd_model.trace.trace import Trace

WINDOWS = 4  # of the order, evenly spaced
ASKED = 8  # workgroups of each window, evenly spaced, whose share in step is counted


def times_under(times: Any, trace: Trace, order: np.ndarray, gpu: Gpu, running: int) -> Any:
    """`xcd_model.replay.service_times.ServiceTimes` under one order, ``running`` workgroups at once.

    Where several SMs ask for the same lines one of them takes in less (``cu_fill``), and the L2 is asked once
    (``l2_read``). The same times on a GPU without either: on all of AMD's.
    """
    partitions, cus = gpu.l2_partitions, gpu.cus_per_xcd
    if times.cu_fill:
        l2_lines, alone = gpu.l2.size_bytes // gpu.l2.line_bytes, times.cu_fill
        how: dict[str, int] = {"running": running, "cus": cus, "l2_lines": l2_lines, "of_l2": times.l2_read}
        times = times._replace(cu_fill=fill_time(trace, order, alone=alone, **how))
    if partitions and partitions.reads_as_one:
        how = {"running": running, "xcds": gpu.xcds, "cus": cus, "request_bytes": gpu.l2.read_request_bytes}
        times = times._replace(l2_read=read_time(trace, order, partitions=partitions, alone=times.l2_read, **how))
    return times


class Window(NamedTuple):
    """Workgroups that run at once."""

    n: int  # workgroups, in the order in which they are dispatched
    # (n_loads,) int array: each load's instruction, the workgroup of the window that issues it, ascending, and the tile
    # that it loads
    instruction: np.ndarray
    of: np.ndarray
    tile: np.ndarray


def spaced(n: int, last: int) -> list[int]:
    """``n`` evenly spaced numbers from 0 to ``last``, once each."""
    return sorted({last * i // (n - 1) for i in range(n)})


def windows(trace: Trace, order: np.ndarray, running: int) -> Iterator[Window]:
    """Windows of an order, of ``running`` workgroups each.

    Workgroups that touch nothing are left out: they end as they begin, and run beside nobody.
    """
    order = order[trace.start[order] < trace.start[order + 1]]
    n = min(running, order.size)
    tiles = tile_numbers(trace)
    for first in spaced(WINDOWS, order.size - n):
        start, end = (trace.start[order[first : first + n] + i] for i in range(2))
        counts = end - start
        before = np.cumsum(counts) - counts
        instruction = np.repeat(start - before, counts) + np.arange(counts.sum())
        loads = ~trace.is_write[trace.template[instruction]]
        instruction = instruction[loads]
        yield Window(n, instruction, np.repeat(np.arange(n), counts)[loads], tiles[instruction])


def requests_by_readers(
    trace: Trace, order: np.ndarray, *, running: int, gpc: np.ndarray, request_bytes: int
) -> np.ndarray:
    """(most readers + 1,) float64: requests of the windows for which 0, 1, 2, ... workgroups on a GPC ask.

    gpc : (cus,) int array, of each SM, in the order in which workgroups are dispatched to them
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
    """Share of requests that goes to the L2, of requests by readers (`requests_by_readers`)."""
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
    """Time [fs] of a read request at the L2; ``alone`` [fs] is that of a request that goes by itself."""
    assert partitions.reads_as_one is not None and partitions.under_way is not None
    gpc = (partitions.group_of(cus)[:, None] * xcds + np.arange(xcds)).reshape(-1)
    by_readers = requests_by_readers(trace, order, running=running, gpc=gpc, request_bytes=request_bytes)
    return round(alone * share_sent(by_readers, partitions.reads_as_one, partitions.under_way))


def share_in_step(trace: Trace, order: np.ndarray, running: int, l2_lines: int) -> Fraction:
    """Share of the other running workgroups with which one is in step: 0 if no two load the same, 1 if all do."""
    found = [one for window in windows(trace, order, running) for one in _shares(trace, window, l2_lines)]
    loads = sum(weight for weight, _ in found)
    return sum((weight * share for weight, share in found), Fraction(0)) / max(loads, 1)


def _shares(trace: Trace, window: Window, l2_lines: int) -> list[tuple[int, Fraction]]:
    """Loads of each workgroup that is asked, and with what share of the others it is in step."""
    n, instruction, of, tile = window
    tensor = trace.tensor[trace.template[instruction]]
    at = np.searchsorted(of, np.arange(n + 1))
    waits = touch_more(trace, instruction[np.unique(tile, return_index=True)[1]], l2_lines)
    wanted = np.zeros(int(tile.max(initial=0)) + 1, np.bool_)
    found = []
    for one in spaced(ASKED, n - 1) if n > 1 else ():
        mine = slice(at[one], at[one + 1])
        if at[one] == at[one + 1]:
            continue
        wanted[tile[mine]] = True
        most = int(np.bincount(tensor[mine]).max())
        shared = np.minimum(np.bincount(of[wanted[tile]], minlength=n), most)
        share = Fraction(int(shared.sum() - shared[one]), most * (n - 1)) if waits else Fraction(0)
        found.append((int(at[one + 1] - at[one]), share))
        wanted[tile[mine]] = False
    return found


def fill_time(trace: Trace, order: np.ndarray, *, running: int, cus: int, l2_lines: int, alone: int, of_l2: int) -> int:
    """Time [fs] of a request that an SM takes in; ``alone`` at the rate of its own way in, ``of_l2`` at the L2's."""
    busy = min(cus, running, order.size)
    share = share_in_step(trace, order, running, l2_lines)
    return round(alone + share * max(0, busy * of_l2 - alone))


def l1_after_shared_memory(resources: Resources, gpu: Gpu) -> Gpu:
    """GPU with the L1 that a kernel's launches leave: the same where LDS is an array of its own, none past the L1."""
    l1 = gpu.l1
    if l1 is None or l1.lds_carve_outs is None:
        return gpu
    if resources.past_l1:
        return replace(gpu, l1=None)
    left_bytes = l1.size_bytes - _carve_out_bytes(resources, gpu, l1.lds_carve_outs)
    left = replace(l1, size_bytes=left_bytes, ways=left_bytes // (l1.sets * l1.line_bytes), lds_carve_outs=None)
    return replace(gpu, l1=left)


def _carve_out_bytes(resources: Resources, gpu: Gpu, sizes: Sequence[int]) -> int:
    """Part of the array that is LDS during a launch."""
    each, most = resources.lds_bytes, gpu.limits.workgroups_per_cu
    least = _enough(each * workgroups_per_cu(resources, gpu), sizes)
    without = workgroups_per_cu(replace(resources, lds_bytes=0), gpu)
    if without == 1 or resources.threads == gpu.limits.threads_per_workgroup:
        return least
    roomy = most if each <= (gpu.limits.lds_reserved_bytes or 0) else min(2 * without, most)
    half = _enough(sizes[-1] // 2, sizes)
    return max(least, min(_enough(each * roomy, sizes), half))


def _enough(n_bytes: int, sizes: Sequence[int]) -> int:
    """Smallest of the sizes that holds so many bytes, or the largest of all."""
    return next((size for size in sizes if size >= n_bytes), sizes[-1])
