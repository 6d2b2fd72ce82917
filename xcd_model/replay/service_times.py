"""How long one request takes at each level: a GPU's bandwidths and latencies as whole femtoseconds.

    time of a request [fs] = bytes / (bytes a cycle) * 1e9 / clock [MHz]   or   bytes / bandwidth [GB/s] * 1e6

Compute is charged to loads and stores: every tensor instruction, a store too, computes for

    compute_fs = (flops of the kernel / its tensor instructions) / peak flops a CU       (`xcd_model.compute_fs`)

A trace has no compute instructions, since neither the access models nor the capture of a kernel say between which loads
its arithmetic stands; a workgroup's sum is exact, and a main loop's loads come at the pace of its arithmetic. What that
costs: times depend, by less than an instruction's compute a workgroup, on how finely a trace is cut into instructions,
and an epilogue's stores compute as long as a load of the loop. A separate kind of instruction would change every
predicted time, and the constants fitted to measured ones.
"""

from __future__ import annotations

from typing import NamedTuple

from xcd_model.compiled.by_reference import by_reference
from xcd_model.errors import ReplayError
from xcd_model.spec.gpu import Gpu
from xcd_model.trace.trace import Trace

MAX_FS = 2**50  # a step of 18 minutes: beyond it, sums of times could leave 64 bits
VARIATION_UNIT = 2**16


@by_reference
class IssueModel(NamedTuple):
    """How a kernel's workgroups issue and compute: what a timed replay needs to know besides memory.

    Parameters
    ----------
    in_flight : int
        Tensor instructions of one workgroup between issue and the end of their compute, at least 1.
    compute_fs : int [fs]
        Compute time of one tensor instruction on one CU.
    jitter_fs : int [fs]
        Largest delay added to a load, drawn evenly from 0 for each (workgroup, instruction); 0 for none.
    seed : int
        Of the jitter and the speed variation.
    speed_variation : int [1 / `VARIATION_UNIT`]
        Each workgroup computes slower or faster than ``compute_fs`` says by up to this, drawn evenly.
    step : int
        Loads of a pipelined loop's step, a divisor of ``in_flight`` below it; 0 where loads wait for no other load.
        The loads of a step go out when the data of all earlier steps has arrived but that of the last
        ``in_flight / step - 2``. The compute of a step begins with the last of its loads.
    remap_fs : int [fs]
        Time for which the remap of a workgroup keeps its CU's scalar unit busy, which serves one after the other.
    remap_wait_fs : int [fs]
        Least time from when a workgroup could begin until it is remapped.
    step_fs : int [fs]
        Time from the moment at which a step's first load could go out until it does: addresses, products that are
        issued first, and waits of a CU's workgroups for each other that its queues do not have.
    after_products : bool
        The loads of a step wait until the step whose places in flight they take is computed as a whole; then ``step``
        may be ``in_flight``.
    """

    in_flight: int
    compute_fs: int
    jitter_fs: int = 0
    seed: int = 0
    speed_variation: int = 0
    step: int = 0
    remap_fs: int = 0
    step_fs: int = 0
    after_products: bool = False
    remap_wait_fs: int = 0

    def check(self) -> None:
        """Refuse what cannot be replayed, by value and rule."""
        times = ("compute_fs", "jitter_fs", "remap_fs", "remap_wait_fs", "step_fs")
        long = f"0..{MAX_FS} fs (18 minutes): cut the kernel into more instructions"
        units = f"0..{VARIATION_UNIT - 1}, in units of compute_fs / {VARIATION_UNIT}"
        ranges = {
            "in_flight": (1, 1024, "1..1024 (num_stages times loads a step)"),
            **dict.fromkeys(times, (0, MAX_FS, long)),
            "seed": (0, 2**63 - 1, "0..2**63 - 1"),
            "speed_variation": (0, VARIATION_UNIT - 1, units),
        }
        for name, (low, high, rule) in ranges.items():
            if not low <= getattr(self, name) <= high:
                raise ReplayError(f"{name} = {getattr(self, name)} is out of range; must be {rule}")
        if self.after_products and not self.step:
            raise ReplayError("after_products = True needs a step, whose loads wait")
        steps = 1 if self.after_products else 2  # at least in flight
        if self.step and (self.step < 0 or self.in_flight < steps * self.step or self.in_flight % self.step):
            raise ReplayError(
                f"step = {self.step} must be 0, or divide in_flight = {self.in_flight} and be below it "
                "(with after_products, at most it)"
            )


def speed_variation_of(gpu: Gpu) -> int:
    """Half width [1 / `VARIATION_UNIT`] of the even draw whose standard deviation is the GPU's ``compute_spread``."""
    return round(3**0.5 * gpu.compute_spread * VARIATION_UNIT)


@by_reference
class ServiceTimes(NamedTuple):
    """Time of one fill or one write request [fs], and the load-to-use latencies [fs]; 0 for an absent level.

    ``hbm_row_read`` and ``hbm_row_write`` are the least that a read or write takes that activates a row,
    ``turnaround`` is the mean extra latency of reads between writes, ``l2_remote`` that of a hit in the remote
    partition of an L2, ``workgroup_gap`` the time from a workgroup to the next in its place, and ``copy``
    what a step of copies into LDS takes besides the latency of where the data is.
    """

    l1: int
    l2_read: int
    l2_write: int
    fabric: int
    fabric_write: int
    mall: int
    mall_write: int
    hbm: int
    hbm_write: int
    hbm_row_read: int
    hbm_row_write: int
    l1_latency: int
    l2_latency: int
    l2_remote: int
    mall_latency: int
    hbm_latency: int
    turnaround: int
    workgroup_gap: int
    copy: int
    cu_fill: int


def service_times_of(gpu: Gpu) -> ServiceTimes:
    """Times of a GPU at its peak clock."""
    cycle_fs = 1e9 / gpu.clock_mhz
    fill, read, write = gpu.l2.fetch_bytes, gpu.l2.read_request_bytes, gpu.l2.write_request_bytes
    port, fabric = gpu.l2.read_bytes_per_cycle, gpu.fabric_bytes_per_cycle
    mall = 1e6 / gpu.mall.bandwidth_gbps if gpu.mall and gpu.mall.bandwidth_gbps else 0.0  # [fs] a byte
    hbm = 1e6 / gpu.hbm.bandwidth_gbps
    return ServiceTimes(
        l1=round(gpu.l1.line_bytes / gpu.l1.read_bytes_per_cycle * cycle_fs) if gpu.l1 else 0,
        l2_read=round(read / port * cycle_fs),
        l2_write=round(write / gpu.l2.write_bytes_per_cycle * cycle_fs),
        fabric=round(fill / fabric * cycle_fs),
        fabric_write=round(write / fabric * cycle_fs),
        mall=round(fill * mall),
        mall_write=round(write * mall),
        hbm=round(fill * hbm),
        hbm_write=round(write * hbm),
        hbm_row_read=round(gpu.hbm_rows.read_ps * 1e3) if gpu.hbm_rows else 0,
        hbm_row_write=round(gpu.hbm_rows.write_ps * 1e3) if gpu.hbm_rows else 0,
        l1_latency=round(gpu.l1.latency_ns * 1e6) if gpu.l1 else 0,
        l2_latency=round(gpu.l2.latency_ns * 1e6),
        l2_remote=round(gpu.l2_partitions.remote_ns * 1e6) if gpu.l2_partitions else 0,
        mall_latency=round(gpu.mall.latency_ns * 1e6) if gpu.mall else 0,
        hbm_latency=round(gpu.hbm.latency_ns * 1e6),
        turnaround=round((gpu.hbm.turnaround_ns or 0.0) * 1e6),
        workgroup_gap=round((gpu.limits.workgroup_gap_ns or 0.0) * 1e6),
        cu_fill=round(read / gpu.limits.fill_bytes_per_cycle * cycle_fs) if gpu.limits.fill_bytes_per_cycle else 0,
        copy=round((gpu.limits.copy_ns or 0.0) * 1e6),
    )


def check_times(times: ServiceTimes, issue: IssueModel, trace: Trace, most_passes: int) -> None:
    """Refuse an issue model that makes no sense, or times that might leave 64 bits, were all to run one by one."""
    issue.check()
    touches = trace.n_touches * (8 + int(trace.wave_requests.max()))
    latencies = sum(times[times._fields.index("l1_latency") :])  # once an instruction; the others once a request
    served, once = sum(times) - latencies, latencies + 2 * issue.compute_fs + issue.jitter_fs
    once += issue.remap_fs + issue.remap_wait_fs + most_passes * times.l1
    slowest = touches * served + trace.n_instructions * once
    if slowest >= 2**63:
        raise ReplayError(f"worst-case simulated time {slowest} fs overflows int64; reduce the problem size")
