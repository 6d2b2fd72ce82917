"""`Replayer`: traffic, time and `Balance` of a workload under a mapping of its workgroups.

Balance is counted in what the model computes with: every tensor instruction of a kernel takes a CU as long as every
other, so the work of a workgroup is its tensor instructions.

    makespan / ideal = end of the last CU / mean end of a CU = 1 / (part of the CUs' time in which they have work)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from swizzle_sim.language.grid import Digit
from swizzle_sim.pricing.issuing import issue_model_of
from swizzle_sim.pricing.scores import Balance
from swizzle_sim.workload.work import Work
from xcd_model import (
    Gpu,
    IssueModel,
    Plan,
    ReplayError,
    Time,
    Trace,
    Traffic,
    limited_by_power,
    prepare,
    replay_lockstep,
    replay_timed,
    roofline,
    timed_time,
    workgroups_per_cu,
)
from xcd_model.nvidia.rates import l1_after_shared_memory
from xcd_model.replay.plan import MAX_LAUNCHES, Caches, replay_launches
from xcd_model.replay.service_times import service_times_of
from xcd_model.replay.timed import SPAN_COLUMNS
from xcd_model.replay.traffic import INSTRUCTIONS, add_fetches, instruction_fetches
from xcd_model.trace.trace import SECTOR_BYTES

REPLAYS = ("timed", "lockstep")  # the first is the default
EVEN = 0.05  # standard deviation over mean, up to which workgroups count as equally heavy: ragged edges stay below it
EXPLAINS = 0.5  # least share of the variance of work that one axis of the grid explains, to be named as its cause
TRENDS = 0.8  # rank correlation from which work is said to grow or fall along an axis


@dataclass(frozen=True, kw_only=True)
class WorkPerWorkgroup:
    """How much work the workgroups of a kernel have, whatever their order."""

    # (int, int, int): least, median and most of a workgroup: tensor instructions, and the bytes that these touch
    instructions: tuple[int, int, int]
    touched_bytes: tuple[int, int, int]
    variation: float  # standard deviation of the instructions over their mean
    # coordinate of the grid along which the instructions vary, such as ``"pid_m"``; empty where they are even or no
    # coordinate explains half of their variance
    axis: str
    explained: float  # share of the variance that the axis explains, 0 to 1; nan without an axis
    # rank correlation of the mean work along the axis with the coordinate: 1 where it rises, -1 where it falls, in
    # between where it does both; nan without an axis
    trend: float

    @property
    def uneven(self) -> bool:
        """Whether an order of the workgroups can balance anything."""
        return self.variation > EVEN

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; what no axis explains is None."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return values if self.axis else {**values, "explained": None, "trend": None}

    def __str__(self) -> str:
        least, median, most = self.instructions
        if not self.uneven:
            return f"{f'{least:,} to ' * (least < most)}{most:,} tensor instructions a workgroup: even"
        along = {-1: "fewer as {} grows", 0: "up and down along {}", 1: "more as {} grows"}
        where = along[int(self.trend / TRENDS)].format(self.axis) if self.axis else "along no single axis of the grid"
        return f"{least:,} to {most:,} tensor instructions a workgroup (median {median:,}), {where}"


def work_along(trace: Trace, digit: Digit) -> np.ndarray:
    """Mean tensor instructions of the workgroups at each value of a coordinate, (extent,) float."""
    value = np.arange(trace.n_workgroups) // digit.stride % digit.extent
    total = np.bincount(value, weights=np.diff(trace.start), minlength=digit.extent)
    return total / np.bincount(value, minlength=digit.extent)


def work_per_workgroup(trace: Trace, coordinates: Mapping[str, Digit]) -> WorkPerWorkgroup:
    """Spread of a trace's work over its workgroups."""
    work = np.diff(trace.start)
    per_template = np.add.reduceat(np.bitwise_count(trace.sectors).astype(np.int64), trace.rel_start[:-1])
    before = np.concatenate([[0], np.cumsum(per_template[trace.template])]) * SECTOR_BYTES
    variation, axis, explained, trend = float(work.std() / work.mean()), "", math.nan, math.nan
    if variation > EVEN:
        means = {name: work_along(trace, digit) for name, digit in coordinates.items()}
        share = {name: float(mean.var() / work.var()) for name, mean in means.items()}
        best = max(share, key=lambda name: round(share[name], 6), default="")
        if best and share[best] >= EXPLAINS:
            axis, explained, trend = best, share[best], _trend(means[best])
    return WorkPerWorkgroup(
        instructions=_least_median_most(work),
        touched_bytes=_least_median_most(np.diff(before[trace.start])),
        variation=variation,
        axis=axis,
        explained=explained,
        trend=trend,
    )


def _least_median_most(values: np.ndarray) -> tuple[int, int, int]:
    return int(values.min()), int(np.median(values)), int(values.max())


def _trend(means: np.ndarray) -> float:
    _, place, count = np.unique(means, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]  # ties share their mean rank, as Spearman has it
    return float(np.corrcoef(np.arange(means.size), rank)[0, 1])


def balance_of(traffic: Traffic, time: Time) -> Balance:
    """Balance of a replayed order; ``time`` is the replay's, by which the ends of a timed one are stretched."""
    unit = time.total_us / traffic.time_fs if traffic.time_fs else 1.0  # power may bound the time, never the turns
    finish = traffic.cu_finish * unit
    end = time.total_us if traffic.time_fs else float(traffic.turns)
    return Balance(
        per_xcd_instructions=tuple(int(n) for n in traffic.per_xcd[:, INSTRUCTIONS]),
        per_xcd_finish=tuple(float(last) for last in finish.max(axis=1)),
        makespan=end,
        ideal=float(finish.mean()),
        tail=end - float(finish.min()),
    )


W = TypeVar("W", bound=Work)


class Replayer(Generic[W]):
    """Replays orders of one workload on one GPU; the trace is built once.

    ``jitter_ns`` is the largest delay added to each load of the timed replay, drawn evenly from 0.
    """

    bin_fs = 1_000_000_000  # of the timed replay's timeline; a report uses shorter ones
    symmetry = True  # see `prepare`; false where launches of several kernels share caches

    def __init__(self, kernel: W, gpu: Gpu, *, replay: str = "timed", seed: int = 0, jitter_ns: float = 0.0):
        if replay not in REPLAYS:
            raise ReplayError(f"no replay is called {replay!r}; there is: {', '.join(REPLAYS)}")
        if replay == "lockstep" and jitter_ns:
            raise ReplayError("the lockstep replay has no time, so no jitter: use the timed replay")
        self.kernel, self.gpu, self.replay, self.seed, self.jitter_ns = kernel, gpu, replay, seed, jitter_ns
        self.occupancy = workgroups_per_cu(kernel.resources, gpu)

    @cached_property
    def issue_model(self) -> IssueModel:
        """Issue model of the kernel's workgroups: compute time per instruction and loads in flight."""
        return issue_model_of(
            self.kernel, self.gpu, self.sent, self.occupancy, seed=self.seed, jitter_fs=round(self.jitter_ns * 1e6)
        )

    @cached_property
    def trace(self) -> Trace:
        """Lines that the kernel touches, in the GPU's line size."""
        return self.kernel.build_trace(self.gpu.l2.line_bytes)

    @property
    def sent(self) -> Trace:
        """Trace of the workgroups that are dispatched: `trace`, or the workgroups of its clusters."""
        return self.plan.trace if self.kernel.clusters else self.trace

    @cached_property
    def plan(self) -> Plan:
        """The kernel's trace, prepared for the GPU with the L1 that remains after the kernel's LDS."""
        device = self.gpu
        if device.l1 and device.l1.lds_carve_outs:  # NVIDIA: shared memory and L1 are one array
            device = l1_after_shared_memory(self.kernel.resources, device)
        if self.replay == "lockstep":  # row activations cost time only, and rule out symmetry
            device = replace(device, hbm_rows=None)
        work = self.kernel
        parts: dict[str, Any] = {"programs": work.programs, "claims": work.claims, "clusters": work.clusters}
        return prepare(self.trace, device, **parts, symmetry=self.symmetry)

    @cached_property
    def fetches(self) -> np.ndarray:
        """Fetches of the kernel's code in one launch; see `xcd_model.replay.traffic`."""
        launched = self.kernel.programs or self.plan.n_workgroups
        cluster = self.kernel.clusters.size if self.kernel.clusters else 1
        return instruction_fetches(self.gpu, self.kernel.resources, launched, cluster)

    def traffic(self, order: np.ndarray, *, seed: int | None = None, threads: int = 1) -> Traffic:
        """Replay one permutation, launch after launch until the counts repeat or the kernel's launches are used up."""
        return self._replayed(order, seed, threads, None)

    def traffic_and_spans(self, order: np.ndarray, spans: np.ndarray | None = None) -> tuple[Traffic, np.ndarray]:
        """Traffic of the timed replay, and when each workgroup of the last launch ran: see `xcd_model.replay_timed`.

        ``spans``, (num_pids, 5) int64, is filled as the replay goes on, so that another thread can tell how far it is;
        -1 at first.
        """
        if self.replay != "timed":
            raise ReplayError("lockstep has no times of workgroups: use the timed replay")
        spans = np.full((len(order), SPAN_COLUMNS), -1, np.int64) if spans is None else spans
        return self._replayed(order, None, 1, spans), spans

    def traffic_after(self, order: np.ndarray, caches: Caches) -> Traffic:
        """Traffic of one launch with caches as others left them, which it changes."""
        plan = self.plan  # its GPU has the L1 that the kernel leaves
        return add_fetches(self._once(order, None, 1, None)(plan, replace(caches, gpu=plan.gpu)), self.fetches)

    def _replayed(self, order: np.ndarray, seed: int | None, threads: int, spans: np.ndarray | None) -> Traffic:
        once = self._once(order, seed, threads, spans)
        replayed = replay_launches([self.plan], once, min(self.kernel.launches, MAX_LAUNCHES))[0]
        return add_fetches(replayed, self.fetches)

    def _once(
        self, order: np.ndarray, seed: int | None, threads: int, spans: np.ndarray | None
    ) -> Callable[[Plan, Caches], Traffic]:
        """Replay of one launch."""
        issue = self.issue_model if self.replay == "timed" else None
        if issue is not None and seed is not None:
            issue = issue._replace(seed=seed)

        def once(plan: Plan, caches: Caches) -> Traffic:
            if issue is None:
                return replay_lockstep(plan, order, workgroups_per_cu=self.occupancy, caches=caches, threads=threads)
            how: dict[str, Any] = {"issue": issue, "caches": caches, "bin_fs": self.bin_fs, "spans": spans}
            return replay_timed(plan, order, workgroups_per_cu=self.occupancy, **how)

        return once

    @cached_property
    def l1_us(self) -> float:
        """How long the L1 port of a CU takes an even share of the reads, whatever their order [us]; 0 without L1s."""
        trace, by_bank = self.plan.trace, self.gpu.l1 is not None and self.gpu.l1.by_bank
        passes = (trace.l1_passes if by_bank else trace.requests_of_waves) * ~trace.is_write
        return float(passes[trace.template].sum()) * service_times_of(self.gpu).l1 / 1e9 / self.gpu.cus

    def time(self, traffic: Traffic) -> Time:
        """Time of a replay of this kernel."""
        kernel = self.kernel
        price = timed_time if self.replay == "timed" else roofline
        return limited_by_power(
            price(traffic, self.gpu, self.issue_model), traffic, self.gpu, flops=kernel.issued_flops, dtype=kernel.dtype
        )
