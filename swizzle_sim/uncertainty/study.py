"""`uncertainty`: ranges of an order's figures, and of its gain over the launch order, over plausible constants.

Both orders are replayed under the same draw, so that effects common to both cancel in their difference. In the lockstep
replay rates and latencies change no count: draws that differ in those alone share one replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.uncertainty.constants import (
    Constant,
    drawn_constants,
    held_facts,
    latin_hypercube_settings,
    one_at_a_time,
)
from swizzle_sim.uncertainty.perturbed_scorer import QUANTITIES, Figures, OnReplay, Settings, replay_draws
from xcd_model.errors import ReplayError

DRAWS = 16
PAIRED = ("l2_hit_rate", "hbm_bytes", "speedup")


@dataclass(frozen=True, kw_only=True)
class Span:
    """Range of one figure over all draws, and the constant that alone moves it most."""

    value: float | None  # none where the figure does not exist
    low: float | None
    high: float | None
    moved_by: str = ""  # key of the constant whose ends move it furthest; empty if none moves it
    moved_low: float | None = None  # lowest and highest with that constant alone changed, the value in use included
    moved_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Ranges of one candidate's figures over the plausible values of the constants."""

    constants: tuple[Constant, ...]  # those varied
    held: Mapping[str, str]  # assumed or measured facts that were not varied, with the reason
    draws: int  # of the Latin hypercube; each constant is also drawn alone at each end
    seed: int
    replays: int  # made now, without those that were cached
    baseline: Mapping[str, Span]  # by quantity of `QUANTITIES`; ``difference`` by quantity of `PAIRED`
    candidate: Mapping[str, Span]
    difference: Mapping[str, Span]
    ahead: tuple[int, int]  # draws in which the candidate's L2 hit rate is above the launch order's, and all draws
    effects: Mapping[str, list[dict[str, Any]]]  # by constant: its settings, each with the figures of both orders

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        spans = ("baseline", "candidate", "difference")
        return {
            "method": "each constant at both ends of its range, and a Latin hypercube of all; low and high over both",
            **{"draws": self.draws, "seed": self.seed, "replays": self.replays},
            **{name: {key: asdict(span) for key, span in getattr(self, name).items()} for name in spans},
            "candidate_ahead": self.ahead[0],
            "of_draws": self.ahead[1],
            "constants": [constant.as_dict() for constant in self.constants],
            "held": dict(self.held),
            "effects": dict(self.effects),
        }


def uncertainty(
    scorer: Scorer,
    order: np.ndarray,  # (num_pids,) int
    *,
    draws: int = DRAWS,
    seed: int = 0,
    threads: int | None = None,
    on_replay: OnReplay | None = None,
) -> Uncertainty:
    """Ranges of an order's figures, and of its gain over the launch order.

    Every end and every draw is replayed for both orders and cached on disk. Decision 0016 gives the reasons.
    """
    if draws < 2:
        raise ReplayError(f"draws = {draws}: a range needs at least 2")
    constants = drawn_constants(scorer)
    held = held_facts(scorer.gpu)
    alone = list(one_at_a_time(constants))
    settings: list[Settings] = [{}, *(one for _, one in alone), *latin_hypercube_settings(constants, draws, seed)]
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


def _effects(
    alone: Sequence[tuple[str, Settings]], before: Sequence[Figures], after: Sequence[Figures]
) -> dict[str, list[dict[str, Any]]]:
    effects: dict[str, list[dict[str, Any]]] = {}
    for (key, settings), base, one in zip(alone, before, after, strict=False):
        entry = {"setting": settings[key], "baseline": dict(base), "candidate": dict(one)}
        effects.setdefault(key, []).append(entry)
    return effects


def paired(before: Figures, after: Figures) -> Figures:
    """Change from one order to another under the same constants, by `PAIRED`.

    Rates are subtracted (after - before), bytes divided (after / before), and so are times (before / after).
    """
    rate, was = after["l2_hit_rate"], before["l2_hit_rate"]
    return {
        "l2_hit_rate": None if rate is None or was is None else rate - was,
        "hbm_bytes": _ratio(after["hbm_bytes"], before["hbm_bytes"]),
        "speedup": _ratio(before["time_us"], after["time_us"]),
    }


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over is not None and under else None


def span_of(name: str, figures: Sequence[Figures], keys: Sequence[str]) -> Span:
    """Span of one quantity."""
    values = [one[name] for one in figures]
    known = [value for value in values if value is not None]
    nominal = values[0]
    if nominal is None or not known:
        return Span(value=None, low=None, high=None)
    alone: dict[str, list[float]] = {}
    for key, value in zip(keys, values[1:], strict=False):
        if value is not None:
            alone.setdefault(key, [nominal]).append(value)
    most = max(alone, key=lambda key: max(abs(value - nominal) for value in alone[key]), default="")
    moved, span = alone.get(most, [nominal]), Span(value=nominal, low=min(known), high=max(known))
    if set(moved) == {nominal}:
        return span
    return replace(span, moved_by=most, moved_low=min(moved), moved_high=max(moved))
