"""The bottleneck report of one order: its figures, and for each tensor why its misses are misses.

    misses of the replay = those of each kind of reuse, by full associativity and in lockstep   (`agent.reuse`)
                         + conflicts: what the sets of the lockstep replay add
                         + drift: what the timed replay adds, whose workgroups are not in step

Each share is of all misses that the scored replay counted, so the rows of a table add up to it; what is negative says
that the estimate is too high. Where conflicts and drift cancel, their sum is one kind. Times are told where they rank
orders of the GPU, and else how busy each resource is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.advice import limit_of
from swizzle_sim.search.bench import MemoScorer, lockstep_like, score_on
from swizzle_sim.search.judge import Judge, left_of
from swizzle_sim.search.ranking import TIME
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, Traffic
from xcd_model import gpu as load_gpu
from xcd_model.replay import traffic as columns

from .reuse import KINDS, Reuse, reuse_of

_TIMES = re.compile(r"([\d.,]+) of ([\d.,]+) µs")
CONFLICTS, DRIFT, EITHER = "conflicts", "drift", "conflicts or drift"
UNEXPLAINED = {
    CONFLICTS: "unexplained by the above: most likely lines of one set that push each other out, as strides do",
    DRIFT: "timed replay against lockstep: workgroups out of step find a line gone; where negative, they find more",
    EITHER: "unexplained by the above: lines of one set that push each other out, or workgroups out of step",
}
FIGURES = {
    "points_left": "points of hit rate to the fewest misses of any order, in this order's requests",
    "makespan_over_ideal": "end of the last CU over the end if the CUs' work were shared evenly",
    "misses_pct": "of all misses of an order, by tensor and kind",
    "busy_pct": "of the time in which each resource is busy",
}
WORTH_NAMING = 0.5  # percent of all misses, below which neither a tensor nor a kind of miss is named
EVEN_XCDS = 5.0  # points between XCDs up to which their hit rates are one
COPIES = 1.05  # XCDs that touch a line, from which a tensor is named
TELLING = 1.05  # makespan over ideal from which it is told


def bottleneck_report(
    kernel: Kernel, swizzle: Swizzle | str, gpu: Gpu | str, *, replay: str = "timed"
) -> dict[str, Any]:
    """Why the misses of an order are misses: the report that a model is shown.

    Parameters
    ----------
    kernel : Kernel
    swizzle : Swizzle or str
        What `Swizzle.read` takes: a family such as ``"identity"``, or a text of the language.
    gpu : Gpu or str
    replay : {"timed", "lockstep"}

    Returns
    -------
    report : dict
        JSON-ready, simulated: hit rate and its distance to the bound, percent of all misses by tensor and kind, XCDs
        that touch a line, what limits the time, makespan over ideal where the work ends unevenly.

    Raises
    ------
    NotBijective
        If the swizzle is not a permutation of the kernel's grid.
    """
    scorer = MemoScorer(kernel, load_gpu(gpu) if isinstance(gpu, str) else gpu, replay=replay)
    order = scorer.permutation(Swizzle.read(swizzle))
    return bottleneck_of(scorer, order, score_on(scorer, order), times=Judge(scorer).ranking.main == TIME)


def bottleneck_of(
    scorer: Scorer, order: np.ndarray, score: Score, *, times: bool, hardware: bool = True
) -> dict[str, Any]:
    """Report on one permutation, JSON-ready, with ``times`` where they decide; all figures are simulated.

    Parameters
    ----------
    order : (n_workgroups,) int64
    """
    traffic = scorer.traffic(order)
    report: dict[str, Any] = {
        "l2_hit_rate_pct": _pct(score.l2_hit_rate),
        **points_left(scorer, score),
    }
    if hardware and score.balance is not None and score.balance.over_ideal >= TELLING:
        report["makespan_over_ideal"] = round(score.balance.over_ideal, 2)
    if times:
        report |= {"time_us": round(score.time_us, 1), "speedup": round(score.speedup, 3)}
    misses = _misses(traffic)
    everything = max(1.0, sum(misses.values()))
    if not hardware:
        return {**report, "misses_pct": _named({name: 100 * n / everything for name, n in misses.items()})}
    reuse = reuse_of(scorer.plan, order, workgroups_per_cu=scorer.occupancy, grid=scorer.kernel.grid)
    lockstep = misses if scorer.replay == "lockstep" else _misses(lockstep_like(scorer).traffic(order))
    estimate = {} if _warm(scorer, score) else _estimate(reuse)
    causes = {name: _causes(estimate.get(name), lockstep[name], n) for name, n in misses.items()}
    copies = {n: round(float(c), 2) for n, c in zip(reuse.tensors, reuse.copies, strict=True) if c >= COPIES}
    report |= {
        "misses_pct": {
            name: _named({kind: 100 * n / everything for kind, n in causes[name].items()})
            for name, n in misses.items()
            if 100 * n / everything >= WORTH_NAMING
        },
        **({"xcds_that_touch_a_line": copies} if copies else {}),
        "limit": _limit(scorer, score, times),
        "busy_pct": {name: round(100 * us / score.time_us) for name, us in score.busy_us.items()},
    }
    return report | _spread(score)


def _limit(scorer: Scorer, score: Score, times: bool) -> str:
    """What limits the time, which is told in shares where times rank nothing."""
    if scorer.replay != "timed":
        return f"most of the time: {score.limiter}"
    said = limit_of(scorer, score).partition("; no other order")[0]  # an order may be sought for its hits
    shares = _TIMES.sub(lambda found: f"{100 * _number(found[1]) / _number(found[2]):.0f} % of the time", said)
    return said if times else shares


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def legend(reports: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What the words mean that some reports name: kinds of misses, and figures that a reader may not know."""
    found = list(reports)
    named = {kind for report in found for of_tensor in report.get("misses_pct", {}).values() for kind in of_tensor}
    named |= {key for report in found for key in report}
    return {name: text for name, text in {**KINDS, **UNEXPLAINED, **FIGURES}.items() if name in named}


def points_left(scorer: Scorer, score: Score) -> dict[str, float]:
    """Distance to the fewest misses of any order, in this order's requests; nothing where there is no such bound."""
    if _warm(scorer, score):
        return {}
    return {"points_left": round(100 * left_of(scorer, score), 2)}


def _warm(scorer: Scorer, score: Score) -> bool:
    """Whether the L2s held lines of an earlier launch."""
    return score.launch > 1 and scorer.gpu.l2.kept_between_launches


def _pct(rate: float) -> float:
    return round(100 * rate, 2)


def _named(shares: dict[str, float]) -> dict[str, float]:
    return {name: round(share, 1) for name, share in shares.items() if abs(share) >= WORTH_NAMING}


def _misses(traffic: Traffic) -> dict[str, float]:
    """Misses of each tensor, and of the code, as a replay counted them."""
    counts = traffic.by_tensor.sum(axis=1)
    missed = counts[:, columns.READ_MISSES] + counts[:, columns.WRITE_MISSES]
    return dict(zip(traffic.tensors, missed.astype(float).tolist(), strict=True))


def _estimate(reuse: Reuse) -> dict[str, dict[str, float]]:
    """Misses of each tensor by kind."""
    return {n: dict(zip(KINDS, row.tolist(), strict=True)) for n, row in zip(reuse.tensors, reuse.misses, strict=True)}


def _causes(estimate: dict[str, float] | None, lockstep: float, misses: float) -> dict[str, float]:
    """Misses of one tensor by kind; what full associativity and lockstep leave unexplained has names of its own."""
    if estimate is None:  # code is fetched under any order; of a warm launch nothing is estimated
        return {"all kinds": misses}
    conflicts, drift = lockstep - sum(estimate.values()), misses - lockstep
    return {
        **estimate,
        **({EITHER: conflicts + drift} if conflicts * drift < 0 else {CONFLICTS: conflicts, DRIFT: drift}),
    }


def _spread(score: Score) -> dict[str, Any]:
    """Hit rates that differ between XCDs, and that of the Infinity Cache."""
    found: dict[str, Any] = {}
    rates = [_pct(rate) for rate in score.per_xcd_l2_hit_rate if not np.isnan(rate)]
    if rates and max(rates) - min(rates) > EVEN_XCDS:
        found["l2_hit_rate_pct_by_xcd"] = rates
    if not np.isnan(score.mall_hit_rate):
        found["infinity_cache_hit_rate_pct"] = _pct(score.mall_hit_rate)
    return found
