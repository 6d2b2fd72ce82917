"""`tell_apart`: whether the finalists of a search differ by more than what the model cannot know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from swizzle_sim.scoring import Scorer
from swizzle_sim.uncertainty.constants import Constant
from swizzle_sim.uncertainty.draws import together
from swizzle_sim.uncertainty.study import RATE_ENDS, RATES, drawn_constants, replay_draws
from swizzle_sim.uncertainty.varied import varied

DRAWS = 8
FINALISTS = 3


@dataclass(frozen=True)
class Finalist:
    """A candidate of the ranking: its name and the permutation that it stands for."""

    name: str
    order: np.ndarray


@dataclass(frozen=True)
class Pair:
    """Two neighbours of the ranking.

    Parameters
    ----------
    better, worse : str
        Names.
    value : float
        L2 hit rate of the better less that of the worse, with the constants in use.
    low, high : float
        Over all draws, the same constants for both.
    """

    better: str
    worse: str
    value: float
    low: float
    high: float

    @property
    def apart(self) -> bool:
        """Whether one of them is ahead in every draw."""
        return self.low > 0


@dataclass(frozen=True)
class Apart:
    """What the draws say of the finalists.

    Parameters
    ----------
    draws : int
    constants : tuple of str
        Keys of what was drawn.
    pairs : tuple of Pair
        The best against each other finalist, and against the order as launched.
    """

    draws: int
    constants: tuple[str, ...]
    pairs: tuple[Pair, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        pairs = [{**asdict(pair), "apart": pair.apart} for pair in self.pairs]
        return {"draws": self.draws, "constants": list(self.constants), "of": "l2_hit_rate", "pairs": pairs}


def tell_apart(scorer: Scorer, finalists: Sequence[Finalist], *, draws: int = DRAWS, seed: int = 0) -> Apart:
    """Hold the best candidate against the others under other constants.

    Parameters
    ----------
    scorer : Scorer
        Of the search.
    finalists : sequence of Finalist
        At least one, best first; their hit rates are compared with the first's.
    draws : int
        Points of a Latin hypercube over the constants that the hit rate hangs on.
    seed : int

    Returns
    -------
    Apart

    Notes
    -----
    It costs ``draws`` replays a finalist and no more. Where symmetry spares the replay most of the L2, an index that
    undoes it would cost twenty times as much: such choices are left to `uncertainty`.
    """
    counted = (_cheap(scorer, constant) for constant in drawn_constants(scorer) if _counts(scorer, constant))
    constants = [one for one in counted if one.ends()]
    settings = [{}, *together(constants, draws, seed)]
    found, _ = replay_draws(scorer, [one.order for one in finalists], settings)
    rates = np.array([[figures["l2_hit_rate"] for figures in row] for row in found], float)
    pairs = []
    for at, other in enumerate(finalists[1:], start=1):
        gap = rates[:, 0] - rates[:, at]
        low, high = float(gap.min()), float(gap.max())
        pairs.append(Pair(finalists[0].name, other.name, float(gap[0]), low, high))
    return Apart(draws, tuple(one.key for one in constants), tuple(pairs))


def _counts(scorer: Scorer, constant: Constant) -> bool:
    """Whether an L2 hit rate can hang on it: in lockstep neither on rates nor on what lies behind the L2."""
    if scorer.replay == "timed":
        return True
    return not (
        constant.key in RATES
        or constant.key.endswith(RATE_ENDS)
        or constant.key.startswith(("mall.", "hbm.", "hbm_rows."))
    )


def _cheap(scorer: Scorer, constant: Constant) -> Constant:
    """Constant without the choices that make more of the L2 to be replayed."""
    if not constant.choices:
        return constant
    few = scorer.plan.simulated_fraction
    kept = [one for one in constant.choices if varied(scorer, {constant.key: one}).plan.simulated_fraction <= few]
    return replace(constant, choices=tuple(kept))
