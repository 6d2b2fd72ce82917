"""Orders of workgroups together with the direction of the main loop and the cache policy of loads.

Every setting of the knobs is replayed in lockstep under the launch order and the first of the families' shortlist; the
best by the run's objective are replayed once more in the timed replay, beside the launch order as it is and the best
order that leaves the knobs alone. Only settings that can be written into the kernel's source are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swizzle_sim.pricing.knobs import DEFAULT, Knobs, argument_names, emit_knobs, periods
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.configurations import distinct_orders
from swizzle_sim.search.ranking import OBJECTIVES
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import RewriteError, SearchError

EVALUATIONS = 120  # lockstep replays of a search without a budget
FINALISTS = 6  # timed replays beside those of the two that leave the knobs alone
OnReplay = Callable[[int, int], None]


@dataclass(frozen=True)
class Setting:
    """One order with one setting of the knobs, and its scores.

    Parameters
    ----------
    order : Candidate
    knobs : Knobs
    lockstep : Score
    timed : Score, optional
        Of a finalist.
    """

    order: Candidate
    knobs: Knobs
    lockstep: Score
    timed: Score | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        scores = {"lockstep": self.lockstep.as_dict(), "timed": self.timed and self.timed.as_dict()}
        return {"swizzle": self.order.name, **self.knobs.as_dict(), **scores}


@dataclass(frozen=True)
class LoopSearch:
    """What a search over orders and knobs found.

    Parameters
    ----------
    ranked : list of Setting
        Finalists by the timed replay, best first; the launch order as it is among them.
    tried : int
        Lockstep replays.
    refused : dict of str to str
        Knobs that the kernel's source does not take, with the reason.
    """

    ranked: list[Setting]
    tried: int
    refused: dict[str, str] = field(default_factory=dict)


def settings_of(kernel: Kernel, gpu: Gpu, workgroups_per_cu: int) -> tuple[list[Knobs], dict[str, str]]:
    """Settings that can be written into a kernel's source, the default first, and why others cannot.

    Raises
    ------
    SearchError
        With code ``tune`` if the kernel has no Triton source.
    """
    if kernel.launch is None:
        raise SearchError(f"--tune loop: {kernel.name} has no Triton source to change", code="tune")
    trace, refused = kernel.build_trace(gpu.l2.line_bytes), {}
    given: dict[str, Any] = {
        "function": kernel.launch.function,
        "arguments": argument_names(trace, kernel.launch),
        "axes": len(kernel.launch.grid),
        "arch": gpu.arch,
        "path": kernel.launch.path,
    }

    def can(knobs: Knobs, name: str) -> bool:
        try:
            emit_knobs(kernel.triton_source, knobs=knobs, **given)
        except RewriteError as error:
            refused[name] = str(error)
            return False
        return True

    walks: tuple[int, ...] = ()
    if kernel.programs is not None:
        refused["direction"] = f"{kernel.name} is persistent: its programs walk several loops"
    elif trace.trip.size == 0:
        refused["direction"] = "the trace does not say which instructions are trips of a loop"
    elif can(Knobs(period=1), "direction"):
        walks = periods(gpu, workgroups_per_cu, kernel.grid.num_pids)
    read = {int(tensor) for tensor in trace.tensor[~trace.is_write]}
    streams = [name for i, name in enumerate(t.name for t in trace.tensors) if i in read]
    streams = [name for name in streams if can(Knobs(streamed=(name,)), name)]
    policies = [(), *((name,) for name in streams)]
    return [Knobs(period, policy) for period, policy in itertools.product((0, *walks), policies)], refused


def tune_loop(
    kernel: Kernel,
    gpu: Gpu,
    *,
    objective: str = "l2_hit_rate",
    evaluations: int = EVALUATIONS,
    seed: int = 0,
    on_replay: OnReplay = lambda done, budget: None,
) -> LoopSearch:
    """Search orders together with the knobs.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    objective : str
        One of `swizzle_sim.search.ranking.OBJECTIVES`.
    evaluations : int
        Lockstep replays at most.
    seed : int
        Of the timed replay.
    on_replay : callable

    Raises
    ------
    SearchError
        If there is no knob to set.
    """
    lockstep, timed = Scorer(kernel, gpu, replay="lockstep"), Scorer(kernel, gpu, seed=seed)
    settings, refused = settings_of(kernel, gpu, lockstep.occupancy)
    if settings == [DEFAULT]:
        raise SearchError(f"--tune loop: {'; '.join(refused.values())}", code="tune")
    orders = list(itertools.islice(distinct_orders(lockstep), max(1, evaluations // len(settings))))
    found: list[tuple[Setting, np.ndarray]] = []
    for place, (order, permutation) in enumerate(orders):
        for knobs in settings[: max(2, evaluations)] if place == 0 else settings:
            scored = lockstep.with_knobs(knobs).score_order(permutation, baseline_us=lockstep.baseline.time_us)
            found.append((Setting(order, knobs, scored), permutation))
            on_replay(len(found), len(orders) * len(settings))
    cost = OBJECTIVES[objective].cost
    found.sort(key=lambda one: cost(one[0].lockstep))
    ranked = [_timed(one, permutation, timed) for one, permutation in _finalists(found)]
    ranked.sort(key=lambda one: cost(one.timed or one.lockstep))
    return LoopSearch(ranked, len(found), refused)


def _finalists(found: Sequence[tuple[Setting, np.ndarray]]) -> Iterator[tuple[Setting, np.ndarray]]:
    """The best, and of those that leave the knobs alone the best and the launch order."""
    plain = [one for one in found if one[0].knobs == DEFAULT]
    launched = next(one for one in plain if one[0].order.name == "identity")
    best: dict[Knobs, tuple[Setting, np.ndarray]] = {}
    for one in found:  # the best order of each setting, the best settings first
        best.setdefault(one[0].knobs, one)
    yield from [one for knobs, one in best.items() if knobs != DEFAULT][:FINALISTS]
    yield plain[0]
    if plain[0] is not launched:
        yield launched


def _timed(one: Setting, permutation: np.ndarray, scorer: Scorer) -> Setting:
    score = scorer.with_knobs(one.knobs).score_order(permutation, baseline_us=scorer.baseline.time_us)
    return Setting(one.order, one.knobs, one.lockstep, score)
