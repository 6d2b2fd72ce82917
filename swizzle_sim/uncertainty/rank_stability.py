"""`compare_finalists`: whether the ranking of a search's finalists holds under other plausible constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.uncertainty.constants import Constant, counting_settings, drawn_constants, latin_hypercube_settings
from swizzle_sim.uncertainty.perturbed_scorer import OnReplay, perturbed, replay_draws

DRAWS, FEWEST_DRAWS = 8, 2
LOOKUPS = 1e9  # that the draws may take, but for the fewest, as `Scorer.lookups`: about 8 s on two cores
FINALISTS = 3
FIGURES = {"l2_hit_rate": "l2_hit_rate", "time": "time_us", "hbm_bytes": "hbm_bytes"}  # figure of a draw by objective


@dataclass(frozen=True)
class Finalist:
    """A candidate of the ranking."""

    name: str
    order: np.ndarray  # (num_pids,) int array: its permutation
    # by the scorer of the search, whose constants are those in use; where one has none, all are replayed with those
    score: Score | None = None


def compare_finalists(
    scorer: Scorer,
    finalists: Sequence[Finalist],
    *,
    of: str = "l2_hit_rate",
    draws: int | None = None,
    seed: int = 0,
    on_replay: OnReplay | None = None,
) -> dict[str, Any]:
    """Compare the best candidate with each of the others under other constants: JSON-ready.

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
        names = {"better": finalists[0].name, "worse": other.name}
        pairs.append({**names, "value": float(gap[0]), "low": low, "high": high, "apart": low > 0})
    return {"draws": draws, "constants": [one.key for one in constants], "of": of, "pairs": pairs}


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
