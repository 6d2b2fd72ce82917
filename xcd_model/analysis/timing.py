"""Traffic to time and joules: a roofline over the turns of a lockstep replay, busy times of a timed one, and energy.

    roofline = sum over windows of max over resources of (amount in the window / rate)  + latency in and out

Roofline: turns are grouped into windows as long as software pipelining can hide; within a window everything overlaps
and the slowest resource decides, between windows nothing does. The sum is a lower bound on kernel time with ideal
matrix pipes and no drift: use it to rank candidates, not to predict a stopwatch.

Energy is a range: rates per byte and operation times counts. No rates are published for AMD's GPUs; those in their
``[energy]`` tables are the general literature's, status *assumed*, each with the range in which it is taken to lie.
Only differences between candidates on one GPU mean anything: compare low with low and high with high, and believe the
sign where both ends agree. The H200's rates were measured on one, whose power limit bounds its time
(`limited_by_power`).
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
from xcd_model.spec.facts import Range
from xcd_model.spec.gpu import EnergyRates, Gpu


@dataclass(frozen=True)
class Time:
    """Predicted time of one launch, and how much of it each resource takes.

    Parameters
    ----------
    total_us : float [us]
    by_resource_us : dict of str to float [us]
        For each of compute, l2, fabric, mall, hbm, and of power where that is limited, see
        `xcd_model.analysis.timing.limited_by_power`. Lockstep: time of the windows that it decides; but for power they
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
        "l2": (counts[:, READ_REQUESTS] * traffic.l2_read_fs + counts[:, WRITE_REQUESTS] * times.l2_write).max(),
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
    instructions for 46 %, decision 0022; with two to four workgroups an SM the two add up as well, decision 0022.
    """
    if dtype not in gpu.peak_tflops:
        raise ReplayError(
            f"{gpu.name} has no peak rate for {dtype}; it has {', '.join(sorted(gpu.peak_tflops))}; "
            f"add peak_tflops.{dtype} to its description"
        )
    matrix_fs = flops_per_instruction / (gpu.sustained_tflops(dtype) * 1e12 / gpu.cus) * 1e15
    lanes = (gpu.limits.lanes_per_simd or math.inf) * gpu.limits.simds_per_cu
    vector_fs = vector_ops_per_instruction / (lanes * gpu.sustained_clock_mhz) * 1e9
    overlap = workgroups_per_cu > 1 and gpu.limits.matrix_beside_vector is not False
    return round(max(matrix_fs, vector_fs) if overlap else matrix_fs + vector_fs)


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
    moved = _moved(counts, traffic, gpu)
    mall_gbps = (gpu.mall and gpu.mall.bandwidth_gbps) or math.inf
    needed = {
        "compute": (per_cu * issue.compute_fs).max(axis=1) / 1e9,
        "l2": (moved["l2"] / (gpu.l2.read_bytes_per_cycle * cycles_per_us)).max(axis=1),
        "fabric": (moved["fabric"] / (gpu.fabric_bytes_per_cycle * cycles_per_us)).max(axis=1),
        "mall": moved["mall"].sum(axis=1) / (mall_gbps * 1e3),
        "hbm": moved["hbm"].sum(axis=1) / (gpu.hbm.bandwidth_gbps * 1e3),
    }
    names, table = list(needed), np.stack(list(needed.values()))
    slowest = table.argmax(axis=0)
    decided = {name: float(table[i, slowest == i].sum()) for i, name in enumerate(names)}
    latency_us = 2 * gpu.hbm.latency_ns / 1e3
    return Time(sum(decided.values()) + latency_us, decided, latency_us)


@dataclass(frozen=True, kw_only=True)
class Energy:
    """Energy of one launch, with its range; only differences between candidates on one GPU mean anything.

    Parameters
    ----------
    joules, low_joules, high_joules : float [J]
        At the middle, the low end and the high end of every assumed rate.
    parts : dict of str to float [J]
        ``joules`` by cause: compute, l2, fabric, mall, hbm, static; less what the GPU has not.
    """

    joules: float
    low_joules: float
    high_joules: float
    parts: dict[str, float]


def _moved(counts: np.ndarray, traffic: Traffic, gpu: Gpu) -> dict[str, np.ndarray]:
    """Bytes that pass the L2, the fabric, the Infinity Cache and the HBM, by the columns of some counts.

    counts : (..., n_columns)

    Dirty pieces are written through the Infinity Cache; a GPU without one moves nothing there.
    """
    counts = np.moveaxis(counts, -1, 0)
    written, fill = counts[WRITEBACKS] * traffic.write_request_bytes, traffic.fetch_bytes
    stored = counts[WRITE_REQUESTS] * traffic.write_request_bytes
    through = counts[MALL_REQUESTS] * fill + written
    return {
        "l2": counts[READ_REQUESTS] * gpu.l2.read_request_bytes + stored,
        "fabric": counts[READ_MISSES] * fill + written,
        "mall": through if gpu.mall else np.zeros_like(through),
        "hbm": (counts[READ_MISSES] - counts[MALL_HITS]) * fill + written,
    }


def _spent(
    traffic: Traffic, gpu: Gpu, rates: EnergyRates, *, flops: float, dtype: str
) -> dict[str, tuple[float, Range]]:
    """By cause, how much there is of it and what one costs [pJ]; without what is drawn in any case."""
    moved = {name: int(amount) for name, amount in _moved(traffic.per_xcd.sum(axis=0), traffic, gpu).items()}
    causes = {
        "compute": (flops, rates.flop_pj[dtype]),
        "l2": (moved["l2"], rates.l2_pj_per_byte),
        "fabric": (moved["fabric"], rates.fabric_pj_per_byte),
        "mall": (moved["mall"], rates.mall_pj_per_byte),
        "hbm": (moved["hbm"], rates.hbm_pj_per_byte),
    }
    return {name: (amount, rate) for name, (amount, rate) in causes.items() if rate is not None}


def limited_by_power(time: Time, traffic: Traffic, gpu: Gpu, *, flops: float, dtype: str) -> Time:
    """Time of a launch that may draw no more than ``power_w`` of the GPU's rates.

    Two bounds, and the later decides: the time of the replay, and that what the launch moves and computes takes its
    energy, at most ``power_w - static_w`` of it at a time.

    Parameters
    ----------
    time : Time
        At the sustained clock, which of such a GPU is the one that power does not limit.
    traffic : Traffic
    gpu : Gpu
    flops : float
        Operations of the whole launch, a multiply-add being two.
    dtype : str
        Of the operations.

    Returns
    -------
    Time
        With ``power`` among its resources; ``time`` itself where the GPU states no limit or no rate for ``dtype``.

    Source: measured on one H200, decision 0022.
    """
    rates = gpu.energy
    if rates is None or rates.power_w is None or dtype not in rates.flop_pj:
        return time
    spent = _spent(traffic, gpu, rates, flops=flops, dtype=dtype)
    dynamic_pj = sum(amount * rate.value for amount, rate in spent.values())
    power_us = dynamic_pj * 1e-6 / (rates.power_w.value - rates.static_w.value)
    return Time(max(time.total_us, power_us), time.by_resource_us | {"power": power_us}, time.latency_us)


def energy(traffic: Traffic, gpu: Gpu, *, flops: float, dtype: str, time_us: float) -> Energy:
    """Joules that the counts of a replay cost, with a range.

    Parameters
    ----------
    traffic : Traffic
    gpu : Gpu
        Needs ``energy``.
    flops : float
        Operations of the whole launch, a multiply-add being two.
    dtype : str
        Key of ``gpu.energy.flop_pj``.
    time_us : float
        Time of the launch, for the power that is drawn whatever happens [us].

    Returns
    -------
    Energy

    Raises
    ------
    ReplayError
        If the GPU has no rates, or none for ``dtype``, or if ``flops`` or ``time_us`` is negative or not finite.

    Source: the rates' own, in the GPU's description. O'Connor et al., MICRO 2017 (HBM); Horowitz, ISSCC 2014 (SRAM and
    arithmetic); Arunkumar et al., ISCA 2017 (links on a package).
    """
    rates = gpu.energy
    if rates is None:
        raise ReplayError(f"{gpu.name} has no energy rates; add a table [energy] to its description")
    if dtype not in rates.flop_pj:
        raise ReplayError(f"{gpu.name} has no energy rate for {dtype}; it has {', '.join(sorted(rates.flop_pj))}")
    for name, value in (("flops", flops), ("time_us", time_us)):
        if not (math.isfinite(value) and value >= 0):
            raise ReplayError(f"{name} = {value} must be a finite number, at least 0")
    spent = _spent(traffic, gpu, rates, flops=flops, dtype=dtype)
    spent["static"] = (time_us * 1e6, rates.static_w)  # a watt is a picojoule a picosecond
    parts = {name: amount * rate.value * 1e-12 for name, (amount, rate) in spent.items()}
    return Energy(
        joules=sum(parts.values()),
        low_joules=sum(amount * rate.low * 1e-12 for amount, rate in spent.values()),
        high_joules=sum(amount * rate.high * 1e-12 for amount, rate in spent.values()),
        parts=parts,
    )
