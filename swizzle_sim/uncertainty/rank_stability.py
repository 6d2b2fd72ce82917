"""`compare_finalists`: whether the ranking of a search's finalists holds under other plausible constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.uncertainty.constants import Constant
from swizzle_sim.uncertainty.perturbed_scorer import OnReplay, perturbed, replay_draws
from swizzle_sim.uncertainty.sampling import counting_settings, drawn_constants, latin_hypercube_settings

DRAWS, FEWEST_DRAWS = 8, 2
LOOKUPS = 1e9  # that the draws may take, but for the fewest, as `Scorer.lookups`: about 8 s on two cores
FINALISTS = 3
FIGURES = {"l2_hit_rate": "l2_hit_rate", "time": "time_us", "hbm_bytes": "hbm_bytes"}  # figure of a draw by objective


@dataclass(frozen=True)
class Finalist:
    """A candidate of the ranking.

    Parameters
    ----------
    name : str
    order : (num_pids,) int array
        Its permutation.
    score : Score or None
        By the scorer of the search, whose constants are those in use; where one has none, all are replayed with those.
    """

    name: str
    order: np.ndarray
    score: Score | None = None


@dataclass(frozen=True)
class Pair:
    """Two neighbours of the ranking.

    Parameters
    ----------
    better, worse : str
        Names.
    value : float
        By how much the better is ahead in the objective, with the constants in use: of a rate the difference, of
        anything else the logarithm of the ratio.
    low, high : float
        Over all draws, the same constants for both.
    """

    better: str
    worse: str
    value: float
    low: float
    high: float

    @property
    def is_stable(self) -> bool:
        """Whether the better one is ahead in every draw."""
        return self.low > 0


@dataclass(frozen=True)
class RankStability:
    """Ranking of the finalists over all draws.

    Parameters
    ----------
    draws : int
    constants : tuple of str
        Keys of the constants drawn.
    pairs : tuple of Pair
        The best against each other finalist.
    of : str
        Name of the objective.
    """

    draws: int
    constants: tuple[str, ...]
    pairs: tuple[Pair, ...]
    of: str = "l2_hit_rate"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        pairs = [{**asdict(pair), "apart": pair.is_stable} for pair in self.pairs]
        return {"draws": self.draws, "constants": list(self.constants), "of": self.of, "pairs": pairs}


def compare_finalists(
    scorer: Scorer,
    finalists: Sequence[Finalist],
    *,
    of: str = "l2_hit_rate",
    draws: int | None = None,
    seed: int = 0,
    on_replay: OnReplay | None = None,
) -> RankStability:
    """Compare the best candidate with the others under other constants.

    Parameters
    ----------
    scorer : Scorer
        Of the search.
    finalists : sequence of Finalist
        At least one, best first; their figures are compared with the first's.
    of : str
        Objective, a key of `FIGURES`.
    draws : int, optional
        Points of a Latin hypercube over the constants that the objective depends on; by default `DRAWS`, and fewer of
        a kernel whose replays would need more than `LOOKUPS`.
    seed : int
    on_replay : callable, optional
        ``on_replay(done, total)`` in sets of constants.

    Returns
    -------
    RankStability

    Notes
    -----
    It costs ``draws`` replays a finalist. Where symmetry lets the replay skip most of the L2, an index that breaks the
    symmetry would cost twenty times as much: such choices are left to `uncertainty`.
    """
    counted = (_cheap(scorer, constant) for constant in drawn_constants(scorer) if _counts(scorer, constant, of))
    constants = [one for one in counted if one.ends()]
    if draws is None:
        draws = min(DRAWS, max(FEWEST_DRAWS, int(LOOKUPS / (scorer.lookups * len(finalists))) - 1))
    scores = [one.score for one in finalists]
    known = [[getattr(score, FIGURES[of]) for score in scores]] if all(scores) else []
    settings = [*([] if known else [{}]), *latin_hypercube_settings(constants, draws, seed)]
    found, _ = replay_draws(scorer, [one.order for one in finalists], settings, on_replay=on_replay)
    values = np.array([*known, *([figures[FIGURES[of]] for figures in row] for row in found)], float)
    costs = -values if of == "l2_hit_rate" else np.log(values)
    pairs = []
    for at, other in enumerate(finalists[1:], start=1):
        gap = costs[:, at] - costs[:, 0]
        low, high = float(gap.min()), float(gap.max())
        pairs.append(Pair(finalists[0].name, other.name, float(gap[0]), low, high))
    return RankStability(draws, tuple(one.key for one in constants), tuple(pairs), of)


def _counts(scorer: Scorer, constant: Constant, of: str) -> bool:
    """Whether the objective can depend on it: a hit rate in lockstep neither on rates nor on what is behind the L2."""
    if scorer.replay == "timed" or of != "l2_hit_rate":
        return True
    behind_l2 = constant.key.startswith(("mall.", "hbm.", "hbm_rows."))
    return not behind_l2 and bool(counting_settings(scorer, {constant.key: constant.value}))


def _cheap(scorer: Scorer, constant: Constant) -> Constant:
    """Constant without the choices under which more of the L2 has to be replayed."""
    if not constant.choices:
        return constant
    few = scorer.plan.simulated_fraction
    cheap = [one for one in constant.choices if perturbed(scorer, {constant.key: one}).plan.simulated_fraction <= few]
    return replace(constant, choices=tuple(cheap))
