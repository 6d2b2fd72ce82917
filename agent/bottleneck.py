"""The bottleneck report: what an engineer would want to know of one order before writing the next."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agent.reuse import KINDS, Reuse, reuse_of
from swizzle_sim.scoring import Score, Scorer
from xcd_model import Traffic

WORTH_NAMING = 0.005  # share of all touches below which a kind of reuse is left out
HARDWARE_KEYS = (
    "per_xcd_l2_hit_rate_pct",
    "xcds_that_fetch_a_line",
    "infinity_cache_hit_rate_pct",
    "predicted_limiter",
)


@dataclass(frozen=True)
class Bottleneck:
    """Figures of one order, JSON-ready; all of them simulated.

    Parameters
    ----------
    l2_hit_rate_pct, baseline_pct, best_pct, bound_pct : float
        Of this order, of the order as launched, of the best attempt so far, and what no bijection exceeds.
    time_us, speedup : float
    predicted_limiter : str
    resource_times_us : dict of str to float
        What each resource takes of the time, see `xcd_model.Time`.
    infinity_cache_hit_rate_pct : float or None
    per_xcd_l2_hit_rate_pct : list of float or None
    tensors : list of dict
        For each tensor its share of all misses, the kinds of reuse that matter and how often each misses.
    xcds_that_fetch_a_line : dict of str to float
        Average over the lines of each tensor; 1 is the least.
    notes : list of str
        How the figures were made, and what they say in words.
    """

    l2_hit_rate_pct: float
    baseline_pct: float
    best_pct: float
    bound_pct: float
    time_us: float
    speedup: float
    predicted_limiter: str
    resource_times_us: dict[str, float]
    infinity_cache_hit_rate_pct: float | None
    per_xcd_l2_hit_rate_pct: list[float | None]
    tensors: list[dict[str, Any]]
    xcds_that_fetch_a_line: dict[str, float]
    notes: list[str]

    def as_dict(self, *, hardware: bool = True) -> dict[str, Any]:
        """Plain data; without ``hardware`` what tells of XCDs, caches beyond the L2 and schedule is left out."""
        values = asdict(self)
        if hardware:
            return values
        kept = {key: value for key, value in values.items() if key not in (*HARDWARE_KEYS, "resource_times_us")}
        return {**kept, "tensors": [{k: t[k] for k in ("tensor", "share_of_misses_pct")} for t in kept["tensors"]]} | {
            "notes": ["simulated"]
        }


def bottleneck_of(scorer: Scorer, order: np.ndarray, score: Score, *, best: float) -> Bottleneck:
    """Report on one permutation.

    Parameters
    ----------
    scorer : Scorer
    order : (n_workgroups,) int64
    score : Score
        Of that permutation.
    best : float
        Best L2 hit rate so far, 0 to 1.

    Returns
    -------
    Bottleneck
    """
    traffic = scorer.traffic(order)
    time = scorer.time(traffic)
    reuse = reuse_of(scorer.plan, order, workgroups_per_cu=scorer.occupancy, grid=scorer.kernel.grid)
    return Bottleneck(
        l2_hit_rate_pct=_pct(score.l2_hit_rate),
        baseline_pct=_pct(scorer.baseline.l2_hit_rate),
        best_pct=_pct(max(best, score.l2_hit_rate)),
        bound_pct=_pct(scorer.bound.l2_hit_rate),
        time_us=round(score.time_us, 1),
        speedup=round(score.speedup, 3),
        predicted_limiter=score.limiter,
        resource_times_us={name: round(us, 1) for name, us in time.by_resource_us.items()},
        infinity_cache_hit_rate_pct=None if np.isnan(score.mall_hit_rate) else _pct(score.mall_hit_rate),
        per_xcd_l2_hit_rate_pct=[None if np.isnan(rate) else _pct(rate) for rate in score.per_xcd_l2_hit_rate],
        tensors=_tensors(reuse, traffic),
        xcds_that_fetch_a_line={n: round(float(c), 2) for n, c in zip(reuse.tensors, reuse.copies, strict=True)},
        notes=_notes(reuse, scorer),
    )


def _pct(rate: float) -> float:
    return round(100 * rate, 2)


def _tensors(reuse: Reuse, traffic: Traffic) -> list[dict[str, Any]]:
    all_misses, all_touches = max(1.0, reuse.misses.sum()), reuse.touches.sum()
    rows = []
    for i, name in enumerate(reuse.tensors):
        kinds = [
            {
                "kind": KINDS[k],
                "share_of_touches_pct": _pct(reuse.touches[i, k] / all_touches),
                "misses_pct": _pct(reuse.misses[i, k] / reuse.touches[i, k]),
                "share_of_misses_pct": _pct(reuse.misses[i, k] / all_misses),
            }
            for k in range(len(KINDS))
            if reuse.touches[i, k] >= WORTH_NAMING * all_touches or reuse.misses[i, k] >= WORTH_NAMING * all_misses
        ]
        row = {"tensor": name, "share_of_misses_pct": _pct(reuse.misses[i].sum() / all_misses), "reuse": kinds}
        rows.append(row | _counted(traffic, i))
    return rows


def _counted(traffic: Traffic, tensor: int) -> dict[str, float]:
    """Hit rate of one tensor as the replay counted it, where it counts by tensor."""
    from xcd_model.replay import traffic as columns

    by_tensor = getattr(traffic, "by_tensor", None)
    if by_tensor is None or not by_tensor.size:
        return {}
    counts = by_tensor[tensor].sum(axis=0)
    requests = counts[columns.READ_REQUESTS] + counts[columns.WRITE_REQUESTS]
    misses = counts[columns.READ_MISSES] + counts[columns.WRITE_MISSES]
    return {"l2_hit_rate_pct": _pct(1 - misses / requests)} if requests else {}


def _notes(reuse: Reuse, scorer: Scorer) -> list[str]:
    i, k = np.unravel_index(int(reuse.misses.argmax()), reuse.misses.shape)
    share = _pct(reuse.misses[i, k] / max(1.0, reuse.misses.sum()))
    return [
        f"most misses: tensor {reuse.tensors[i]}, {KINDS[k]} ({share} % of all misses)",
        f"hit rates and times: {scorer.replay} replay; kinds of reuse: estimated from stack distances of "
        f"{_pct(reuse.sampled_fraction)} % of the lines in the lockstep order",
    ]
