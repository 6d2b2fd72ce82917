"""`uncertainty`: replay an order and the order as launched under other constants, and say how far each number moves.

Both orders are replayed under the same draw, so that what moves them together cancels in their difference. In the
lockstep replay rates and latencies change no count: draws that differ in those alone share one replay.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np

from swizzle_sim.scoring import Scorer
from swizzle_sim.uncertainty.constants import Constant, Setting, constants_of, held_facts
from swizzle_sim.uncertainty.draws import one_at_a_time, together
from swizzle_sim.uncertainty.kept import Figures, Kept
from swizzle_sim.uncertainty.spans import PAIRED, QUANTITIES, Span, figures_of, paired, span_of
from swizzle_sim.uncertainty.varied import varied
from xcd_model import Traffic
from xcd_model.errors import ReplayError

DRAWS = 16
RATES = (
    *("clock_mhz", "sustained_clock_mhz", "compute_spread", "peak_tflops", "fabric_bytes_per_cycle"),
    *("instructions_in_flight", "limits.reads_in_flight_per_cu", "limits.workgroup_gap_ns", "hbm.mixed_wait_ns"),
    *("l2_sides.far_ns", "limits.matrix_beside_vector", "energy.power_w"),
)
RATE_ENDS = ("latency_ns", "bytes_per_cycle", "bandwidth_gbps")
OnReplay = Callable[[int, int], None]
Settings = Mapping[str, Setting]


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """What the numbers of one candidate come to over the plausible values of the constants.

    Parameters
    ----------
    constants : tuple of Constant
        Those varied.
    held : mapping of str to str
        Assumed or measured facts that were not varied, and why.
    draws, seed : int
        Of the Latin hypercube, beside one draw at each end of each constant.
    replays : int
        Made for this, the kept ones not counted.
    baseline, candidate, difference : mapping of str to Span
        By quantity of `QUANTITIES`; ``difference`` by quantity of `PAIRED`.
    ahead : tuple of int
        Draws in which the candidate's L2 hit rate is over the baseline's, and all draws.
    effects : mapping of str to list
        By constant: its settings, each with the figures of both orders.
    """

    constants: tuple[Constant, ...]
    held: Mapping[str, str]
    draws: int
    seed: int
    replays: int
    baseline: Mapping[str, Span]
    candidate: Mapping[str, Span]
    difference: Mapping[str, Span]
    ahead: tuple[int, int]
    effects: Mapping[str, list[dict[str, Any]]]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        spans = {name: getattr(self, name) for name in ("baseline", "candidate", "difference")}
        return {
            "method": "each constant at both ends of its range, and a Latin hypercube of all; low and high over both",
            "draws": self.draws,
            "seed": self.seed,
            "replays": self.replays,
            **{name: {key: span.as_dict() for key, span in spans[name].items()} for name in spans},
            "candidate_ahead": self.ahead[0],
            "of_draws": self.ahead[1],
            "constants": [constant.as_dict() for constant in self.constants],
            "held": dict(self.held),
            "effects": dict(self.effects),
        }


def drawn_constants(scorer: Scorer) -> list[Constant]:
    """Constants that a scorer's replay reads and that may be others."""
    found = constants_of(scorer.gpu, scorer.kernel.resources, jitter_ns=scorer.jitter_ns)
    idle = set() if scorer.replay == "timed" else {"jitter_ns"}
    if scorer.kernel.launches == 1:
        idle.add("mall.kept_between_launches")
    if not scorer.kernel.vector_ops:
        idle.add("limits.matrix_beside_vector")
    return [constant for constant in found if constant.key not in idle]


def uncertainty(
    scorer: Scorer,
    order: np.ndarray,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    threads: int | None = None,
    on_replay: OnReplay | None = None,
) -> Uncertainty:
    """Vary the constants under an order and under the order as launched.

    Parameters
    ----------
    scorer : Scorer
        With the constants in use.
    order : (num_pids,) int array
    draws : int
        Points of the Latin hypercube, at least 2.
    seed : int
        Of the hypercube and of the timed replays in it.
    threads : int, optional
        Draws at a time; by default one a core.
    on_replay : callable, optional
        Called as ``on_replay(done, all)`` after each draw.

    Returns
    -------
    Uncertainty

    Raises
    ------
    ReplayError
        If there are fewer than 2 draws.

    Notes
    -----
    Every end and every draw is replayed for both orders and kept on disk. Docs: decision 0016 says why this design.
    """
    if draws < 2:
        raise ReplayError(f"draws = {draws}: a range needs at least 2")
    constants = drawn_constants(scorer)
    held = held_facts(scorer.gpu)
    alone = list(one_at_a_time(constants))
    settings: list[Settings] = [{}, *(one for _, one in alone), *together(constants, draws, seed)]
    orders = [np.arange(order.size), np.asarray(order)]
    found, replays = replay_draws(scorer, orders, settings, threads=threads, on_replay=on_replay)
    before, after = ([figures[at] for figures in found] for at in (0, 1))
    change = [paired(a, b) for a, b in zip(before, after, strict=True)]
    keys = [key for key, _ in alone]
    ahead = [one["l2_hit_rate"] for one in change if one["l2_hit_rate"] is not None]
    return Uncertainty(
        constants=tuple(constants),
        held=held,
        draws=draws,
        seed=seed,
        replays=replays,
        baseline={name: span_of(name, before, keys) for name in QUANTITIES},
        candidate={name: span_of(name, after, keys) for name in QUANTITIES},
        difference={name: span_of(name, change, keys) for name in PAIRED},
        ahead=(sum(one > 0 for one in ahead), len(ahead)),
        effects=_effects(alone, before[1:], after[1:]),
    )


def replay_draws(
    scorer: Scorer,
    orders: Sequence[np.ndarray],
    settings: Sequence[Settings],
    *,
    threads: int | None = None,
    on_replay: OnReplay | None = None,
) -> tuple[list[list[Figures]], int]:
    """Figures of every order under every setting: (settings, orders), and the replays that it took."""
    kept = [Kept(scorer, order) for order in orders]
    groups: dict[str, list[Settings]] = {}
    for one in settings:
        if any(store.get(one) is None for store in kept):
            groups.setdefault(repr(sorted(_counting(scorer, one).items())), []).append(one)
    total = sum(map(len, groups.values()))
    done = 0
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        jobs = {pool.submit(_replay, scorer, orders, group): group for group in groups.values()}
        try:
            for job in as_completed(jobs):
                for one, figures in zip(jobs[job], job.result(), strict=True):
                    for store, figure in zip(kept, figures, strict=True):
                        store.put(one, figure)
                done += len(jobs[job])
                if on_replay:
                    on_replay(done, total)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [[store.get(one) or {} for store in kept] for one in settings], len(groups) * len(orders)


def _counting(scorer: Scorer, settings: Settings) -> dict[str, Setting]:
    """Settings that may change a count: all of them in the timed replay."""
    if scorer.replay == "timed":
        return dict(settings)
    return {key: value for key, value in settings.items() if key not in RATES and not key.endswith(RATE_ENDS)}


def _replay(scorer: Scorer, orders: Sequence[np.ndarray], group: Sequence[Settings]) -> list[list[Figures]]:
    """Figures of each setting of a group, whose counts are those of the first."""
    first = varied(scorer, group[0])
    traffics: list[Traffic] = [first.traffic(order) for order in orders]
    found = []
    for settings in group:
        timer = varied(scorer, settings)
        found.append([figures_of(traffic, timer.time(traffic).total_us) for traffic in traffics])
    return found


def _effects(
    alone: Sequence[tuple[str, Settings]], before: Sequence[Figures], after: Sequence[Figures]
) -> dict[str, list[dict[str, Any]]]:
    effects: dict[str, list[dict[str, Any]]] = {}
    for (key, settings), base, one in zip(alone, before, after, strict=False):
        entry = {"setting": settings[key], "baseline": dict(base), "candidate": dict(one)}
        effects.setdefault(key, []).append(entry)
    return effects
