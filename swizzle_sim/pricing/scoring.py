"""`Score` of a candidate from a replay of its permutation, and `Spread` over seeds."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from swizzle_sim.language import Swizzle, Verdict, verify
from swizzle_sim.pricing.replaying import Replayer, WorkPerWorkgroup, balance_of, work_per_workgroup
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.waiting import with_waits
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Bound, Gpu, ReplayError, Resources, Traffic, assigned_misses, energy, hit_rate_bound
from xcd_model import gpu as load_gpu
from xcd_model.analysis.bounds import bound_with_fetches
from xcd_model.replay.traffic import READ_MISSES
from xcd_model.trace.waits import check_waits

INSTRUCTION = (
    40  # lookups that take as long as what else an instruction costs: 0.4 us and 11 ns (speed.md of the evidence)
)


class Scorer(Replayer[Kernel]):
    """Scores candidates for one kernel on one GPU; trace, bound and launch order are computed once.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    replay, seed, jitter_ns
        As of a `Replayer`.

    Raises
    ------
    ReplayError
        As a `Replayer`.
    """

    @cached_property
    def bound(self) -> Bound:
        """Upper bound on the hit rate of every balanced bijection."""
        return bound_with_fetches(hit_rate_bound(self.plan), self.fetches)

    @cached_property
    def work(self) -> WorkPerWorkgroup:
        """Spread of the kernel's work over its workgroups."""
        return work_per_workgroup(self.trace, self.kernel.grid.axes)

    @cached_property
    def work_class(self) -> str:
        """Class of kernels whose orders one figure ranks: ``uneven`` work, else bound by ``compute`` or by ``memory``.

        Bound by what takes longer at the rates of the GPU, its operations or its tensors moved once: no order enters.
        """
        if self.work.uneven:
            return "uneven"
        compute_us = self.kernel.issued_flops / (1e6 * self.gpu.sustained_tflops(self.kernel.dtype))
        tensors = sum(one.n_lines for one in self.trace.tensors) * self.trace.line_bytes
        return "compute" if compute_us > tensors / (1e3 * self.gpu.hbm.bandwidth_gbps) else "memory"

    @cached_property
    def baseline(self) -> Score:
        """Score of the launch order."""
        return self.score_launch_order()[0]

    def score_launch_order(self, *, threads: int = 1) -> tuple[Score, Traffic]:
        """`baseline`, and the traffic that it is made of."""
        traffic = self.traffic(np.arange(self.kernel.grid.num_pids), threads=threads)
        vars(self)["baseline"] = found = self.score_traffic(traffic, baseline_us=None)
        return found, traffic

    _latest: tuple[np.ndarray, int, Traffic] | None = None

    def traffic(self, order: np.ndarray, *, seed: int | None = None, threads: int = 1) -> Traffic:
        """Replay one permutation, or return the latest replay if it was the same; see `Replayer.traffic`."""
        if seed is not None:
            return super().traffic(order, seed=seed, threads=threads)
        known = self._latest  # threads may replay others meanwhile
        if known is None or known[1] != self.bin_fs or not np.array_equal(known[0], order):
            known = np.array(order), self.bin_fs, super().traffic(order, threads=threads)
            self._latest = known
        return known[2]

    @property
    def quick(self) -> Scorer:
        """Scorer by the lockstep replay on the same plan, kept; this one if it is one."""
        return self if self.replay == "lockstep" else self._in_step

    @cached_property
    def _in_step(self) -> Scorer:
        made = Scorer(self.kernel, self.gpu, replay="lockstep")
        vars(made).update(plan=self.plan, bound=self.bound)
        return made

    @property
    def lookups(self) -> float:
        """What one replay costs, in cache lookups: its own, and `INSTRUCTION` for each tensor instruction."""
        trace = self.plan.trace
        of_launch = trace.n_touches * self.plan.simulated_fraction + INSTRUCTION * trace.n_instructions
        return of_launch * self.baseline.launch

    def with_resources(self, resources: Resources) -> Scorer:
        """Scorer of the same kernel compiled otherwise."""
        kernel = replace(self.kernel, resources=resources)
        other = Scorer(kernel, self.gpu, replay=self.replay, seed=self.seed, jitter_ns=self.jitter_ns)
        same_l1 = (other.occupancy, resources.lds_bytes) == (self.occupancy, self.kernel.resources.lds_bytes)
        vars(other).update({k: held for k, held in vars(self).items() if k == "trace" or (same_l1 and k == "plan")})
        return other

    def verify(self, swizzle: Swizzle, *, lattice: bool = True) -> Verdict:
        """Check a candidate at the kernel's grid and, with ``lattice``, at the kernel's other grids and XCD counts."""
        kernel, xcds = self.kernel, self.gpu.xcds
        others = kernel.lattice if lattice else ()
        found = verify(swizzle, kernel.grid, xcds, sizes=kernel.problem, lattice=others)
        return found if kernel.waits is None else with_waits(found, swizzle, kernel, xcds, lattice=lattice)

    def permutation(self, swizzle: Swizzle) -> np.ndarray:
        """Workgroup that each hardware id computes, (num_pids,) int64; raises NotBijective if it has no score."""
        order = swizzle.permutation(self.kernel.grid, self.gpu.xcds, self.kernel.problem)
        if self.kernel.waits:
            check_waits(order, self.kernel.waits(self.kernel.problem))
        return order

    def assigned_bound(self, order: np.ndarray) -> float:
        """L2 hit rate that no cache could exceed with each workgroup on the XCD where ``order`` puts it.

        Where programs claim their tiles the order does not say where, and the bound of all orders is returned.
        """
        if self.kernel.claims:
            return self.bound.l2_hit_rate
        trace = self.trace if self.kernel.clusters else self.plan.trace  # an order is one of clusters
        misses = assigned_misses(trace, order, self.gpu, programs=self.kernel.programs)
        fewest = int(misses.sum()) + int(self.fetches[:, READ_MISSES].sum())
        return (self.bound.l2_requests - fewest) / self.bound.l2_requests

    def score(self, swizzle: Swizzle) -> Score:
        """Score a candidate.

        Raises
        ------
        NotBijective
            If the candidate is not a permutation of the kernel's grid: it has no score.
        """
        return self.score_order(self.permutation(swizzle), baseline_us=self.baseline.time_us)

    def score_order(self, order: np.ndarray, *, baseline_us: float | None) -> Score:
        """Score a permutation; ``baseline_us`` is the time of the launch order, None if this is it."""
        return self.score_traffic(self.traffic(order), baseline_us=baseline_us)

    def score_traffic(self, traffic: Traffic, *, baseline_us: float | None) -> Score:
        """Score what `traffic` gave for a permutation."""
        time = self.time(traffic)
        cold = traffic.launch == 1 or not self.gpu.l2.kept_between_launches
        if cold and traffic.l2_misses < self.bound.l2_misses:  # would be a defect of the model, never a win
            raise ReplayError(
                f"{traffic.l2_misses} misses, fewer than the bound {self.bound.l2_misses}: please report this"
            )
        return Score(
            l2_hit_rate=traffic.l2_hit_rate,
            mall_hit_rate=traffic.mall_hit_rate,
            l2_requests=traffic.l2_requests,
            l2_hits=traffic.l2_hits,
            l2_misses=traffic.l2_misses,
            hbm_read_bytes=traffic.hbm_read_bytes,
            hbm_write_bytes=traffic.hbm_write_bytes,
            time_us=time.total_us,
            speedup=1.0 if baseline_us is None else baseline_us / time.total_us,
            limiter=time.limiter,
            bound_l2_hit_rate=self.bound.l2_hit_rate,
            per_xcd_l2_hit_rate=traffic.per_xcd_l2_hit_rate,
            l1_hit_rate=traffic.l1_hit_rate,
            data_l2_hit_rate=traffic.data_l2_hit_rate,
            launch=traffic.launch,
            steady=traffic.steady,
            balance=balance_of(traffic, time),
            # Dirty lines that are written back after the last workgroup keep the memory busy beyond the time.
            busy_us={name: min(us, time.total_us) for name, us in time.by_resource_us.items()},
            **self._energy(traffic, time.total_us),
        )

    def _energy(self, traffic: Traffic, time_us: float) -> dict[str, Any]:
        rates = self.gpu.energy
        if rates is None or self.kernel.dtype not in rates.flop_pj:
            return dict.fromkeys(("energy_j", "energy_low_j", "energy_high_j"), math.nan)
        found = energy(traffic, self.gpu, flops=self.kernel.issued_flops, dtype=self.kernel.dtype, time_us=time_us)
        return {"energy_j": found.joules, "energy_low_j": found.low_joules, "energy_high_j": found.high_joules}


def score(
    kernel: Kernel, swizzle: Swizzle | str | os.PathLike[str], gpu: Gpu | str, *, replay: str = "timed", seed: int = 0
) -> Score:
    """Score one candidate; for many, keep a `Scorer`.

    Parameters
    ----------
    kernel : Kernel
    swizzle : Swizzle, str or path
        What `Swizzle.read` takes: a family such as ``"row"``, a text of the language, or a file.
    gpu : Gpu or str
    replay : {"timed", "lockstep"}
    seed : int

    Returns
    -------
    Score

    Raises
    ------
    NotBijective
        If the candidate is not a permutation of the kernel's grid.

    Source: the objective, the L2 hit rate in requests, is that of SwizzlePerf (arXiv 2508.20258).
    """
    device = load_gpu(gpu) if isinstance(gpu, str) else gpu
    return Scorer(kernel, device, replay=replay, seed=seed).score(Swizzle.read(swizzle))


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of a candidate over seeds of the timed replay.

    Replays differ in the speeds of workgroups, by `xcd_model.IssueModel.speed_variation`, and in jitter.
    """

    seeds: int  # replays, with seeds ``seed, seed + 1, ...`` of the scorer
    l2_hit_rate_mean: float  # 0 to 1
    l2_hit_rate_std: float
    time_us_mean: float  # [us]
    time_us_std: float


def spread(scorer: Scorer, swizzle: Swizzle, seeds: int) -> Spread:
    """Replay a candidate over seeds of the timed replay."""
    if scorer.replay != "timed" or not (scorer.jitter_ns or scorer.gpu.compute_spread):
        raise ReplayError(
            "every seed gives the same counts in the lockstep replay, and where neither speeds nor loads vary: "
            "use --replay timed"
        )
    if seeds < 2:
        raise ReplayError(f"seeds = {seeds}: a spread needs at least 2")
    order = scorer.permutation(swizzle)
    replays = [scorer.traffic(order, seed=scorer.seed + i) for i in range(seeds)]
    rate = np.array([traffic.l2_hit_rate for traffic in replays])
    time_us = np.array([traffic.time_fs / 1e9 for traffic in replays])
    return Spread(seeds, float(rate.mean()), float(rate.std(ddof=1)), float(time_us.mean()), float(time_us.std(ddof=1)))
