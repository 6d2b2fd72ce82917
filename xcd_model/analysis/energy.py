"""Traffic to joules, as a range; and from joules to time, on a GPU whose limit of power is known.

Nobody has published what a byte or an operation costs on AMD's GPUs. The rates in their ``[energy]`` tables are the
general literature's, status *assumed*, each with the range in which it is taken to lie, so that only differences
between candidates on one GPU mean anything: compare low with low and high with high, and believe the sign where both
ends agree. A joule from here is not to be held against a power meter. The H200's rates were measured on one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xcd_model.analysis.timing import Time
from xcd_model.errors import ReplayError
from xcd_model.replay.traffic import MALL_REQUESTS, READ_MISSES, READ_REQUESTS, WRITE_REQUESTS, WRITEBACKS, Traffic
from xcd_model.spec.facts import Range
from xcd_model.spec.gpu import Gpu
from xcd_model.spec.parts import EnergyRates


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


def moved_bytes(traffic: Traffic, gpu: Gpu) -> dict[str, int]:
    """Bytes that pass the L2, the fabric, the Infinity Cache and the HBM.

    Dirty pieces are written through the Infinity Cache; a GPU without one moves nothing there.
    """
    written = traffic.total(WRITEBACKS) * traffic.write_request_bytes
    requests = traffic.total(READ_REQUESTS) * gpu.l2.read_request_bytes
    filled = traffic.total(MALL_REQUESTS) * traffic.fetch_bytes + written
    return {
        "l2": requests + traffic.total(WRITE_REQUESTS) * traffic.write_request_bytes,
        "fabric": traffic.total(READ_MISSES) * traffic.fetch_bytes + written,
        "mall": filled if gpu.mall else 0,
        "hbm": traffic.hbm_read_bytes + traffic.hbm_write_bytes,
    }


def _spent(
    traffic: Traffic, gpu: Gpu, rates: EnergyRates, *, flops: float, dtype: str
) -> dict[str, tuple[float, Range]]:
    """By cause, how much there is of it and what one costs [pJ]; without what is drawn in any case."""
    moved = moved_bytes(traffic, gpu)
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

    Two bounds, and the later decides. Without a limit matrix cores would run at the peak clock, where `compute_fs` has
    them at the sustained one. And what the launch moves and computes takes its energy, at most ``power_w - static_w``
    of it at a time.

    Parameters
    ----------
    time : Time
        At the sustained clock.
    traffic : Traffic
    gpu : Gpu
    flops : float
        Operations of the whole launch, a multiply-add being two.
    dtype : str
        Of the operations.

    Returns
    -------
    Time
        With ``power`` among its resources, and compute at the peak clock; ``time`` itself where the GPU states no limit
        or no rate for ``dtype``.

    Source: measured on one H200, decision 0021.
    """
    rates = gpu.energy
    if rates is None or rates.power_w is None or dtype not in rates.flop_pj:
        return time
    spent = _spent(traffic, gpu, rates, flops=flops, dtype=dtype)
    dynamic_pj = sum(amount * rate.value for amount, rate in spent.values())
    power_us = dynamic_pj * 1e-6 / (rates.power_w.value - rates.static_w.value)
    compute_us = time.by_resource_us["compute"] * gpu.sustained_clock_mhz / gpu.clock_mhz
    total_us = max(time.total_us - time.by_resource_us["compute"] + compute_us, power_us)
    taken_us = time.by_resource_us | {"compute": compute_us, "power": power_us}
    return Time(total_us, taken_us, time.latency_us)


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
