"""How long one request takes at each level: a GPU's bandwidths and latencies as whole femtoseconds."""

from __future__ import annotations

from typing import NamedTuple

from xcd_model.errors import ReplayError
from xcd_model.spec.gpu import Gpu

MAX_FS = 2**50  # a step of 18 minutes: beyond it, sums of times could leave 64 bits
SPREAD_UNIT = 2**16


class Pace(NamedTuple):
    """How a kernel's workgroups go on, apart from memory.

    Parameters
    ----------
    in_flight : int
        Tensor instructions of one workgroup between issue and the end of their compute, at least 1.
    compute_fs : int [fs]
        Compute time of one tensor instruction on one CU.
    jitter_fs : int [fs]
        Largest delay added to a load, drawn evenly from 0 for each (workgroup, instruction); 0 for none.
    seed : int
        Of the jitter and the spread.
    spread : int [1 / `SPREAD_UNIT`]
        Each workgroup computes slower or faster than ``compute_fs`` says by up to this, drawn evenly.
    """

    in_flight: int
    compute_fs: int
    jitter_fs: int = 0
    seed: int = 0
    spread: int = 0

    def check(self) -> None:
        """Refuse what cannot be replayed.

        Raises
        ------
        ReplayError
            Names the value and the rule.
        """
        if not 1 <= self.in_flight <= 1024:
            raise ReplayError(f"in_flight = {self.in_flight}: 1 to 1024 instructions")
        for name in ("compute_fs", "jitter_fs"):
            if not 0 <= getattr(self, name) <= MAX_FS:
                raise ReplayError(f"{name} = {getattr(self, name)}: 0 to {MAX_FS} fs")
        if not 0 <= self.seed < 2**63:
            raise ReplayError(f"seed = {self.seed}: 0 to 2**63 - 1")
        if not 0 <= self.spread < SPREAD_UNIT:
            raise ReplayError(f"spread = {self.spread}: 0 to {SPREAD_UNIT - 1}")


def spread_of(gpu: Gpu) -> int:
    """Half width [1 / `SPREAD_UNIT`] of the even draw whose standard deviation is the GPU's ``compute_spread``."""
    return round(3**0.5 * gpu.compute_spread * SPREAD_UNIT)


class Rates(NamedTuple):
    """Time of one fill or one write request [fs], and the load-to-use latencies [fs]; 0 for an absent level.

    ``hbm_row_read`` and ``hbm_row_write`` are the least that a read or write that opens a row takes, ``mixed_wait`` is
    what reads wait longer between writes, ``l2_far`` what they wait longer for the other side of an L2, and
    ``workgroup_gap`` the time from a workgroup to the next in its place.
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
    l2_far: int
    mall_latency: int
    hbm_latency: int
    mixed_wait: int
    workgroup_gap: int


def rates_of(gpu: Gpu) -> Rates:
    """Times of a GPU at its peak clock."""
    cycle_fs = 1e9 / gpu.clock_mhz
    fill, read, write = gpu.l2.fetch_bytes, gpu.l2.read_request_bytes, gpu.l2.write_request_bytes
    port, fabric = gpu.l2.read_bytes_per_cycle, gpu.fabric_bytes_per_cycle
    mall = 1e6 / gpu.mall.bandwidth_gbps if gpu.mall and gpu.mall.bandwidth_gbps else 0.0  # [fs] a byte
    hbm = 1e6 / gpu.hbm.bandwidth_gbps
    return Rates(
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
        l2_far=round(gpu.l2_sides.far_ns * 1e6) if gpu.l2_sides else 0,
        mall_latency=round(gpu.mall.latency_ns * 1e6) if gpu.mall else 0,
        hbm_latency=round(gpu.hbm.latency_ns * 1e6),
        mixed_wait=round((gpu.hbm.mixed_wait_ns or 0.0) * 1e6),
        workgroup_gap=round((gpu.limits.workgroup_gap_ns or 0.0) * 1e6),
    )
