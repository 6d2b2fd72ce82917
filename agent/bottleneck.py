"""The bottleneck report of one launch order of tiles, and the classes of reuse that it counts.

Every touch of a sampled line is classed by the workgroup that touched the line before, in the order of the lockstep
replay. Hits are those of one fully associative LRU cache an XCD, from exact stack distances of lines sampled by hash:
an estimate next to the replay's counts, which leaves out associativity, the workgroup skew of the timed replay, and
the second partition of an L2 that has two.

Sources: Mattson et al., IBM Systems Journal 9(2), 1970 (stack distance); Waldspurger et al., FAST 2015 (SHARDS: a
sample of lines by hash keeps stack distances in proportion).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from swizzle_sim.display.tiles import tile_coordinates
from swizzle_sim.scoring import Score, Scorer
from swizzle_sim.swizzle.grid import Grid
from xcd_model import Plan, Traffic
from xcd_model.analysis.sampled_misses import MAX_SAMPLES, Touches, misses_of_workgroups, sampled_touches
from xcd_model.analysis.schedule import Schedule, schedule_of
from xcd_model.replay import traffic as columns

FIRST, FIRST_HERE, OWN, ALONG_M, ALONG_N, DIAGONAL, LATER = range(7)
KINDS = (
    "first touch by any XCD",
    "first touch by this XCD, another XCD has fetched the line",
    "reuse within a workgroup",
    "reuse between resident neighbours along m",
    "reuse between resident neighbours along n",
    "reuse between resident workgroups, other direction",
    "reuse across waves of workgroups (the earlier one has finished)",
)
WORTH_NAMING = 0.005  # share of all touches below which a class of reuse is left out
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
        Of this order, of the launch order, of the best attempt so far, and the proven bound of every bijection.
    time_us, speedup : float
    predicted_limiter : str
    resource_times_us : dict of str to float
        Time that each resource needs, see `xcd_model.Time`.
    infinity_cache_hit_rate_pct : float or None
    per_xcd_l2_hit_rate_pct : list of float or None
    tensors : list of dict
        For each tensor its share of all misses, the kinds of reuse that matter and how often each misses.
    xcds_that_fetch_a_line : dict of str to float
        Average over the lines of each tensor; 1 is the least.
    notes : list of str
        Origin of the figures, and the class with the most misses.
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
        """Plain data; without ``hardware`` nothing of XCDs, caches behind the L2 or schedule."""
        values = asdict(self)
        if hardware:
            return values
        shown = {key: value for key, value in values.items() if key not in (*HARDWARE_KEYS, "resource_times_us")}
        tensors = [{k: t[k] for k in ("tensor", "share_of_misses_pct")} for t in shown["tensors"]]
        return {**shown, "tensors": tensors, "notes": ["simulated"]}


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


@dataclass(frozen=True, eq=False)
class Reuse:
    """Touches of sampled lines by class of reuse under one order, scaled to the whole.

    Parameters
    ----------
    tensors : tuple of str
    touches, misses : (n_tensors, len(KINDS)) float [lines]
        Touches of each kind, and those whose stack distance exceeds the L2.
    copies : (n_tensors,) float
        XCDs that touch a line, on average over the lines touched.
    misses_of_workgroup : (n_workgroups,) float [lines]
    sampled_fraction : float
        Of all lines.
    """

    tensors: tuple[str, ...]
    touches: np.ndarray = field(repr=False)
    misses: np.ndarray = field(repr=False)
    copies: np.ndarray = field(repr=False)
    misses_of_workgroup: np.ndarray = field(repr=False)
    sampled_fraction: float = 1.0


def reuse_of(plan: Plan, order: np.ndarray, *, workgroups_per_cu: int, grid: Grid) -> Reuse:
    """Classes of reuse of one order.

    Parameters
    ----------
    plan : Plan
    order : (n_workgroups,) int64
        A permutation.
    workgroups_per_cu : int
    grid : Grid

    Returns
    -------
    Reuse
    """
    trace = plan.trace
    schedule = schedule_of(plan, order, workgroups_per_cu=workgroups_per_cu)
    touches = sampled_touches(plan, schedule, MAX_SAMPLES)
    program = np.empty(order.size, np.int64)  # of each tile; of a kernel that is not persistent the workgroup itself
    program[order] = np.arange(order.size) % (plan.machine.programs or order.size)
    kind = _classes(touches, schedule, program, grid, plan.gpu.xcds)
    miss, scale = touches.misses(plan), float(touches.one_in)
    tensor = trace.tensor[trace.template[schedule.sequence[touches.at]]]
    table = [np.zeros((len(trace.tensors), len(KINDS))) for _ in range(2)]
    np.add.at(table[0], (tensor, kind), scale)
    np.add.at(table[1], (tensor[miss], kind[miss]), scale)
    names = tuple(t.name for t in trace.tensors)
    first = touches.distance < 0
    tensor_of_line = np.zeros(touches.n_lines, np.int64)
    tensor_of_line[touches.line] = tensor
    fetched = np.bincount(tensor_of_line[touches.line[first]], minlength=len(names))
    copies = fetched / np.maximum(1, np.bincount(tensor_of_line, minlength=len(names)))
    of_workgroup = misses_of_workgroups(plan, schedule, touches)
    return Reuse(names, table[0], table[1], copies, of_workgroup, 1 / touches.one_in)


def _classes(touches: Touches, schedule: Schedule, program: np.ndarray, grid: Grid, xcds: int) -> np.ndarray:
    """Kind of each touch; tiles of one persistent ``program`` are one workgroup."""
    line, at, xcd, owner = touches.line, touches.at, touches.xcd, schedule.owner
    earlier = np.full(line.size, -1)
    for x in range(xcds):
        mine = np.flatnonzero(xcd == x)
        by_line = mine[np.argsort(line[mine], kind="stable")]
        same = np.flatnonzero(line[by_line[1:]] == line[by_line[:-1]])
        earlier[by_line[same + 1]] = by_line[same]
    row, col = tile_coordinates(grid)
    now, before = owner[at], owner[at[np.maximum(earlier, 0)]]
    kind = np.full(line.size, DIAGONAL)
    kind[row[now] == row[before]] = ALONG_N
    kind[col[now] == col[before]] = ALONG_M
    kind[schedule.born[now] > schedule.died[before]] = LATER
    kind[program[now] == program[before]] = OWN
    first = touches.distance < 0
    kind[first] = FIRST_HERE
    # the XCD with the earliest turn brought the line first; position within an XCD's part stands for time
    starts = np.concatenate([[0], np.flatnonzero(np.diff(xcd)) + 1])
    since = at - at[starts[np.searchsorted(starts, np.arange(line.size), side="right") - 1]] if line.size else at
    candidates = np.flatnonzero(first)
    by_time = candidates[np.lexsort((xcd[candidates], since[candidates], line[candidates]))]
    kind[by_time[np.unique(line[by_time], return_index=True)[1]]] = FIRST
    return kind
