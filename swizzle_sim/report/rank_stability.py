"""Whether uncertain constants of the model could change the ranking of a run's finalists.

`check_finalists` replays the best candidates of a run under other plausible constants and leaves `FILE` in its folder;
the command line and the report page print the same lines of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.ranking import DRAWS, OBJECTIVES
from swizzle_sim.uncertainty.constants import Constant, counting_settings, drawn_constants, latin_hypercube_settings
from swizzle_sim.uncertainty.perturbed_scorer import OnReplay, perturbed, replay_draws

if TYPE_CHECKING:
    from swizzle_sim.search.loop import Run

FILE = DRAWS
LAUNCHED = "the order as launched"  # the launch order's name in FILE and in JSON documents
SPOKEN = {LAUNCHED: "launch order"}  # where people read it
MOST_DRAWS, FEWEST_DRAWS = 8, 2
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
    threads: int | None = None,
    on_replay: OnReplay | None = None,
) -> dict[str, Any]:
    """Compare the best candidate with each of the others under other constants: JSON-ready.

    It costs ``draws`` replays a finalist. Where symmetry lets the replay skip most of the L2, an index that breaks the
    symmetry would cost twenty times as much: such choices are left to `uncertainty`.
    """
    counted = (_cheap(scorer, constant) for constant in drawn_constants(scorer) if _counts(scorer, constant, of))
    constants = [one for one in counted if one.ends()]
    if draws is None:
        draws = min(MOST_DRAWS, max(FEWEST_DRAWS, int(LOOKUPS / (scorer.lookups * len(finalists))) - 1))
    scores = [one.score for one in finalists]
    known = [[getattr(score, FIGURES[of]) for score in scores]] if all(scores) else []
    settings = [*([] if known else [{}]), *latin_hypercube_settings(constants, draws, 0)]
    found, _ = replay_draws(scorer, [one.order for one in finalists], settings, threads=threads, on_replay=on_replay)
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


def check_finalists(
    run: Run, scorer: Scorer, on_replay: OnReplay | None = None, threads: int | None = None
) -> dict[str, Any] | None:
    """Compare the best of a run with the next two and the launch order; None where there is nothing to compare."""
    of, ranking = run.ranking.main.name, run.ranking
    if run.baseline.score is None or of not in FIGURES or len(ranking.objectives) > 1 or ranking.sizes > 1:
        return None
    chosen = {attempt.number: attempt for attempt in [*run.ranked[:FINALISTS], run.baseline]}
    if len(chosen) < 2:
        return None
    finalists = []
    for attempt in chosen.values():
        name = LAUNCHED if attempt.number == run.baseline.number else attempt.name
        order = scorer.permutation(attempt.swizzle)
        score = attempt.judged.score  # by this scorer, unless it was compiled otherwise
        finalists.append(Finalist(name, order, score if score and score.price is None else None))
    found = compare_finalists(scorer, finalists, of=of, threads=threads, on_replay=on_replay)
    for pair, number in zip(found["pairs"], list(chosen)[1:], strict=True):
        pair["number"] = number
    write_whole(run.folder / FILE, (json.dumps(found, indent=1) + "\n").encode())
    return found


def stored_lines(folder: Path) -> list[str]:
    """Lines on what a run stored; none where it stored nothing that can be read."""
    try:
        return stability_lines(json.loads((folder / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return []


def stability_lines(found: Mapping[str, Any]) -> list[str]:
    """One line for the ties with the best, one for the orders that it always beats, one for the guesses."""
    pairs, of = found["pairs"], OBJECTIVES[found["of"]]
    best = SPOKEN.get(pairs[0]["better"], pairs[0]["better"])
    unit = "points" if of.largest else "%"
    near = [_gap(pair, unit) for pair in pairs if not pair["apart"]]
    ahead = [_gap(pair, unit) for pair in pairs if pair["apart"]]
    said = of.spoken[0].upper() + of.spoken[1:]
    lines = [f"{best} ties with: {', '.join(near)}"] if near else []
    lines += [f"{best} always beats: {', '.join(ahead)}"] if ahead else []
    of_what = f"{len(found['constants'])} uncertain constants; --json names them"
    return [*lines, f"  ({said}, under {found['draws']} other guesses of {of_what})"]


def _gap(pair: Mapping[str, Any], unit: str) -> str:
    """Name of the worse of two, and how far it is behind: points of a rate, else percent, of the logarithm stored."""
    of = math.expm1 if unit == "%" else float
    low, high = (f"{100 * of(pair[key]):+.2f}" for key in ("low", "high"))
    gap = "equal" if pair["low"] == pair["high"] == 0 else f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
    return f"{SPOKEN.get(pair['worse'], pair['worse'])} ({gap})"
