"""Stage two: the parameters of one template searched without a run folder, and their landscape in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swizzle_sim.history import Attempt
from swizzle_sim.templates import Space, Template
from swizzle_sim.tuning.arms import Arm
from swizzle_sim.tuning.asking import asker_for
from swizzle_sim.tuning.bench import Bench
from swizzle_sim.tuning.search import Plan, Searched, Searching

SHOWN = 6  # values of a parameter that the landscape names


class _Draft(list):
    """Attempts in memory, where a search expects a history."""

    folder = Path(".")
    append_all = list.extend


def search_template(bench: Bench, template: Template, *, evaluations: int, seed: int = 0) -> Searched:
    """Search one template on a bench; nothing is stored.

    Parameters
    ----------
    bench : Bench
    template : Template
    evaluations : int
        Full replays, at least 1.
    seed : int

    Raises
    ------
    SearchError
        If its constraints leave nothing at the bench's sizes.
    LanguageError
        If a constraint reads a name that has no value.
    """
    kernels = [scorer.kernel for scorer in bench.scorers]
    space = Space(template, kernels, bench.main.gpu)
    plan = Plan(templates=(template,), evaluations=evaluations)
    arm = Arm(space, asker_for(space, "auto", seed, budget=evaluations))
    attempts: Any = _Draft()
    return Searching(bench, plan, attempts, map, None).run([arm])


def landscape(template: Template, attempts: Sequence[Attempt]) -> str:
    """What the parameters of a template do, in words: for each the best hit rate at some of its values.

    Parameters
    ----------
    template : Template
    attempts : sequence of Attempt
        Of `search_template`.
    """
    tried = [a for a in attempts if a.number]
    scored = [a for a in tried if a.score is not None]
    counts = {stage: sum(a.verdict["stage"] == stage for a in tried) for stage in ("duplicate", "bound", "refused")}
    lines = [
        f"{len(tried)} of {template.size} combinations tried: {len(scored)} scored, {counts['duplicate']} repeat "
        f"another's permutation, {counts['bound']} cannot beat the best by their bound, "
        f"{counts['refused']} are no bijection."
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
