"""A swizzle over several draws of a kernel's group lengths: mean and spread of its scores, and of its gain.

A kernel whose lengths are data, such as `moe_gemm`, takes the seed that draws them as its size SEED. Its grid does not
depend on the draw, so one order is judged on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model.errors import ReplayError

SEED = "SEED"


@dataclass(frozen=True)
class OverDraws:
    """Scores of one order over draws, each a mean and a standard deviation."""

    draws: int
    launch_l2_hit_rate: tuple[float, float]  # (float, float): of the launch order and of the swizzle, 0 to 1
    l2_hit_rate: tuple[float, float]
    # (float, float): L2 hit rate above that of the launch order of the same draw [points]
    gain_points: tuple[float, float]
    time_us: tuple[float, float]  # (float, float) [us]
    speedup: tuple[float, float]  # (float, float): time of the launch order of the same draw over that of the swizzle
    slower: int  # draws on which the swizzle is predicted slower than the launch order


def over_draws(scorer: Scorer, swizzle: Swizzle, draws: int) -> OverDraws:
    """Score a candidate on draws ``SEED, SEED + 1, ...`` of the scorer's kernel."""
    work = scorer.kernel
    if SEED not in work.problem or work.file:
        raise ReplayError(f"--lengths draws a kernel's {SEED}, and {work.name} has none: its lengths are its sizes")
    if draws < 2:
        raise ReplayError(f"draws = {draws}: a spread needs at least 2")
    pairs = []
    for draw in range(draws):
        sizes = {**work.problem, SEED: work.problem[SEED] + draw}
        drawn = replace(kernel(work.name, **sizes), resources=work.resources)
        one = Scorer(drawn, scorer.gpu, replay=scorer.replay, seed=scorer.seed, jitter_ns=scorer.jitter_ns)
        pairs.append((one.baseline, one.score(swizzle)))
    before, after = (np.array([[s.l2_hit_rate, s.time_us] for s in side]) for side in zip(*pairs, strict=True))
    speedup = before[:, 1] / after[:, 1]
    return OverDraws(
        draws=draws,
        launch_l2_hit_rate=_spread(before[:, 0]),
        l2_hit_rate=_spread(after[:, 0]),
        gain_points=_spread(100 * (after[:, 0] - before[:, 0])),
        time_us=_spread(after[:, 1]),
        speedup=_spread(speedup),
        slower=int((speedup < 1).sum()),
    )


def _spread(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1))
