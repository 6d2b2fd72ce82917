"""How far workgroups of one launch run ahead of each other: skew between them and spread of their durations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Launch = Callable[..., None]
TILE = {"BM": 128, "BN": 128, "BK": 64}
LAUNCHES: tuple[tuple[str, dict[str, int], tuple[str, ...]], ...] = (
    ("gemm", {"M": 8192, "N": 8192, "K": 16384, **TILE}, ("row", "scatter")),
    ("gemm", {"M": 8192, "N": 8192, "K": 2048, **TILE}, ("row",)),
    ("gemm", {"M": 6144, "N": 6144, "K": 6144, **TILE}, ("row", "grp8")),
    ("gemm", {"M": 1408, "N": 1536, "K": 65536, **TILE}, ("row",)),  # one wave, one workgroup an SM
    ("gemm", {"M": 2816, "N": 1536, "K": 65536, **TILE}, ("row",)),  # one wave, two an SM
    ("attention", {"H": 32, "S": 8192, "D": 128, "BQ": 64, "BK": 64}, ("row", "col")),
    ("attention", {"H": 64, "S": 8192, "D": 128, "BQ": 128, "BK": 64}, ("row", "col")),
)


@dataclass(frozen=True)
class Skew:
    """Figures of one launch."""

    workgroups: int  # launched, and most that ran at one time
    at_once: int
    duration_us: float  # [us]: mean over workgroups
    # [%]: standard deviation over mean of the durations: of all workgroups, of those that ran first, and of the means
    # of the SMs
    spread_pct: float
    first_wave_pct: float
    of_sms_pct: float
    # [%]: distance between the middle of the slower and of the faster half of the workgroups that run, in percent of a
    # workgroup's work, half-way through the launch
    apart_pct: float


def skew_of(at: np.ndarray, sm: np.ndarray) -> Skew:
    """Figures of the times of one launch.

    Parameters
    ----------
    at : (n_workgroups, n_points) int array [ns]
        When each workgroup got to each of evenly spaced points, from its beginning to its end.
    sm : (n_workgroups,) int array
        Where it ran.
    """
    begin, end = at[:, 0], at[:, -1]
    took = (end - begin).astype(float)
    at_once = max(int(((begin <= time) & (end > time)).sum()) for time in begin)
    first = np.argsort(begin, kind="stable")[:at_once]
    means = np.array([took[sm == one].mean() for one in np.unique(sm)])
    return Skew(
        workgroups=len(at),
        at_once=at_once,
        duration_us=float(took.mean()) / 1e3,
        spread_pct=100 * float(took.std() / took.mean()),
        first_wave_pct=100 * float(took[first].std() / took[first].mean()),
        of_sms_pct=100 * float(means.std() / means.mean()),
        apart_pct=100 * _apart(at, (begin.min() + end.max()) / 2),
    )


def _apart(at: np.ndarray, time: float) -> float:
    """Share of its work by which the faster half of those that run at a time is ahead of the slower half."""
    runs = (at[:, 0] <= time) & (at[:, -1] > time)
    share = np.linspace(0, 1, at.shape[1])
    done = np.sort([np.interp(time, own, share) for own in at[runs]])
    half = len(done) // 2
    return float(np.median(done[-half:]) - np.median(done[:half])) if half else 0.0
