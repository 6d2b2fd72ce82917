"""Picture of figure 16: bars a kernel, a place for each model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.paper import drawing
from benchmarks.paper.drawing import FAMILIES, LAUNCHED, LIMIT, MODELS, SEARCH, TITLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def models(data: Mapping[str, Any]) -> Figure:
    """Best L2 hit rate of each model, as launched, families and search beside it."""
    names = list(dict.fromkeys(model for row in data["kernels"] for model in row["models"]))
    width = 0.86 / (3 + len(names))
    figure = drawing.canvas(12, 5)
    axes = figure.subplots()
    for i, row in enumerate(data["kernels"]):
        at = [i - 0.43 + (k + 0.5) * width for k in range(3 + len(names))]
        three = (("launched", LAUNCHED, "as launched"), ("families", FAMILIES, "best family"))
        for x, (key, colour, label) in zip(at, (*three, ("search", SEARCH, "two-stage search")), strict=False):
            axes.bar(x, 100 * row[key], width * 0.95, color=colour, label="" if i else f"{label}, simulated")
        axes.plot([at[0] - width / 2, at[-1] + width / 2], [100 * row["bound"]] * 2, color=LIMIT, lw=1.3,
                  label="" if i else "bound")  # fmt: skip
        for k, model in enumerate(names):
            found, x, colour = row["models"].get(model), at[3 + k], MODELS[k % len(MODELS)]
            if found is None or found["score"] is None:
                drawing.no_run(axes, x, 1, f"{model}: {drawing.NO_RUN if found is None else 'no bijection'}", size=8)
            else:
                axes.bar(x, 100 * found["score"]["l2_hit_rate"], width * 0.95, color=colour,
                         label=f"{model}, recorded; simulated")  # fmt: skip
    drawing.rates(axes)
    axes.set_xticks(range(len(data["kernels"])), [TITLES[row["kernel"]] for row in data["kernels"]])
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    replay = data["kernels"][0]["replay"]
    return drawing.finish(figure, f"Figure 16: models, {drawing.gpu_name(data)}, {replay} replay", quick=data["quick"])
