"""The bottleneck report of one order: its figures, and for each tensor why its misses are misses.

    misses of the replay = those of each kind of reuse, by full associativity and in lockstep   (`reuse_of`)
                         + conflicts: what the sets of the lockstep replay add
                         + drift: what the timed replay adds, whose workgroups are not in step

Each share is of all misses that the scored replay counted, so the rows of a table add up to it; what is negative says
that the estimate is too high. Where conflicts and drift cancel, their sum is one kind. Times are told where they rank
orders of the GPU, and else how busy each resource is.

Every touch of a sampled line is classed by the workgroup that touched the line before, in the order of the lockstep
replay. Hits are those of one fully associative LRU cache an XCD, from exact stack distances of lines sampled by hash:
an estimate next to the replay's counts, which leaves out associativity, the workgroup skew of the timed replay, and
the second partition of an L2 that has two.

Sources: Mattson et al., IBM Systems Journal 9(2), 1970 (stack distance); Waldspurger et al., FAST 2015 (SHARDS: a
sample of lines by hash keeps stack distances in proportion).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from swizzle_sim.language import Swizzle
from swizzle_sim.language.grid import Grid
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.display.tiles import tile_coordinates
from swizzle_sim.search.advice import limit_of, spoken
from swizzle_sim.search.bench import score_on
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.judge import Judge, left_of
from swizzle_sim.search.ranking import TIME
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, Plan, Traffic
from xcd_model import gpu as load_gpu
from xcd_model.analysis.schedule import MAX_SAMPLES, Schedule, Touches, sampled_touches, schedule_of
from xcd_model.replay import traffic as columns

FIRST, FIRST_HERE, OWN, ALONG_M, ALONG_N, DIAGONAL, LATER = range(7)
KINDS = {  # in a report, and what it means
    "first touch": "no XCD had touched the line: no order avoids it",
    "touched elsewhere": "first touch by this XCD, another one had touched the line",
    "reuse in a workgroup": "the workgroup itself had touched the line",
    "reuse along m": "a workgroup that runs beside it, of the same tile column, had",
    "reuse along n": "a workgroup that runs beside it, of the same tile row, had",
    "reuse beside": "another workgroup that runs beside it had",
    "reuse across waves": "a workgroup that has finished had",
}


@dataclass(frozen=True, eq=False)
class Reuse:
    """Touches of sampled lines by class of reuse under one order, scaled to the whole."""

    tensors: tuple[str, ...]
    # (n_tensors, len(KINDS)) float [lines, or what a miss fetches of one]: touches of each kind, and those whose stack
    # distance exceeds the L2
    touches: np.ndarray = field(repr=False)
    misses: np.ndarray = field(repr=False)
    # (n_tensors,) float: XCDs that touch a line, on average over the lines touched
    copies: np.ndarray = field(repr=False)
    sampled_fraction: float = 1.0  # of all lines


def reuse_of(plan: Plan, order: np.ndarray, *, workgroups_per_cu: int, grid: Grid) -> Reuse:
    """Classes of reuse of one order, a permutation."""
    l2 = plan.gpu.l2
    if l2.fetch_bytes < l2.line_bytes:  # a miss fetches a piece of a line, so pieces are what hits and misses
        plan = replace(plan, trace=plan.trace.with_lines_of(l2.fetch_bytes))
    trace = plan.trace
    schedule = schedule_of(plan, order, workgroups_per_cu=workgroups_per_cu)
    touches = sampled_touches(plan, schedule, MAX_SAMPLES)
    program = np.empty(order.size, np.int64)  # of each tile; of a kernel that is not persistent the workgroup itself
    program[order] = np.arange(order.size) % (plan.machine.programs or order.size)
    kind = _classes(touches, schedule, program, grid, plan.gpu.xcds)
    scale = float(touches.one_in)
    miss = (touches.distance < 0) | (touches.distance >= l2.size_bytes // l2.fetch_bytes / scale)
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
    return Reuse(names, table[0], table[1], copies, 1 / touches.one_in)


def _reuse_of(scorer: Scorer, attempt: Attempt) -> Reuse:
    """Classes of reuse of an attempt, kept with the scorer: the page of a run asks for them, and its command."""
    kept: dict[str, Reuse] = vars(scorer).setdefault("reuse_by_text", {})
    if attempt.source not in kept:
        order, grid = scorer.permutation(attempt.swizzle), scorer.kernel.grid
        kept[attempt.source] = reuse_of(scorer.plan, order, workgroups_per_cu=scorer.occupancy, grid=grid)
    return kept[attempt.source]


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
    if grid.shape is not None:  # other grids have no tile rows and columns
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
MOST = 3  # kinds of misses, those that change most
CHANGED = 0.5  # points of the requests, from which a change is told
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
    scorer = Scorer(kernel, load_gpu(gpu) if isinstance(gpu, str) else gpu, replay=replay)
    order = scorer.permutation(Swizzle.read(swizzle))
    return bottleneck_of(scorer, order, score_on(scorer, order), times=Judge(scorer).ranking.main == TIME)


def bottleneck_of(
    scorer: Scorer, order: np.ndarray, score: Score, *, times: bool, hardware: bool = True
) -> dict[str, Any]:
    """Report on one permutation, JSON-ready, with ``times`` where they decide; all figures are simulated."""
    traffic = scorer.traffic(order)
    report: dict[str, Any] = {"l2_hit_rate_pct": _pct(score.l2_hit_rate), **points_left(scorer, score)}
    if hardware and score.balance is not None and score.balance.over_ideal >= TELLING:
        report["makespan_over_ideal"] = round(score.balance.over_ideal, 2)
    if times:
        report |= {"time_us": round(score.time_us, 1), "speedup": round(score.speedup, 3)}
    misses = _misses(traffic)
    everything = max(1.0, sum(misses.values()))
    if not hardware:
        return {**report, "misses_pct": _named({name: 100 * n / everything for name, n in misses.items()})}
    reuse = reuse_of(scorer.plan, order, workgroups_per_cu=scorer.occupancy, grid=scorer.kernel.grid)
    lockstep = misses if scorer.replay == "lockstep" else _misses(scorer.quick.traffic(order))
    estimate = {} if _warm(scorer, score) else _estimate(reuse)
    causes = {name: _causes(estimate.get(name), lockstep[name], n) for name, n in misses.items()}
    report |= {
        "misses_pct": {
            name: _named({kind: 100 * n / everything for kind, n in causes[name].items()})
            for name, n in misses.items()
            if 100 * n / everything >= WORTH_NAMING
        },
        **_copies(reuse),
        "limit": _limit(scorer, score, times),
        "busy_pct": {name: round(100 * us / score.time_us) for name, us in score.busy_us.items()},
    }
    return report | _spread(score)


def _limit(scorer: Scorer, score: Score, times: bool) -> str:
    """What limits the time, which is told in shares where times rank nothing."""
    if scorer.replay != "timed":
        return f"most of the time: {score.limiter}"
    said = limit_of(scorer, score)
    if times:
        return said

    def share(found: re.Match[str]) -> str:
        part, whole = (float(text.replace(",", "")) for text in found.groups())
        return f"{100 * part / whole:.0f} % of the time"

    return _TIMES.sub(share, said)


def legend(reports: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What the words mean that some reports name: kinds of misses, and figures that a reader may not know."""
    found = list(reports)
    named = {kind for report in found for of_tensor in report.get("misses_pct", {}).values() for kind in of_tensor}
    named |= {key for report in found for key in report}
    return {name: text for name, text in {**KINDS, **UNEXPLAINED, **FIGURES}.items() if name in named}


def points_left(scorer: Scorer, score: Score) -> dict[str, float]:
    """Distance to the fewest misses of any order, in this order's requests; nothing where there is no such bound."""
    return {} if _warm(scorer, score) else {"points_left": round(100 * left_of(scorer, score), 2)}


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


def why_better(scorer: Scorer, attempts: Iterable[Attempt], name: str) -> tuple[str, ...]:
    """Why an order of a run is better than its launch order: XCDs that touch a line, and misses, from no more replays.

    Nothing of an order that is no attempt or has no text, nor after a warm launch, of which nothing is estimated.
    """
    chosen = [
        one for one in attempts if one.score is not None and (one.number == 0 or spoken(one.name) == spoken(name))
    ][:2]
    scores = [one.score for one in chosen if one.score]
    if len(scores) < 2 or any(_warm(scorer, one) for one in scores) or scores[1].l2_hit_rate < scores[0].l2_hit_rate:
        return ()  # with fewer hits it is better by its ends, not by its misses
    with ThreadPoolExecutor() as pool:
        reuses = list(pool.map(functools.partial(_reuse_of, scorer), chosen))
    reports = []
    for one, found in zip(chosen, reuses, strict=True):
        score = one.score or scorer.baseline
        shares = {
            n: {k: 100 * v / max(1, score.l2_misses) for k, v in of.items()} for n, of in _estimate(found).items()
        }
        reports.append({"l2_hit_rate_pct": _pct(score.l2_hit_rate), "misses_pct": shares, **_copies(found)})
    told = []
    for changes in (_touched(*reports), _missed(*reports)):
        fewer = [(-apart, said) for said, apart in changes if apart < 0]
        told += [f"why: {said}" for _, said in sorted(fewer)[-1:]]
    return tuple(told)


def _copies(reuse: Reuse) -> dict[str, Any]:
    """XCDs that touch a line, of tensors that several do."""
    copies = {n: round(float(c), 2) for n, c in zip(reuse.tensors, reuse.copies, strict=True) if c >= COPIES}
    return {"xcds_that_touch_a_line": copies} if copies else {}


def changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What two bottleneck reports differ in: XCDs that touch a line, misses by kind, makespan."""
    found = [said for said, _ in (*sorted(_touched(before, after)), *_missed(before, after)[:MOST])]
    spans = [report.get("makespan_over_ideal", 1.0) for report in (before, after)]
    if abs(spans[0] - spans[1]) >= 0.05:
        found.append(f"makespan over ideal {spans[0]:.2f} to {spans[1]:.2f}")
    return found


def _touched(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Tensors whose lines another number of XCDs touches, in words, and by how many."""
    copies = [report.get("xcds_that_touch_a_line", {}) for report in (before, after)]
    pairs = {name: [one.get(name, 1.0) for one in copies] for name in copies[0].keys() | copies[1].keys()}
    return [
        (f"{name} is touched by {now:.2f} XCDs, before {was:.2f}", now - was)
        for name, (was, now) in pairs.items()
        if round(was, 1) != round(now, 1)
    ]


def _missed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Misses that another share of the requests are, in words, and by how many points; most first."""
    was, now = _of_requests(before), _of_requests(after)
    pairs = {kind: (was.get(kind, 0.0), now.get(kind, 0.0)) for kind in was.keys() | now.keys()}
    most = sorted((-abs(n - w), kind, w, n) for kind, (w, n) in pairs.items() if abs(n - w) >= CHANGED)
    return [
        (f"misses of {tensor}, {kind}: {w:.1f} to {n:.1f} % of the requests", n - w) for _, (tensor, kind), w, n in most
    ]


def _of_requests(report: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Percent of the requests that miss, by tensor and kind."""
    missed = (100 - report["l2_hit_rate_pct"]) / 100
    shares = report.get("misses_pct", {})
    kinds = {name: one if isinstance(one, dict) else {"all kinds": one} for name, one in shares.items()}
    return {(tensor, kind): share * missed for tensor, of in kinds.items() for kind, share in of.items()}
