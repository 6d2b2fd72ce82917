"""Whether uncertain constants of the model could change the ranking of a run's finalists.

`check_finalists` replays the best candidates of a run under other plausible constants and leaves `FILE` in its folder;
the command line and the report page print the same lines of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.search.ranking import DRAWS, OBJECTIVES

if TYPE_CHECKING:
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.search.loop import Run

FILE = DRAWS
LAUNCHED = "the order as launched"  # the launch order's name in FILE and in JSON documents


def check_finalists(
    run: Run, scorer: Scorer, on_replay: Callable[[int, int], None] | None = None
) -> dict[str, Any] | None:
    """Compare the best of a run with the next two and the launch order; None where there is nothing to compare."""
    from swizzle_sim.uncertainty import FINALISTS, Finalist, compare_finalists  # noqa: PLC0415
    from swizzle_sim.uncertainty.rank_stability import FIGURES  # noqa: PLC0415

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
    found = compare_finalists(scorer, finalists, of=of, on_replay=on_replay)
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
    """One line for the finalists whose ranking may change, one for those whose ranking is stable, one for the draws."""
    pairs, best, of = found["pairs"], _name(found["pairs"][0]["better"]), OBJECTIVES[found["of"]]
    unit = "points" if of.largest else "%"
    near = [_gap(pair, unit) for pair in pairs if not pair["apart"]]
    ahead = [_gap(pair, unit) for pair in pairs if pair["apart"]]
    said = of.spoken[0].upper() + of.spoken[1:]
    lines = [f"{best} is not distinguishable within model uncertainty from: {', '.join(near)}"] if near else []
    lines += [f"{best} is ahead in every draw of: {', '.join(ahead)}"] if ahead else []
    constants = ", ".join(found["constants"]) or f"no constant: the {of.spoken} depends on none that is uncertain"
    return [*lines, f"  ({said}; {found['draws']} draws of {constants})"]


def _name(name: str) -> str:
    return "launch order" if name == LAUNCHED else name


def _gap(pair: Mapping[str, Any], unit: str) -> str:
    """Name of the worse of two, and how far it is behind."""
    low, high = (f"{100 * pair[key]:+.2f}" for key in ("low", "high"))
    gap = "equal" if pair["low"] == pair["high"] == 0 else f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
    return f"{_name(pair['worse'])} ({gap})"
