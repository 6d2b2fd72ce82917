"""`Replayer`: traffic and time of a workload under a mapping of its workgroups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np

from xcd_model import (
    Gpu,
    IssueModel,
    Plan,
    ReplayError,
    Resources,
    Time,
    Trace,
    Traffic,
    compute_fs,
    limited_by_power,
    loads_in_flight,
    prepare,
    replay_lockstep,
    replay_timed,
    roofline,
    timed_time,
    workgroups_per_cu,
)
from xcd_model.nvidia.shared_memory import l1_after_shared_memory
from xcd_model.replay.launches import MAX_LAUNCHES, Caches, replay_launches
from xcd_model.replay.service_times import speed_variation_of
from xcd_model.replay.traffic import add_fetches, instruction_fetches

REPLAYS = ("lockstep", "timed")


class Work(Protocol):
    """Attributes of a workload that a replay reads; `Kernel` documents each."""

    @property
    def dtype(self) -> str:
        """Type of the arithmetic, a key of ``Gpu.peak_tflops``."""
        ...

    @property
    def issued_flops(self) -> float:
        """Operations that the hardware executes."""
        ...

    @property
    def vector_ops(self) -> float:
        """Vector instructions, per lane, that no matrix operation can overlap."""
        ...

    @property
    def resources(self) -> Resources:
        """Resources that a workgroup occupies."""
        ...

    @property
    def build_trace(self) -> Callable[[int], Trace]:
        """``build_trace(line_bytes) -> Trace``."""
        ...

    @property
    def programs(self) -> int | None:
        """Programs launched of a persistent kernel."""
        ...

    @property
    def launches(self) -> int:
        """Back-to-back launches of a run."""
        ...


W = TypeVar("W", bound=Work)


class Replayer(Generic[W]):
    """Replays orders of one workload on one GPU; the trace is built once.

    Parameters
    ----------
    kernel : Work
    gpu : Gpu
    replay : {"lockstep", "timed"}
        Which replay the counts come from.
    seed : int
        Of the speeds of workgroups in the timed replay, and of the jitter.
    jitter_ns : float [ns]
        Largest delay added to each load of the timed replay, drawn evenly from 0; 0 for none.

    Raises
    ------
    ReplayError
        If there is no such replay, no workgroup of the kernel fits a CU, or jitter is given for the lockstep replay.
    """

    bin_fs = 1_000_000_000  # of the timed replay's timeline; a report uses shorter ones

    def __init__(self, kernel: W, gpu: Gpu, *, replay: str = "lockstep", seed: int = 0, jitter_ns: float = 0.0):
        if replay not in REPLAYS:
            raise ReplayError(f"no replay is called {replay!r}; there is: {', '.join(REPLAYS)}")
        if replay == "lockstep" and jitter_ns:
            raise ReplayError("the lockstep replay has no time, so no jitter: use the timed replay")
        self.kernel, self.gpu, self.replay, self.seed, self.jitter_ns = kernel, gpu, replay, seed, jitter_ns
        self.occupancy = workgroups_per_cu(kernel.resources, gpu)

    @cached_property
    def flops_per_instruction(self) -> float:
        """Operations that the hardware executes, per tensor instruction of the kernel."""
        return self.kernel.issued_flops / self.trace.n_instructions

    @cached_property
    def vector_ops_per_instruction(self) -> float:
        """Vector instructions, per lane, per tensor instruction of the kernel."""
        return self.kernel.vector_ops / self.trace.n_instructions

    @cached_property
    def in_flight(self) -> int:
        """Tensor instructions of one workgroup in flight at once."""
        return loads_in_flight(self.kernel.resources, self.trace)

    @cached_property
    def issue_model(self) -> IssueModel:
        """Issue model of the kernel's workgroups: compute time per instruction and loads in flight."""
        instruction_fs = compute_fs(
            self.gpu,
            flops_per_instruction=self.flops_per_instruction,
            dtype=self.kernel.dtype,
            vector_ops_per_instruction=self.vector_ops_per_instruction,
            workgroups_per_cu=self.occupancy,
        )
        issue = IssueModel(
            self.in_flight,
            instruction_fs,
            round(self.jitter_ns * 1e6),
            self.seed,
            speed_variation_of(self.gpu),
        )
        issue.check()
        return issue

    @cached_property
    def trace(self) -> Trace:
        """Lines that the kernel touches, in the GPU's line size."""
        return self.kernel.build_trace(self.gpu.l2.line_bytes)

    @cached_property
    def plan(self) -> Plan:
        """The kernel's trace, prepared for the GPU with the L1 that remains after the kernel's LDS."""
        device = self.gpu
        if device.l1 and device.l1.lds_carve_outs:  # NVIDIA: shared memory and L1 are one array
            device = l1_after_shared_memory(self.kernel.resources, device)
        if self.replay == "lockstep":  # row activations cost time only, and rule out symmetry
            device = replace(device, hbm_rows=None)
        return prepare(self.trace, device, programs=self.kernel.programs)

    @cached_property
    def fetches(self) -> np.ndarray:
        """Fetches of the kernel's code in one launch; see `xcd_model.replay.traffic`."""
        launched = self.kernel.programs or self.plan.n_workgroups
        return instruction_fetches(self.gpu, self.kernel.resources, launched)

    def traffic(self, order: np.ndarray, *, seed: int | None = None, threads: int = 1) -> Traffic:
        """Replay one permutation, launch after launch until the counts repeat or the kernel's launches are used up.

        Parameters
        ----------
        order : (num_pids,) int array
        seed : int, optional
            Overrides the replayer's.
        threads : int
            XCDs replayed at once in lockstep; the counts are the same for any number.
        """
        issue = self.issue_model if self.replay == "timed" else None
        if issue is not None and seed is not None:
            issue = issue._replace(seed=seed)

        def once(plan: Plan, caches: Caches) -> Traffic:
            if issue is None:
                return replay_lockstep(plan, order, workgroups_per_cu=self.occupancy, caches=caches, threads=threads)
            return replay_timed(
                plan, order, workgroups_per_cu=self.occupancy, issue=issue, caches=caches, bin_fs=self.bin_fs
            )

        replayed = replay_launches([self.plan], once, min(self.kernel.launches, MAX_LAUNCHES))[0]
        return add_fetches(replayed, self.fetches)

    def time(self, traffic: Traffic) -> Time:
        """Time of a replay of this kernel."""
        kernel = self.kernel
        price = timed_time if self.replay == "timed" else roofline
        return limited_by_power(
            price(traffic, self.gpu, self.issue_model), traffic, self.gpu, flops=kernel.issued_flops, dtype=kernel.dtype
        )
