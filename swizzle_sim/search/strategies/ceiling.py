"""`ceiling`: the best permutation found, formula or not, the gap of the best formula to it, and the bounds above.

Assignments to XCDs come from partitions of the sharing graph, orders from waves inside each XCD; a local search then
accepts changes by their replayed score. The permutation can be had as a lookup table: its array and the source
lines that read it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.atomic_write import check_folder, write_whole
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import Bench
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.judge import BY_BOUND, Judge
from swizzle_sim.search.loop import InMemory, run
from swizzle_sim.search.ranking import BestSoFar
from swizzle_sim.search.sharing_graph import SharingGraph, improve_partition, in_waves, sharing_graph
from swizzle_sim.search.strategies.halving import search_on
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, xcd_of
from xcd_model.errors import RunError, SearchError
from xcd_model.replay.traffic import READ_MISSES

FORMULAS, EVALUATIONS = 120, 120  # replays for the best formula, and for the local search over permutations
MOST_WORKGROUPS = 1 << 17
Steps = Generator[Candidate, Attempt, None]


@dataclass(frozen=True, eq=False)
class Ceiling:
    """Formulas, permutations and bounds of one kernel, best last.

    ``order`` is the best permutation found, (num_pids,) int64; ``assigned_bound`` bounds the L2 hit rate, for any
    cache, with the cheapest assignment found, and ``bound`` that of every balanced bijection. ``evaluations`` are
    permutations without formulas.
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
    evaluations: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; the order is left to its file."""
        scores = ("baseline", "formula", "permutation")
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
    seed: int = 0,
    on_progress: Callable[..., None] = lambda *counts, **words: None,
) -> Ceiling:
    """Search arbitrary balanced assignments and orders, next to the best formula.

    ``formulas`` and ``evaluations`` are replays of formulas and of permutations, each at least 1; ``on_progress`` is a
    `swizzle_sim.base.progress.Progress`, or what takes the same counts.
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
    best = _best_formula(scorer, formulas, seed, on_progress)
    assert best.score
    judge = Judge(scorer, BY_BOUND)
    climb = _Climb(scorer, sharing_graph(scorer.plan), seed, evaluations)

    def told(attempt: Attempt) -> None:
        what, note = "replaying permutations", f"best {100 * climb.score.l2_hit_rate:.2f} %, formula {best.name}"
        on_progress(climb.evaluations, evaluations, what=what, note=note)

    run(climb.propose(judge.orders(best.source)[0], best.name), judge, InMemory(), on_attempt=told)
    return Ceiling(
        baseline=scorer.baseline,
        formula=best.score,
        formula_name=best.name,
        formula_source=best.source,
        permutation=climb.score,
        order=climb.order,
        found_by=climb.found_by,
        assigned_bound=1 - (climb.fewest_misses + int(scorer.fetches[:, READ_MISSES].sum())) / scorer.bound.l2_requests,
        bound=scorer.bound.l2_hit_rate,
        evaluations=climb.evaluations,
    )


def _best_formula(scorer: Scorer, formulas: int, seed: int, on_progress: Callable[..., None]) -> Attempt:
    """Best attempt of a search of formulas by hit rate."""
    best = BestSoFar(BY_BOUND[0])

    def told(attempt: Attempt, done: int, total: int) -> None:
        on_progress(done, total, what="searching formulas", note=best(attempt.score))

    threads = os.cpu_count() or 1
    return search_on(Bench(scorer), evaluations=formulas, seed=seed, on_attempt=told, threads=threads).front[0]


class _Climb:
    """The strategy: the best permutation so far, and ways to better ones."""

    def __init__(self, scorer: Scorer, graph: SharingGraph, seed: int, most: int):
        self.scorer, self.graph, self.seed, self.most = scorer, graph, seed, most
        n = scorer.kernel.grid.num_pids
        self.xcd = xcd_of(n, scorer.gpu, scorer.kernel.programs)
        self.slots = scorer.gpu.cus_per_xcd * scorer.occupancy
        self.order, self.score, self.found_by = np.arange(n), scorer.baseline, "the launch order"
        self.fewest_misses = graph.misses(self.xcd, scorer.gpu.xcds)
        self.evaluations = 0

    def propose(self, formula: np.ndarray, name: str) -> Steps:
        """The best formula, partitions from several starts, then random changes of the best."""
        yield from self._offer(formula, f"the formula {name}")
        yield from self._from_partitions(formula)
        draw = np.random.default_rng(self.seed)
        while self.evaluations < self.most and not self.is_done:
            changed, what = self._changed(draw)
            yield from self._offer(changed, f"local search: {what}")

    def _offer(self, order: np.ndarray, name: str) -> Steps:
        """Have a permutation replayed; the better of it and the best so far stays."""
        part = np.empty_like(self.xcd)
        part[order] = self.xcd
        self.fewest_misses = min(self.fewest_misses, self.graph.misses(part, self.scorer.gpu.xcds))
        self.evaluations += 1
        score = (yield Candidate(name, "", "ceiling", order=order)).score
        if score is not None and (score.l2_hit_rate, -score.time_us) > (self.score.l2_hit_rate, -self.score.time_us):
            self.order, self.score, self.found_by = order, score, name

    def _from_partitions(self, formula: np.ndarray) -> Steps:
        """Partitions from several starts, each in its old order inside the XCDs and in waves."""
        contiguous = Judge(self.scorer).orders("contiguous")[0]
        random = np.random.default_rng(self.seed).permutation(self.xcd.size)
        places = (("in its order", self._kept), ("in waves", self._waves), ("wave by wave", self._flat))
        for name, start in (("formula", formula), ("contiguous", contiguous), ("random", random)):
            for heat in (0.0, None):
                for how, place in places:
                    if self.is_done or self.evaluations >= max(2, self.most):
                        return
                    yield from self._offer(place(start, heat), f"a partition from the {name} start, {how}")

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


TRITON = """\
# Pass the table of table.npy as an int32 tensor on the device; one load a workgroup, and pid is what it works on.
pid = tl.load(swizzle_table + tl.program_id(0))
"""
HIP = """\
// Pass the table of table.npy as const int* on the device; one load a workgroup, and pid is what it works on.
const int pid = swizzle_table[blockIdx.x];
"""


NAMES = ("table.npy", "table_triton.py", "table.hip")


def check_table_folder(folder: Path) -> None:
    """Create the folder of a table."""
    if (folder / NAMES[0]).exists():
        raise RunError(f"{folder / NAMES[0]} exists, and a table is never overwritten: name another folder")
    check_folder(folder)


def write_table(folder: Path, order: np.ndarray, note: str) -> list[Path]:
    """Write ``table.npy`` and the lines of Triton and HIP that use it into a folder."""
    check_table_folder(folder)
    try:
        np.save(folder / NAMES[0], order.astype(np.int32))
    except OSError as error:
        raise RunError(f"{folder}: cannot be written ({error.strerror})") from error
    write_whole(folder / NAMES[1], f"# {note}\n{TRITON}".encode())
    write_whole(folder / NAMES[2], f"// {note}\n{HIP}".encode())
    return [folder / name for name in NAMES]
