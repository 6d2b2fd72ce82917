"""Traffic to time: a roofline over the turns of a lockstep replay, and the busy time of each resource in a timed one.

    roofline = sum over windows of max over resources of (amount in the window / rate)  + latency in and out

Roofline: turns are grouped into windows as long as software pipelining can hide; within a window everything overlaps
and the slowest resource decides, between windows nothing does. The sum is a lower bound on kernel time with ideal
matrix pipes and no drift: use it to rank candidates, not to predict a stopwatch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from xcd_model.errors import ReplayError
from xcd_model.replay.service_times import IssueModel, service_times_of
from xcd_model.replay.traffic import (
    INSTRUCTIONS,
    MALL_HITS,
    MALL_REQUESTS,
    READ_MISSES,
    READ_REQUESTS,
    WRITE_REQUESTS,
    WRITEBACKS,
    Traffic,
)
from xcd_model.spec.gpu import Gpu


@dataclass(frozen=True)
class Time:
    """Predicted time of one launch, and how much of it each resource takes.

    Parameters
    ----------
    total_us : float [us]
    by_resource_us : dict of str to float [us]
        For each of compute, l2, fabric, mall, hbm, and of power where that is limited, see
        `xcd_model.analysis.energy.limited_by_power`. Lockstep: time of the windows that it decides; but for power they
        sum to ``total_us`` with ``latency_us``. Timed: time it was busy, of the busiest XCD where each has its own.
    latency_us : float [us]
        Lockstep: one trip to memory before the first window, and one back after the last. Timed: 0.
    """

    total_us: float
    by_resource_us: dict[str, float]
    latency_us: float = 0.0

    @property
    def limiter(self) -> str:
        """The resource that takes most of the time."""
        return max(self.by_resource_us, key=lambda name: self.by_resource_us[name])


def timed_time(traffic: Traffic, gpu: Gpu, issue: IssueModel) -> Time:
    """Time of a timed replay, and how long each resource was busy in it.

    Parameters
    ----------
    traffic : Traffic
        Of `xcd_model.replay.timed.replay_timed`.
    gpu : Gpu
    issue : IssueModel
        That it was replayed at.

    Returns
    -------
    Time
    """
    times, counts = service_times_of(gpu), traffic.per_xcd.astype(float)
    fills, written = counts[:, READ_MISSES], counts[:, WRITEBACKS]
    from_hbm = fills.sum() - counts[:, MALL_HITS].sum()
    taken_fs = {
        "compute": counts[:, INSTRUCTIONS].max() * issue.compute_fs / gpu.cus_per_xcd,
        "l2": (counts[:, READ_REQUESTS] * times.l2_read + counts[:, WRITE_REQUESTS] * times.l2_write).max(),
        "fabric": (fills * times.fabric + written * times.fabric_write).max(),
        "mall": fills.sum() * times.mall + written.sum() * times.mall_write,
        "hbm": from_hbm * times.hbm + written.sum() * times.hbm_write + traffic.activation_fs,
    }
    return Time(traffic.time_fs / 1e9, {name: float(fs) / 1e9 for name, fs in taken_fs.items()})


def compute_fs(
    gpu: Gpu,
    *,
    flops_per_instruction: float,
    dtype: str,
    vector_ops_per_instruction: float = 0.0,
    workgroups_per_cu: int = 1,
) -> int:
    """Compute time of one tensor instruction on one CU at the documented peak and the sustained clock [fs].

    Parameters
    ----------
    gpu : Gpu
    flops_per_instruction : float
        Floating-point operations of the kernel over its tensor instructions.
    dtype : str
        Key of ``gpu.peak_tflops``.
    vector_ops_per_instruction : float
        Lane instructions of the vector units over the kernel's tensor instructions, in addition to those flops: a
        workgroup does one after the other.
    workgroups_per_cu : int
        Where there are two or more, the units of a CU work for different workgroups at the same time, unless
        ``gpu.limits.matrix_beside_vector`` denies it.

    Raises
    ------
    ReplayError
        If the GPU has no peak rate for ``dtype``.

    Source: attention with one workgroup an SM keeps an H200's matrix unit busy for 48 % of the time and issues
    instructions for 46 %, decision 0022; with two to four workgroups an SM the two add up as well, decision 0024.
    """
    _check_dtype(gpu, dtype)
    matrix_fs = flops_per_instruction / (gpu.sustained_tflops(dtype) * 1e12 / gpu.cus) * 1e15
    lanes = (gpu.limits.lanes_per_simd or math.inf) * gpu.limits.simds_per_cu
    vector_fs = vector_ops_per_instruction / (lanes * gpu.sustained_clock_mhz) * 1e9
    overlap = workgroups_per_cu > 1 and gpu.limits.matrix_beside_vector is not False
    return round(max(matrix_fs, vector_fs) if overlap else matrix_fs + vector_fs)


def _check_dtype(gpu: Gpu, dtype: str) -> None:
    if dtype not in gpu.peak_tflops:
        raise ReplayError(
            f"{gpu.name} has no peak rate for {dtype}; it has {', '.join(sorted(gpu.peak_tflops))}; "
            f"add peak_tflops.{dtype} to its description"
        )


def _windows(per_bin: np.ndarray, bins: int) -> np.ndarray:
    """(n_windows, ...) float: sums of ``bins`` bins each; the last window may be short."""
    padding = -per_bin.shape[0] % bins
    padded = np.concatenate([per_bin, np.zeros((padding, *per_bin.shape[1:]), per_bin.dtype)])
    return padded.reshape(-1, bins, *per_bin.shape[1:]).sum(axis=1).astype(float)


def _busiest_cu(traffic: Traffic, cus_per_xcd: int) -> np.ndarray:
    """(n_bins, n_xcds): instructions of each XCD's busiest CU; a CU works off its own workgroups."""
    issued = traffic.timeline[:, :, INSTRUCTIONS]
    first_turn = traffic.turns_per_bin * np.arange(issued.shape[0])[:, None]
    turns = np.minimum(traffic.turns_per_bin, traffic.turns - first_turn)  # the last bin may be short
    return np.maximum(issued / cus_per_xcd, np.minimum(issued, turns))


def roofline(traffic: Traffic, gpu: Gpu, issue: IssueModel) -> Time:
    """Time that the counts of a lockstep replay take at the documented and measured rates of a GPU.

    Parameters
    ----------
    traffic : Traffic
    gpu : Gpu
    issue : IssueModel
        How long a tensor instruction computes, and how many of one workgroup are in flight: the turns of a window.

    Returns
    -------
    Time

    Source: Williams, Waterman and Patterson, CACM 52(4), 2009 (the roofline), per window and per XCD.
    """
    bins = max(1, -(-issue.in_flight // traffic.turns_per_bin))
    counts = _windows(traffic.timeline, bins)
    cycles_per_us = gpu.clock_mhz
    per_cu = _windows(_busiest_cu(traffic, gpu.cus_per_xcd), bins)
    fill, piece = traffic.fetch_bytes, traffic.write_request_bytes
    l2_bytes = counts[:, :, READ_REQUESTS] * gpu.l2.read_request_bytes + counts[:, :, WRITE_REQUESTS] * piece
    fabric_bytes = counts[:, :, READ_MISSES] * fill + counts[:, :, WRITEBACKS] * piece
    mall_bytes = counts[:, :, MALL_REQUESTS].sum(axis=1) * fill + counts[:, :, WRITEBACKS].sum(axis=1) * piece
    fills = counts[:, :, READ_MISSES].sum(axis=1) - counts[:, :, MALL_HITS].sum(axis=1)
    hbm_bytes = fills * fill + counts[:, :, WRITEBACKS].sum(axis=1) * piece
    needed = {
        "compute": (per_cu * issue.compute_fs).max(axis=1) / 1e9,
        "l2": (l2_bytes / (gpu.l2.read_bytes_per_cycle * cycles_per_us)).max(axis=1),
        "fabric": (fabric_bytes / (gpu.fabric_bytes_per_cycle * cycles_per_us)).max(axis=1),
        "mall": mall_bytes / (gpu.mall.bandwidth_gbps * 1e3)
        if gpu.mall and gpu.mall.bandwidth_gbps
        else np.zeros(counts.shape[0]),
        "hbm": hbm_bytes / (gpu.hbm.bandwidth_gbps * 1e3),
    }
    names, table = list(needed), np.stack(list(needed.values()))
    slowest = table.argmax(axis=0)
    decided = {name: float(table[i, slowest == i].sum()) for i, name in enumerate(names)}
    latency_us = 2 * gpu.hbm.latency_ns / 1e3
    return Time(sum(decided.values()) + latency_us, decided, latency_us)
