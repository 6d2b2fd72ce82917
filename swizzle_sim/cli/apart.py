"""What ``optimize`` says of finalists that other plausible constants would rank otherwise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from swizzle_sim.scoring import Scorer
    from swizzle_sim.search import Run
    from swizzle_sim.uncertainty import Pair, RankStability

FILE = "uncertainty.json"  # in the run folder
TellApart = Annotated[
    bool,
    typer.Option("--uncertainty/--no-uncertainty", help="Say which finalists other plausible constants could swap."),
]


def told_apart(run: Run, scorer: Scorer) -> RankStability | None:
    """Hold the best of a run against the next two and the order as launched; None where nothing is left to compare.

    Raises
    ------
    RunError
        If the run folder cannot be written.
    """
    from swizzle_sim.atomic_write import write_whole
    from swizzle_sim.swizzle import Swizzle
    from swizzle_sim.uncertainty import FINALISTS, Finalist, compare_finalists

    if run.baseline.score is None:
        return None
    chosen = {attempt.number: attempt for attempt in [*run.ranked[:FINALISTS], run.baseline]}
    if len(chosen) < 2:
        return None
    finalists = []
    for attempt in chosen.values():
        name = "the order as launched" if attempt.number == run.baseline.number else attempt.name
        finalists.append(Finalist(name, scorer.permutation(Swizzle.parse(attempt.source, name=attempt.name))))
    found = compare_finalists(scorer, finalists)
    write_whole(run.folder / FILE, (json.dumps(found.as_dict(), indent=1) + "\n").encode())
    return found


def lines_of(found: RankStability) -> list[str]:
    """One line for those that cannot be told from the best, one for those that can, one for what was drawn."""
    best = found.pairs[0].better
    close = [f"{pair.worse} ({_span(pair)})" for pair in found.pairs if not pair.is_stable]
    apart = [f"{pair.worse} ({_span(pair)})" for pair in found.pairs if pair.is_stable]
    lines = [f"cannot be told apart from {best}: {', '.join(close)}"] if close else []
    lines += [f"{best} stays ahead of: {', '.join(apart)}"] if apart else []
    drawn = ", ".join(found.constants) or "nothing that it could hang on"
    return [*lines, f"  (L2 hit rate, {found.draws} draws of {drawn}; more: swizzle-sim score --uncertainty)"]


def _span(pair: Pair) -> str:
    if pair.low == pair.high == 0:
        return "equal"
    low, high = f"{100 * pair.low:+.2f}", f"{100 * pair.high:+.2f}"
    return f"{low} points" if low == high else f"{low} to {high} points"
