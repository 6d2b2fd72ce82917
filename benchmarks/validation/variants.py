"""The model and its ablations: each leaves one thing out."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from swizzle_sim.pricing.replaying import Replayer
from xcd_model import Gpu, Trace, Traffic, workgroups_per_cu
from xcd_model.errors import UnknownName
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS
from xcd_model.trace.trace import SECTOR_BYTES

from .ablations import replay_plain, reuse_counts
from .rows import Row
from .workloads import attention
from .workloads.from_row import tiles_of, workload
from .workloads.schedules import place
from .workloads.workload import Workload

VARIANTS = {
    "timed": "the timed replay, as it is",
    "lockstep": "no time: every resident workgroup issues in turn",
    "no-l1": "timed, requests straight to the L2",
    "modulo": "timed, L2 sets by plain modulo",
    "lru": "lockstep, no L1, each L2 one fully associative LRU of its capacity",
    "analytic": "no cache: distinct lines over lines asked, among the workgroups that run at once on an XCD",
}
LAUNCHED_BY_ORDER = (*attention.KERNELS, "attention_dense")  # what a workgroup is depends on the order
Counts = dict[str, float]


def predict(row: Row, variant: str, gpu: Gpu) -> Counts:
    """Replay what a row measured, under one variant of the model."""
    if variant not in VARIANTS:
        raise UnknownName("variant", variant, VARIANTS)
    began = time.perf_counter()
    work, order, device = _placed(row, _workload(row), without(gpu, variant))
    if variant in ("lru", "analytic"):
        counts = _plain(variant, work, order, device)
    else:
        counts = _replayed("lockstep" if variant == "lockstep" else "timed", work, order, device)
    cut = {"cut": work.note} if work.note else {}
    return {**counts, **cut, "flops": work.flops, "seconds": round(time.perf_counter() - began, 2)}


_workloads: dict[Any, Workload] = {}
_replayers: dict[Any, Replayer[Workload]] = {}


def _workload(row: Row) -> Workload:
    """Workload of the row before, where it is the same; its trace is built once."""
    sized = (tuple(row.problem.items()), tuple(row.resources.items()))
    key = (row.kernel, *sized, row.order if row.kernel in LAUNCHED_BY_ORDER else "")
    if key not in _workloads:
        _workloads.clear()
        made = workload(row)
        _workloads[key] = dataclasses.replace(made, build_trace=lru_cache(maxsize=1)(made.build_trace))
    return _workloads[key]


def without(gpu: Gpu, variant: str) -> Gpu:
    """GPU without what a variant leaves out."""
    if variant == "no-l1":
        return dataclasses.replace(gpu, l1=None)
    if variant == "modulo":
        l2 = dataclasses.replace(
            gpu.l2, index="modulo", index_channels=None, index_interleave_bytes=None, index_rows=None
        )
        return dataclasses.replace(gpu, l2=l2)
    return gpu


def _placed(row: Row, work: Workload, gpu: Gpu) -> tuple[Workload, np.ndarray, Gpu]:
    """Workload, order and GPU to replay: as they are for a permutation, else rearranged."""
    tiles = tiles_of(row, work, gpu.xcds)
    if tiles.ndim == 1 and np.array_equal(np.bincount(tiles.clip(0), minlength=tiles.size), np.ones(tiles.size)):
        return work, tiles, gpu
    whole = work.build_trace(gpu.l2.line_bytes)
    found = place(whole, tiles, gpu.xcds)
    share = found.trace.n_instructions / whole.n_instructions
    rearranged = dataclasses.replace(
        work,
        build_trace=lambda line_bytes: found.trace,
        issued_flops=work.issued_flops * share,
        vector_ops=work.vector_ops * share,
        flops=work.flops * share if not row.bijective else work.flops,
    )
    device = gpu if found.xcds == gpu.xcds else dataclasses.replace(gpu, xcds=found.xcds, dispatch_offset=0)
    return rearranged, np.arange(found.trace.n_workgroups), device


def _replayer(replay: str, work: Workload, gpu: Gpu) -> Replayer[Workload]:
    """Replayer of the last workload, whose plan all its orders share; one of each replay is kept."""
    key = (replay, id(work), gpu)
    if key not in _replayers:
        if any(there.kernel is not work or there.gpu != gpu for there in _replayers.values()):
            _replayers.clear()
        _replayers[key] = Replayer(work, gpu, replay=replay)
    return _replayers[key]


def _replayed(replay: str, work: Workload, order: np.ndarray, gpu: Gpu) -> Counts:
    replayer = _replayer(replay, work, gpu)
    traffic = replayer.traffic(order)
    found = replayer.time(traffic)
    counts = counts_of(traffic, gpu) | {"time_us": found.total_us, "workgroups_per_cu": replayer.occupancy}
    if work.resources.past_l1:
        counts["l1_hit_pct"] = 0.0
    elif gpu.l1 and gpu.l2.read_request_bytes == SECTOR_BYTES:
        counts["l1_hit_pct"] = 100 * (1 - counts["l2_read_requests"] / max(1, l1_sectors(replayer.trace)))
    return {name: value for name, value in counts.items() if not math.isnan(value)}


def counts_of(traffic: Traffic, gpu: Gpu) -> Counts:
    """What quantities are taken from."""
    reads = traffic.total(READ_REQUESTS)
    return {
        "l2_hit_pct": 100 * traffic.l2_hit_rate,
        "l2_requests": traffic.l2_requests,
        "l2_hits": traffic.l2_hits,
        "l2_misses": traffic.l2_misses,
        "l2_read_requests": reads,
        "l2_read_misses": traffic.total(READ_MISSES),
        "l2_late_hits": traffic.hits_under_miss,
        "l2_far_read_bytes": traffic.remote_hits * gpu.l2.read_request_bytes,
        "l2_read_bytes": reads * gpu.l2.read_request_bytes,
        "fetch_bytes": traffic.fetch_bytes,
        "l1_hit_pct": 100 * traffic.l1_hit_rate,
        "mall_hit_pct": 100 * traffic.mall_hit_rate,
        "hbm_read_bytes": traffic.hbm_read_bytes,
        "hbm_write_bytes": traffic.hbm_write_bytes,
        "flushed_bytes": traffic.flushed * gpu.l2.write_request_bytes,
        "launch": traffic.launch,
        "simulated_fraction": traffic.simulated_fraction,
    }


def l1_sectors(trace: Trace) -> int:
    """Sectors that the reads of a trace ask of the L1s, as Nsight Compute counts them: of a line, all for each request.

    The same sectors for every order. A line of which two waves ask for different sectors counts too many.
    """
    each = np.add.reduceat(trace.wave_requests * np.bitwise_count(trace.sectors), trace.rel_start[:-1], dtype=np.int64)
    return int(each[trace.template][~trace.is_write[trace.template]].sum())


def _plain(variant: str, work: Workload, order: np.ndarray, gpu: Gpu) -> Counts:
    trace, per_cu = work.build_trace(gpu.l2.line_bytes), workgroups_per_cu(work.resources, gpu)
    counts: Callable[..., np.ndarray] = replay_plain if variant == "lru" else reuse_counts
    found = [float(count) for count in counts(trace, gpu, order, workgroups_per_cu=per_cu)]
    reads, writes = requests_of(trace, gpu)
    requests, misses = reads + writes, found[0] + found[1]
    by_name = {
        "l2_hit_pct": 100 * (1 - misses / requests),
        "l2_requests": requests,
        "l2_hits": requests - misses,
        "l2_misses": misses,
        "l2_read_requests": reads,
        "l2_read_misses": found[0],
        "l2_read_bytes": reads * gpu.l2.read_request_bytes,
        "fetch_bytes": gpu.l2.line_bytes,  # both count whole lines
        "workgroups_per_cu": per_cu,
    }
    if gpu.mall is None:
        by_name["hbm_read_bytes"] = found[0] * gpu.l2.line_bytes
    return by_name


def requests_of(trace: Trace, gpu: Gpu) -> tuple[int, int]:
    """Read and write requests of a trace without an L1."""
    each = trace.requests_per_template(gpu.l2.read_request_bytes, gpu.l2.write_request_bytes)[trace.template]
    write = trace.is_write[trace.template]
    return int(each[~write].sum()), int(each[write].sum())
