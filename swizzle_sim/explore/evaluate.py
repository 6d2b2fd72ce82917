"""`Evaluator`: a `State` in, a `Result` out; traces, plans and bounds are reused by states that share them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from swizzle_sim.capture.occupancy import compiled_for
from swizzle_sim.explore.state import State
from swizzle_sim.language import FAMILIES, Grid, Swizzle, Verdict, family, holds, parse_spec
from swizzle_sim.language.vm import permutation_of
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.display.tiles import is_ribbon, map_png, tile_map
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Trace, xcd_of
from xcd_model.errors import LanguageError, SizeError, SwizzleSimError

MAX_WORKGROUPS = 1 << 20
MAX_INSTRUCTIONS = 400_000  # of a trace: bounds what preparing it and its bound take
MAX_LOOKUPS = 25e6  # line look-ups of one replay: about a third of a second, and there are two
REUSED = 6  # of each: a step back and forth is free, memory stays small
SCORES = 60  # small: orders over some kernels and GPUs
SIDE = 16  # tiles of a small map's side
XCDS = 8
_FLAT = Grid((SIDE * SIDE,), (SIDE, SIDE))
_BOX = Grid((SIDE, 4, 4))

T = TypeVar("T")
Replays = Callable[[np.ndarray, str], Score]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why there is nothing to show, or not all: the code and the message of one of the project's errors."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """What the page shows of a state; values that could not be computed are None."""

    state: State
    problem: Problem | None = None  # the first error, if any
    summary: str = ""  # of the kernel
    grid: str = ""
    num_xcds: int = 0
    ribbon: bool = False  # whether the maps are lines of a one-dimensional grid, rather than tile rows
    fits: tuple[str, ...] = ()  # families that are bijections of this grid with their default parameters
    verdict: Verdict | None = None
    # (rows, columns) int array or None: XCD of each tile in launch order and with the swizzle; -1 is a tile that no
    # workgroup computes, or no tile. For a swizzle that is no bijection, ``after`` is what it computes all the same.
    before: np.ndarray | None = field(default=None, repr=False)
    after: np.ndarray | None = field(default=None, repr=False)
    baseline: Score | None = None
    score: Score | None = None
    assigned_bound: float | None = None  # L2 hit rate that no cache could exceed with the tiles on these XCDs
    too_large: str = ""  # why it was not replayed; empty if it was
    seconds: float = 0.0  # [s]


class Evaluator:
    """Evaluates states one after the other, in the replay of each."""

    def __init__(self, *, compile: bool = True) -> None:
        self._compile = compile
        self._kept: dict[str, OrderedDict[Hashable, Any]] = {}

    def evaluate(self, state: State, *, anyway: bool = False) -> Result:
        """Verdict, maps and score of a state; no error of the project's own leaves it."""
        began = time.perf_counter()
        found: dict[str, Any] = {"state": state}
        try:
            self._fill(found, state, anyway or state.replay == "timed")
        except SwizzleSimError as error:
            found["problem"] = Problem(code=error.code, message=str(error))
        return Result(**found, seconds=time.perf_counter() - began)

    def _fill(self, found: dict[str, Any], state: State, anyway: bool) -> None:
        """Fill in one result after the other: an error leaves those before it."""
        scorer = self._scorer(state)
        grid, gpu = scorer.kernel.grid, scorer.gpu
        xcd = xcd_of(grid.num_pids, gpu, scorer.kernel.programs)
        found.update(summary=scorer.kernel.summary, grid=str(grid), num_xcds=gpu.xcds, ribbon=is_ribbon(grid))
        found["before"] = tile_map(grid, xcd, np.arange(xcd.size))
        found["fits"] = tuple(name for name in FAMILIES if fits(name, grid, gpu.xcds))
        swizzle = self._judge(found, scorer, state, xcd)
        found["too_large"] = "" if anyway else self._too_large(scorer)
        score = None if found["too_large"] else self._replays(scorer, state)
        if score:
            self._share_bound(scorer, state)
            found["baseline"] = score(np.arange(xcd.size), "")
        if score and swizzle is not None and found["verdict"].bijective:
            order = scorer.permutation(swizzle)
            found["score"] = score(order, state.swizzle)
            key = (_machine(state), state.swizzle)
            found["assigned_bound"] = self._keep("assigned", key, lambda: scorer.assigned_bound(order), SCORES)

    def _replays(self, scorer: Scorer, state: State) -> Replays:
        """Score of an order by its text, that of the launch order by none; known ones are not replayed again."""

        def score(order: np.ndarray, text: str) -> Score:
            def make() -> Score:
                before = score(np.arange(order.size), "").time_us if text else None
                return scorer.score_traffic(scorer.traffic(order), baseline_us=before)

            return self._keep("score", (_machine(state), text), make, SCORES)

        return score

    def _judge(self, found: dict[str, Any], scorer: Scorer, state: State, xcd: np.ndarray) -> Swizzle | None:
        """Verdict and map of the swizzle; an error in its text leaves the launch order's results."""
        try:
            swizzle = state.load_swizzle()
            found["verdict"] = scorer.verify(swizzle)
            found["after"] = _map_of(scorer, swizzle, xcd)
        except SwizzleSimError as error:
            found["problem"] = Problem(code=error.code, message=str(error))
            return None
        return swizzle

    def _scorer(self, state: State) -> Scorer:
        def make() -> Scorer:
            gpu, work = state.load_gpu(), self._kernel(state)
            if self._compile:
                work = self._keep("compiled", (state.kernel, state.sizes, gpu.arch), lambda: compiled_for(work, gpu))
            return Scorer(work, gpu, replay=state.replay)

        return self._keep("scorer", _machine(state), make)

    def _kernel(self, state: State) -> Kernel:
        """Kernel whose trace is built once for all GPUs with that line size."""

        def make() -> Kernel:
            one = state.load_kernel()
            if one.grid.num_pids > MAX_WORKGROUPS:
                raise SizeError(
                    f"{one.name}: {one.grid.num_pids} workgroups; the page takes at most {MAX_WORKGROUPS}: "
                    "use smaller sizes or larger blocks"
                )

            def trace(line_bytes: int) -> Trace:
                key = (state.kernel, state.sizes, line_bytes)
                return self._keep("trace", key, lambda: one.build_trace(line_bytes))

            return replace(one, build_trace=trace)

        return self._keep("kernel", (state.kernel, state.sizes), make)

    def _too_large(self, scorer: Scorer) -> str:
        trace = scorer.kernel.build_trace(scorer.gpu.l2.line_bytes)
        if trace.n_instructions > MAX_INSTRUCTIONS:
            return f"the launch has {trace.n_instructions:,} tensor instructions, more than {MAX_INSTRUCTIONS:,}"
        lookups = int(trace.entries_per_template[trace.template].sum()) * scorer.plan.simulated_fraction
        if lookups > MAX_LOOKUPS:
            return f"one replay takes {lookups / 1e6:,.0f} million cache look-ups, more than {MAX_LOOKUPS / 1e6:.0f}"
        return ""

    def _share_bound(self, scorer: Scorer, state: State) -> None:
        """Take the bound from a GPU that differs only in what the bound does not read: sizes and ways of caches."""
        gpu = scorer.gpu
        of_l2 = ("line_bytes", "fetch_bytes", "read_request_bytes", "write_request_bytes")
        reads = (gpu.xcds, gpu.dispatch, gpu.dispatch_chunk, gpu.dispatch_offset, *(getattr(gpu.l2, n) for n in of_l2))
        scorer.__dict__["bound"] = self._keep("bound", (state.kernel, state.sizes, reads), lambda: scorer.bound)

    def _keep(self, what: str, key: Hashable, make: Callable[[], T], most: int = REUSED) -> T:
        """Value of an earlier call, or made now; the oldest of more than ``most`` is forgotten."""
        kept = self._kept.setdefault(what, OrderedDict())
        if key not in kept:
            kept[key] = make()
        kept.move_to_end(key)
        if len(kept) > most:
            kept.popitem(last=False)
        return kept[key]


def _machine(state: State) -> Hashable:
    """What of a state decides the score of an order."""
    return state.kernel, state.sizes, state.gpu, state.changes, state.replay


def _map_of(scorer: Scorer, swizzle: Swizzle, xcd: np.ndarray) -> np.ndarray | None:
    """XCD of each tile, of whatever the swizzle computes; None where its evaluation stopped."""
    grid = scorer.kernel.grid
    try:
        run, _ = permutation_of(swizzle.program, grid, scorer.gpu.xcds, scorer.kernel.problem)
    except LanguageError as error:
        raise error.placed(swizzle.filename, swizzle.source) from None
    if run.fault:
        return None
    inside = run.ids >= 0
    reached = np.full(grid.num_pids, -1, np.int64)
    reached[run.ids[inside]] = xcd[inside]
    return tile_map(grid, reached, np.arange(grid.num_pids))


def cards() -> dict[str, bytes]:
    """PNG of each family by name: 16 x 16 tiles (3-D orders: 16 x 4 x 4 workgroups, x along the rows), 8 XCDs."""
    return {name: map_png(small_map(name), XCDS) for name in FAMILIES}


def small_map(spec: str) -> np.ndarray:
    """XCD of each tile of the gallery's grid under a specification, (16, 16) int array."""
    three = parse_spec(spec)[-1][0].axes == 3
    grid = _BOX if three else _FLAT
    order = Swizzle.parse(family(spec)).permutation(grid, XCDS)
    xcd = np.empty(grid.num_pids, np.int64)
    xcd[order] = np.arange(grid.num_pids) % XCDS
    return xcd.reshape(SIDE, SIDE)


def fits(spec: str, grid: Grid, num_xcds: int) -> bool:
    """Whether a specification has the axes that it needs on a grid, and is a bijection there."""
    axes = parse_spec(spec)[-1][0].axes
    if axes == 3 and len(grid.launch) != 3:
        return False
    return not (axes == 2 and grid.shape is None) and holds(spec, grid, num_xcds)
