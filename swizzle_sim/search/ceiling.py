"""`ceiling`: the best permutation found, formula or not, the gap of the best formula to it, and the bounds above.

Assignments to XCDs come from partitions of the sharing graph, orders from waves inside each XCD; a local search then
accepts changes by their replayed score.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.lookup import price_table
from swizzle_sim.search.ranking import OBJECTIVES, BestSoFar
from swizzle_sim.search.sharing_graph import SharingGraph, improve_partition, in_waves, sharing_graph
from swizzle_sim.search.template_search import SearchPlan, search
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, xcd_of
from xcd_model.errors import SearchError
from xcd_model.replay.traffic import READ_MISSES

FORMULAS, EVALUATIONS = 120, 120  # replays for the best formula, and for the local search over permutations
MOST_WORKGROUPS = 1 << 17


@dataclass(frozen=True, eq=False)
class Ceiling:
    """Formulas, permutations and bounds of one kernel, best last.

    Parameters
    ----------
    baseline, formula, permutation : Score
        Of the launch order, the best formula, the best permutation found.
    formula_name, formula_source : str
    order : (num_pids,) int64
        The best permutation.
    found_by : str
        How it was found.
    assigned_bound : float
        Bound of the L2 hit rate, for any cache, with the cheapest assignment found.
    bound : float
        Proven bound of every balanced bijection.
    as_table : Score
        The best permutation read from a lookup table: one extra load a workgroup.
    evaluations : int
        Permutations replayed, without the formulas.
    """

    baseline: Score
    formula: Score
    formula_name: str
    formula_source: str = field(repr=False)
    permutation: Score
    order: np.ndarray = field(repr=False)
    found_by: str
    assigned_bound: float
    bound: float
    as_table: Score
    evaluations: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; the order is left to its file."""
        scores = ("baseline", "formula", "permutation", "as_table")
        plain = {name: getattr(self, name).as_dict() for name in scores}
        return plain | {
            "formula_name": self.formula_name,
            "formula_source": self.formula_source,
            "found_by": self.found_by,
            "assigned_bound_l2_hit_rate": self.assigned_bound,
            "bound_l2_hit_rate": self.bound,
            "formula_below_permutation": self.permutation.l2_hit_rate - self.formula.l2_hit_rate,
            "formula_below_bound": self.bound - self.formula.l2_hit_rate,
            "evaluations": self.evaluations,
        }


def ceiling(
    kernel: Kernel,
    gpu: Gpu,
    *,
    replay: str = "timed",
    formulas: int = FORMULAS,
    evaluations: int = EVALUATIONS,
    swizzle: Swizzle | None = None,
    seed: int = 0,
    on_progress: Callable[..., None] = lambda *counts, **words: None,
) -> Ceiling:
    """Search arbitrary balanced assignments and orders, next to the best formula.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    replay : {"timed", "lockstep"}
    formulas : int
        Replays of the search for the best formula.
    evaluations : int
        Replays of permutations, at least 1.
    swizzle : Swizzle, optional
        One more formula.
    seed : int
    on_progress : callable
        A `swizzle_sim.base.progress.Progress`, or what takes the same counts.

    Returns
    -------
    Ceiling

    Raises
    ------
    SearchError
        If the grid is too large, tiles are claimed from atomic counters, or there is nothing to spend.
    """
    if kernel.grid.num_pids > MOST_WORKGROUPS:
        raise SearchError(
            f"{kernel.name} has {kernel.grid.num_pids} workgroups; a ceiling is found up to {MOST_WORKGROUPS}"
        )
    if kernel.claims:
        raise SearchError(f"{kernel.name}: its programs claim tiles, so no permutation says which XCD computes which")
    if min(formulas, evaluations) < 1:
        raise SearchError(f"formulas = {formulas}, evaluations = {evaluations}: each at least 1")
    scorer = Scorer(kernel, gpu, replay=replay, seed=seed)
    name, source, formula = _best_formula(scorer, formulas, swizzle, seed, on_progress)
    climb = _Climb(scorer, sharing_graph(scorer.plan), seed)
    climb.on_progress = lambda done, rate: on_progress(
        done, evaluations, what="replaying permutations", note=f"best {100 * rate:.2f} %, formula {name}"
    )
    climb.offer(scorer.permutation(Swizzle.parse(source)), f"the formula {name}")
    climb.from_partitions(scorer.permutation(Swizzle.parse(source)), evaluations)
    climb.locally(evaluations)
    return Ceiling(
        baseline=scorer.baseline,
        formula=formula,
        formula_name=name,
        formula_source=source,
        permutation=climb.score,
        order=climb.order,
        found_by=climb.found_by,
        assigned_bound=1 - (climb.fewest_misses + int(scorer.fetches[:, READ_MISSES].sum())) / scorer.bound.l2_requests,
        bound=scorer.bound.l2_hit_rate,
        as_table=price_table(scorer, climb.order),
        evaluations=climb.evaluations,
    )


def _best_formula(
    scorer: Scorer, formulas: int, given: Swizzle | None, seed: int, on_progress: Callable[..., None]
) -> tuple[str, str, Score]:
    best = BestSoFar(OBJECTIVES["l2_hit_rate"])
    how: dict[str, Any] = {"replay": scorer.replay, "seed": seed}
    how["on_attempt"] = lambda attempt, done, total: on_progress(
        done, total, what="searching formulas", note=best(attempt.score)
    )
    with tempfile.TemporaryDirectory() as folder:
        found = search([scorer.kernel], scorer.gpu, Path(folder) / "run", SearchPlan(evaluations=formulas), **how)
    first = found.front[0] if found.front else found.run.baseline
    name, source = first.name, first.source
    score = scorer.score(Swizzle.parse(source))
    if given is not None and (own := scorer.score(given)).l2_hit_rate > score.l2_hit_rate:
        return given.name or "the swizzle given", given.source, own
    return name, source, score


class _Climb:
    """The best permutation so far, and ways to better ones."""

    def __init__(self, scorer: Scorer, graph: SharingGraph, seed: int):
        self.scorer, self.graph, self.seed = scorer, graph, seed
        n = scorer.kernel.grid.num_pids
        self.xcd = xcd_of(n, scorer.gpu, scorer.kernel.programs)
        self.slots = scorer.gpu.cus_per_xcd * scorer.occupancy
        self.order, self.score, self.found_by = np.arange(n), scorer.baseline, "the launch order"
        self.fewest_misses = graph.misses(self.xcd, scorer.gpu.xcds)
        self.evaluations = 0
        self.on_progress: Callable[[int, float], None] = lambda done, rate: None

    def offer(self, order: np.ndarray, name: str) -> bool:
        """Replay a permutation; the better of it and the best so far stays."""
        part = np.empty_like(self.xcd)
        part[order] = self.xcd
        self.fewest_misses = min(self.fewest_misses, self.graph.misses(part, self.scorer.gpu.xcds))
        score = self.scorer.score_order(order, baseline_us=self.scorer.baseline.time_us)
        self.evaluations += 1
        better = (score.l2_hit_rate, -score.time_us) > (self.score.l2_hit_rate, -self.score.time_us)
        if better:
            self.order, self.score, self.found_by = order, score, name
        self.on_progress(self.evaluations, self.score.l2_hit_rate)
        return better

    def from_partitions(self, formula: np.ndarray, evaluations: int) -> None:
        """Partitions from several starts, each in its old order inside the XCDs and in waves."""
        contiguous = self.scorer.permutation(Swizzle.parse(family("contiguous")))
        random = np.random.default_rng(self.seed).permutation(self.xcd.size)
        for name, start in (("formula", formula), ("contiguous", contiguous), ("random", random)):
            for heat in (0.0, None):
                for how, place in (
                    ("in its order", self._kept),
                    ("in waves", self._waves),
                    ("wave by wave", self._flat),
                ):
                    if self.is_done or self.evaluations >= max(2, evaluations):
                        return
                    self.offer(place(start, heat), f"a partition from the {name} start, {how}")

    @property
    def is_done(self) -> bool:
        """Whether the proven bound is reached."""
        return self.score.l2_hit_rate >= self.scorer.bound.l2_hit_rate

    def _parts(self, start: np.ndarray, heat: float | None) -> list[np.ndarray]:
        """Workgroups of each XCD after a partition over XCDs, in the order of ``start``."""
        n, xcds = self.xcd.size, self.scorer.gpu.xcds
        part, rank = np.empty(n, np.int64), np.empty(n, np.int64)
        part[start], rank[start] = self.xcd, np.arange(n)
        part = improve_partition(self.graph, part, xcds, seed=self.seed, heat=heat)
        mine = [np.flatnonzero(part == x) for x in range(xcds)]
        return [workgroups[np.argsort(rank[workgroups])] for workgroups in mine]

    def _together(self, parts: list[np.ndarray]) -> np.ndarray:
        order = np.empty(self.xcd.size, np.int64)
        for x, workgroups in enumerate(parts):
            order[self.xcd == x] = workgroups
        return order

    def _kept(self, start: np.ndarray, heat: float | None) -> np.ndarray:
        """Partition over XCDs; inside each the old order."""
        return self._together(self._parts(start, heat))

    def _waves(self, start: np.ndarray, heat: float | None) -> np.ndarray:
        """Partition over XCDs, then of each XCD's workgroups over waves."""
        parts = self._parts(start, heat)
        return self._together([in_waves(self.graph, mine, self.slots, seed=self.seed) for mine in parts])

    def _flat(self, start: np.ndarray, heat: float | None) -> np.ndarray:
        """Partition over the waves of all XCDs at once: best where an L2 keeps nothing from one wave to the next."""
        shares = np.bincount(self.xcd, minlength=self.scorer.gpu.xcds)
        n_waves = -(-int(shares.max()) // self.slots)
        place = np.empty(self.xcd.size, np.int64)
        for x, share in enumerate(shares):
            place[self.xcd == x] = x * n_waves + np.arange(share) // self.slots
        part = np.empty_like(place)
        part[start] = place
        part = improve_partition(self.graph, part, n_waves * shares.size, seed=self.seed, heat=heat)
        waves = [np.flatnonzero(part == i) for i in range(n_waves * shares.size)]
        return self._together([np.concatenate(waves[x * n_waves : (x + 1) * n_waves]) for x in range(shares.size)])

    def locally(self, evaluations: int) -> None:
        """Local search: random changes of the best permutation, accepted if they score better."""
        draw = np.random.default_rng(self.seed)
        while self.evaluations < evaluations and not self.is_done:
            changed, what = self._changed(draw)
            self.offer(changed, f"local search: {what}")

    def _changed(self, draw: np.random.Generator) -> tuple[np.ndarray, str]:
        """The best permutation with one change that keeps the XCDs' shares."""
        order, kind = self.order.copy(), int(draw.integers(4))
        x, y = draw.integers(self.scorer.gpu.xcds, size=2)
        mine, other = np.flatnonzero(self.xcd == x), np.flatnonzero(self.xcd == y)
        if kind == 0 and mine.size > 1:  # another order inside one XCD: a stretch backwards
            first, last = sorted(draw.integers(mine.size + 1, size=2))
            order[mine[first:last]] = order[mine[first:last]][::-1]
            return order, "a stretch turned round"
        if kind == 1 and mine.size > 1:  # a stretch somewhere else
            first, last = sorted(draw.integers(mine.size + 1, size=2))
            order[mine] = np.roll(np.concatenate([order[mine[first:last]], np.delete(order[mine], slice(first, last))]),
                                  int(draw.integers(mine.size)))  # fmt: skip
            return order, "a stretch moved"
        length = int(draw.integers(1, 1 + max(1, min(mine.size, other.size) // 4)))
        if x != y and min(mine.size, other.size) >= length:  # equal stretches between two XCDs
            a = mine[(at := int(draw.integers(mine.size - length + 1))) : at + length]
            b = other[(at := int(draw.integers(other.size - length + 1))) : at + length]
            order[a], order[b] = order[b].copy(), order[a].copy()
            return order, "stretches exchanged between XCDs"
        u, v = draw.integers(order.size, size=2)
        order[u], order[v] = order[v], order[u]
        return order, "two workgroups exchanged"
