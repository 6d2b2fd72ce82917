"""Figure 14: the best so far over evaluations, of the searches run here and of recorded models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import style
from .jobs import Job
from .published import PROGRESSION
from .recorded import recorded_runs
from .searches import arms_job, arms_name
from .settings import GPU, Settings
from .style import (
    FAMILIES,
    LAUNCHED,
    LIMIT,
    MODEL_COLOURS,
    NO_RUN,
    SEARCH,
    one_line,
    pct,
    points,
    table,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def jobs(settings: Settings) -> list[Job]:
    """The same families and searches as figure 2's."""
    return [arms_job(settings, name) for name in PROGRESSION]


def gather(settings: Settings, found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """L2 hit rate of each evaluation, by kernel and arm."""
    runs = recorded_runs(settings.studies)
    kernels = []
    for name in PROGRESSION:
        arms, problem = found[arms_name(name)], dict(settings.kernel(name).problem)
        kernels.append(
            {
                "kernel": name,
                "problem": problem,
                "replay": arms["replay"],
                "launched": arms["launched"]["l2_hit_rate"],
                "bound": arms["launched"]["bound_l2_hit_rate"],
                "families": arms["families"]["rates"],
                "search": arms["search"]["rates"],
                "models": [
                    {
                        "label": f"{', '.join(run.models)}, {run.context}",
                        "replay": run.replay,
                        "rates": run.rates,
                        "today": run.today,
                    }
                    for run in runs
                    if (run.kernel, run.problem, run.gpu) == (name, problem, GPU)
                ],
            }
        )
    return {"gpu": GPU, "quick": settings.quick, "kernels": kernels}


def best_so_far(launched: float, rates: list[float | None]) -> list[float]:
    """Best hit rate after each evaluation, that of the launch order first."""
    best = [launched]
    for rate in rates:
        best.append(max(best[-1], rate if rate is not None else 0.0))
    return best


def needed(launched: float, rates: list[float | None], *, part: float = 1.0) -> int | None:
    """Evaluations until a part of the gain was there; None where nothing was gained."""
    best = best_so_far(launched, rates)
    goal = launched + part * (best[-1] - launched)
    return next(i for i, rate in enumerate(best) if rate >= goal) if best[-1] > launched else None


def progression(data: Mapping[str, Any]) -> Figure:
    """Dots for evaluations, steps for the best so far."""
    figure = style.canvas(13, 7)
    axes = list(figure.subplots(2, 3).flat)
    for panel, row in zip(axes, data["kernels"], strict=False):
        _panel(panel, row)
    handles: dict[str, Artist] = {}
    for panel in axes[:-1]:
        handles |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    axes[-1].axis("off")
    axes[-1].legend(handles.values(), handles.keys(), loc="center", frameon=False, fontsize=9)
    return style.finish(figure, f"Figure 14: best so far, {style.gpu_name(data)}", quick=data["quick"])


def _panel(axes: Axes, row: Mapping[str, Any]) -> None:
    axes.axhline(100 * row["bound"], color=LIMIT, lw=1.2, label="bound")
    axes.axhline(100 * row["launched"], color=LAUNCHED, lw=1.2, ls="--", label="launch order, simulated")
    shown = [("families, one by one, simulated", row["families"], FAMILIES, "o", 3.6)]  # wide: others may lie on it
    shown.append(("two-stage search, simulated", row["search"], SEARCH, "s", 1.6))
    for run, colour in zip(row["models"], (MODEL_COLOURS * len(row["models"])), strict=False):
        shown.append((f"{run['label']}, recorded ({run['replay']} replay)", run["rates"], colour, "^", 1.6))
    for label, rates, colour, mark, width in shown:
        each = 100 * np.array([np.nan if rate is None else rate for rate in rates], float)
        axes.plot(np.arange(1, each.size + 1), each, mark, color=colour, ms=3, alpha=0.45, mew=0)
        best = 100 * np.array(best_so_far(row["launched"], rates))
        axes.step(
            [*range(best.size), best.size - 0.5], [*best, best[-1]], where="post", color=colour, lw=width, label=label
        )
    said = [] if row["models"] else [f"LLM: {style.NO_RUN}"]
    said += [] if row["search"] else ["search: the launch order is at the bound"]
    axes.text(0.98, 0.02, "\n".join(said), transform=axes.transAxes, ha="right", va="bottom", fontsize=7, color="0.4")
    axes.set_title(style.one_line(row["kernel"]), fontsize=10)
    style.rates(axes)
    axes.set_xlim(0, max(2, len(row["families"]), len(row["search"])) + 0.5)
    axes.set_xlabel("evaluations")
    style.whole_numbers(axes.xaxis)


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    rows = []
    for row in data["kernels"]:
        arms = [("families", row["families"]), ("two-stage search", row["search"])]
        arms += [(f"{run['label']}, recorded", run["rates"]) for run in row["models"]]
        for arm, rates in arms:
            best = best_so_far(row["launched"], rates)[-1]
            first = needed(row["launched"], rates)
            rows.append(
                [
                    one_line(row["kernel"]),
                    arm,
                    str(len(rates)),
                    pct(row["launched"]),
                    pct(best),
                    points(100 * (best - row["launched"])),
                    "-" if first is None else str(first),
                ]
            )
    heads = ("kernel", "arm", "evaluations", "launch order [%]", "best [%]", "gain [points]", "best found after")
    models = [run for row in data["kernels"] for run in row["models"]]
    before = sum(not run.get("today", True) for run in models)
    of_then = f", {before} of them with the GPU as it was described on their day" if before else ""
    said = (
        f"Lines of models: {len(models)} recorded runs, hit rates as recorded{of_then}."
        if models
        else f"Models: {NO_RUN} on these kernels."
    )
    return "\n\n".join(
        [
            f"Simulated, {data['kernels'][0]['replay']} replay. An evaluation is a replay of a permutation not seen "
            "before; the paper's iteration is a run on the GPU. *Families* are tried in the order of the suite's "
            "shortlist, *search* is the two-stage search over their templates, which screens in lockstep and prunes "
            f"by the bound at no evaluation's cost. {said} The paper prints no values here; its stencil, softmax and "
            "layer norm come near 100 % with formulas that are no bijections (see the audit), so those lines have no "
            "counterpart.",
            table(heads, rows, left=2),
        ]
    )
