"""`Score`: what a candidate is judged by, from a replay of its permutation."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from swizzle_sim.kernels import Kernel
from swizzle_sim.swizzle import Swizzle, Verdict, verify
from xcd_model import (
    Bound,
    Gpu,
    NotBijective,
    Plan,
    ReplayError,
    Traffic,
    hit_rate_bound,
    prepare,
    replay,
    roofline,
    workgroups_per_cu,
)

REPLAYS = ("lockstep",)


@dataclass(frozen=True, kw_only=True)
class Score:
    """Simulated figures of one candidate, and of nothing that is not a bijection.

    Parameters
    ----------
    l2_hit_rate, mall_hit_rate : float
        0 to 1, in requests; the Infinity Cache's is of the L2s' line fills, nan without such a cache.
    l2_requests, l2_hits, l2_misses : int
        As TCC_HIT and TCC_MISS count.
    hbm_read_bytes, hbm_write_bytes : int [bytes]
    time_us : float [us]
        Roofline over windows of turns, see `xcd_model.roofline`.
    speedup : float
        Baseline time over this time.
    limiter : str
        Resource that decides most of the time.
    bound_l2_hit_rate : float
        What no balanced bijection exceeds.
    per_xcd_l2_hit_rate : tuple of float
    """

    l2_hit_rate: float
    mall_hit_rate: float
    l2_requests: int
    l2_hits: int
    l2_misses: int
    hbm_read_bytes: int
    hbm_write_bytes: int
    time_us: float
    speedup: float
    limiter: str
    bound_l2_hit_rate: float
    per_xcd_l2_hit_rate: tuple[float, ...]

    @property
    def hbm_bytes(self) -> int:
        """Bytes to and from HBM."""
        return self.hbm_read_bytes + self.hbm_write_bytes

    @property
    def distance_to_bound(self) -> float:
        """How far the hit rate is below the bound, 0 to 1."""
        return self.bound_l2_hit_rate - self.l2_hit_rate

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; a rate that does not exist is None."""
        values = asdict(self)
        values["mall_hit_rate"] = _none_if_nan(self.mall_hit_rate)
        values["per_xcd_l2_hit_rate"] = [_none_if_nan(rate) for rate in self.per_xcd_l2_hit_rate]
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Score:
        """Inverse of `as_dict`."""
        back = dict(values)
        back["mall_hit_rate"] = _nan_if_none(values["mall_hit_rate"])
        back["per_xcd_l2_hit_rate"] = tuple(_nan_if_none(rate) for rate in values["per_xcd_l2_hit_rate"])
        return cls(**back)


def _none_if_nan(rate: float) -> float | None:
    return None if math.isnan(rate) else rate


def _nan_if_none(rate: float | None) -> float:
    return math.nan if rate is None else rate


class Scorer:
    """Scores candidates for one kernel on one GPU; trace, bound and baseline are worked out once.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    replay : {"lockstep"}
        Which replay the counts come from.
    seed : int
        Of the replay's random numbers. The lockstep replay draws none, so every seed gives the same counts.

    Raises
    ------
    ReplayError
        If there is no such replay, or no workgroup of the kernel fits a CU.
    """

    def __init__(self, kernel: Kernel, gpu: Gpu, *, replay: str = "lockstep", seed: int = 0):
        if replay not in REPLAYS:
            raise ReplayError(f"no replay is called {replay!r}; there is: {', '.join(REPLAYS)}")
        self.kernel, self.gpu, self.replay, self.seed = kernel, gpu, replay, seed
        self.occupancy = workgroups_per_cu(kernel.resources, gpu)

    @cached_property
    def plan(self) -> Plan:
        """The kernel's trace, ready for the GPU."""
        return prepare(self.kernel.build_trace(self.gpu.l2.line_bytes), self.gpu)

    @cached_property
    def bound(self) -> Bound:
        """Hit rate that no balanced bijection exceeds."""
        return hit_rate_bound(self.plan)

    @cached_property
    def baseline(self) -> Score:
        """Score of the order as launched."""
        return self.score_order(np.arange(self.kernel.grid.num_pids), baseline_us=None)

    def verify(self, swizzle: Swizzle, *, lattice: bool = True) -> Verdict:
        """Check a candidate at the kernel's grid and, with ``lattice``, at the kernel's other grids and XCD counts."""
        others = list(self.kernel.at_grids()) if lattice else []
        return verify(swizzle, self.kernel.grid, self.gpu.xcds, sizes=self.kernel.problem, lattice=others)

    def permutation(self, swizzle: Swizzle) -> np.ndarray:
        """Workgroup that each hardware id computes, (num_pids,) int64; raises NotBijective if it is no permutation."""
        return swizzle.permutation(self.kernel.grid, self.gpu.xcds, self.kernel.problem)

    def traffic(self, order: np.ndarray) -> Traffic:
        """Replay one permutation."""
        return replay(self.plan, order, workgroups_per_cu=self.occupancy)

    def score(self, swizzle: Swizzle) -> Score:
        """Score a candidate.

        Raises
        ------
        NotBijective
            If the candidate is not a permutation of the kernel's grid: it has no score.
        """
        return self.score_order(self.permutation(swizzle), baseline_us=self.baseline.time_us)

    def score_order(self, order: np.ndarray, *, baseline_us: float | None) -> Score:
        """Score a permutation; ``baseline_us`` None makes it its own baseline."""
        traffic = self.traffic(order)
        time = roofline(
            traffic,
            self.gpu,
            flops_per_instruction=self.kernel.flops / self.plan.trace.n_instructions,
            dtype=self.kernel.dtype,
            turns_per_window=self.kernel.resources.instructions_in_flight,
        )
        if traffic.l2_misses < self.bound.l2_misses:  # would be a defect of the model, never a win
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
        )


def score(kernel: Kernel, swizzle: Swizzle, gpu: Gpu, *, replay: str = "lockstep", seed: int = 0) -> Score:
    """Score one candidate; for many, keep a `Scorer`.

    Parameters
    ----------
    kernel : Kernel
    swizzle : Swizzle
    gpu : Gpu
    replay : {"lockstep"}
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
    return Scorer(kernel, gpu, replay=replay, seed=seed).score(swizzle)


__all__ = ["REPLAYS", "NotBijective", "Score", "Scorer", "score"]
