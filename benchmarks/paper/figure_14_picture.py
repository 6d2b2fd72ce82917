"""Picture of figure 14: one panel a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.paper import drawing
from benchmarks.paper.drawing import FAMILIES, LAUNCHED, LIMIT, MODELS, SEARCH
from benchmarks.paper.figure_14 import best_so_far

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def progression(data: Mapping[str, Any]) -> Figure:
    """Dots for evaluations, steps for the best so far."""
    figure = drawing.canvas(13, 7)
    axes = list(figure.subplots(2, 3).flat)
    for panel, row in zip(axes, data["kernels"], strict=False):
        _panel(panel, row)
    handles: dict[str, Artist] = {}
    for panel in axes[:-1]:
        handles |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    axes[-1].axis("off")
    axes[-1].legend(handles.values(), handles.keys(), loc="center", frameon=False, fontsize=9)
    return drawing.finish(figure, f"Figure 14: best so far, {drawing.gpu_name(data)}", quick=data["quick"])


def _panel(axes: Axes, row: Mapping[str, Any]) -> None:
    axes.axhline(100 * row["bound"], color=LIMIT, lw=1.2, label="bound")
    axes.axhline(100 * row["launched"], color=LAUNCHED, lw=1.2, ls="--", label="as launched, simulated")
    shown = [("families, one by one, simulated", row["families"], FAMILIES, "o", 3.6)]  # wide: others may lie on it
    shown.append(("two-stage search, simulated", row["search"], SEARCH, "s", 1.6))
    for run, colour in zip(row["models"], (MODELS * len(row["models"])), strict=False):
        shown.append((f"{run['label']}, recorded ({run['replay']} replay)", run["rates"], colour, "^", 1.6))
    for label, rates, colour, mark, width in shown:
        each = 100 * np.array([np.nan if rate is None else rate for rate in rates], float)
        axes.plot(np.arange(1, each.size + 1), each, mark, color=colour, ms=3, alpha=0.45, mew=0)
        best = 100 * np.array(best_so_far(row["launched"], rates))
        axes.step(
            [*range(best.size), best.size - 0.5], [*best, best[-1]], where="post", color=colour, lw=width, label=label
        )
    said = [] if row["models"] else [f"LLM: {drawing.NO_RUN}"]
    said += [] if row["search"] else ["search: as launched is at the bound"]
    axes.text(0.98, 0.02, "\n".join(said), transform=axes.transAxes, ha="right", va="bottom", fontsize=7, color="0.4")
    axes.set_title(drawing.one_line(row["kernel"]), fontsize=10)
    drawing.rates(axes)
    axes.set_xlim(0, max(2, len(row["families"]), len(row["search"])) + 0.5)
    axes.set_xlabel("evaluations")
    drawing.whole_numbers(axes.xaxis)
