"""Searches without a run folder, as a part of another run, and the landscape of one template in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swizzle_sim.history import Attempt
from swizzle_sim.templates import Template
from swizzle_sim.tuning.bench import Bench
from swizzle_sim.tuning.plan import Plan
from swizzle_sim.tuning.rungs import Searched, Searching
from swizzle_sim.tuning.search import make_arms

SHOWN = 6  # values of a parameter that the landscape names


class _Draft(list):
    """Attempts in memory, where a search expects a history."""

    folder = Path(".")
    append_all = list.extend


def search_on(bench: Bench, templates: Sequence[Template] = (), *, evaluations: int, seed: int = 0) -> Searched:
    """Search templates on a bench; nothing is stored.

    Parameters
    ----------
    bench : Bench
    templates : sequence of Template
        Empty for those of the families.
    evaluations : int
        Full replays, at least 1.
    seed : int

    Raises
    ------
    SearchError
        If the constraints of a template leave nothing at the bench's sizes.
    LanguageError
        If a constraint reads a name that has no value.
    """
    plan = Plan(templates=tuple(templates), evaluations=evaluations)
    arms = make_arms([scorer.kernel for scorer in bench.scorers], bench.main.gpu, plan, seed)
    attempts: Any = _Draft()
    return Searching(bench, plan, attempts, map, None).run(arms)


def landscape(template: Template, attempts: Sequence[Attempt]) -> str:
    """What the parameters of a template do, in words: for each the best hit rate at some of its values.

    Parameters
    ----------
    template : Template
    attempts : sequence of Attempt
        Of `search_on`, the template alone.
    """
    tried = [a for a in attempts if a.number]
    scored = [a for a in tried if a.score is not None]
    stages = ("duplicate", "bound", "sampled", "refused")
    counts = {stage: sum(a.verdict["stage"] == stage for a in tried) for stage in stages}
    lines = [
        f"{len(tried)} of {template.size} combinations tried: {len(scored)} scored, {counts['duplicate']} repeat "
        f"another's permutation, {counts['bound']} cannot beat the best by their bound, {counts['sampled']} fell "
        f"behind on a sample of XCDs, {counts['refused']} are no bijection."
    ]
    if refused := next((a for a in tried if a.verdict["stage"] == "refused"), None):
        lines.append(f"For example {refused.name}: {refused.critique}")
    for one in template.ranges:
        best: dict[int, float] = {}
        for a in scored:
            value, rate = a.verdict["parameters"][one.name], 100 * (a.score.l2_hit_rate if a.score else 0.0)
            best[value] = max(best.get(value, 0.0), rate)
        if best:
            lines.append(f"{one.name}: {_said(best)}.")
    return " ".join(lines)


def _said(best: dict[int, float]) -> str:
    """Best rate by value: an even part of the values, the best among them."""
    values = sorted(best)
    if max(best.values()) - min(best.values()) < 0.005:
        return f"makes no difference ({values[0]} to {values[-1]} all reach {best[values[0]]:.2f} %)"
    top = max(values, key=lambda value: (best[value], -value))
    step = max(1, -(-len(values) // SHOWN))
    shown = sorted({*values[::step], values[-1], top})
    return ", ".join(f"{value} reaches {best[value]:.2f} %" for value in shown) + f"; best at {top}"
