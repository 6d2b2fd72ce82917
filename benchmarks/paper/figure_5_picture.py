"""Picture of figure 5: maps of tiles, coloured by XCD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.paper import drawing
from swizzle_sim.display.colours import OTHER, XCDS, on_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUMBERED_SIDE = 16
SHARED = "#e5e5e5"


def maps(data: Mapping[str, Any]) -> Figure:
    """One row an architecture and kernel, one map an order."""
    from matplotlib.patches import Patch

    figure = drawing.canvas(11.5, 12.5)
    parts = figure.subfigures(len(data["rows"]), 1)
    for part, row in zip(parts, data["rows"], strict=True):
        simulated = f"; simulated, {row['replay']} replay" if "replay" in row else "; no replay: where tiles go"
        part.suptitle(row["title"] + simulated, fontsize=9.5)
        axes = part.subplots(1, 3)
        for one, panel in zip(row["maps"], axes, strict=False):
            _draw(panel, one, row["xcds"])
        for panel in axes[len(row["maps"]) :]:
            panel.axis("off")
    handles = [Patch(color=colour, label=f"XCD {x}") for x, colour in enumerate(XCDS)]
    handles.append(Patch(color=SHARED, label="tile of several workgroups"))
    figure.legend(handles=handles, loc="outside lower left", ncols=9, frameon=False, fontsize=8)
    return drawing.finish(figure, "Figure 5: XCD of each tile of C", quick=data["quick"])


def _draw(axes: Axes, one: Mapping[str, Any], xcds: int) -> None:
    from matplotlib.colors import ListedColormap

    tiles = np.array(one["xcd"])
    colours = [SHARED, *(XCDS[x % len(XCDS)] for x in range(xcds))]
    axes.imshow(tiles, cmap=ListedColormap(colours), vmin=-1.5, vmax=xcds - 0.5, interpolation="nearest")
    rate = f"L2 hit rate {100 * one['l2_hit_rate']:.1f} %\n" if "l2_hit_rate" in one else ""
    label = one["label"] if len(one["label"]) <= 44 else one["label"].replace("+", "+\n", 1)
    axes.set_title(f"{label}\n{rate}{one['panels_per_xcd']:.1f} panels an XCD", fontsize=8.5)
    axes.set_xlabel("tile column", fontsize=8, color=OTHER)
    axes.set_ylabel("tile row", fontsize=8, color=OTHER)
    axes.tick_params(labelsize=7)
    drawing.whole_numbers(axes.xaxis, axes.yaxis)
    if max(tiles.shape) <= NUMBERED_SIDE:
        for (m, n), x in np.ndenumerate(tiles):
            if x >= 0:
                axes.text(n, m, str(x), ha="center", va="center", fontsize=8, color=on_colour(XCDS[x % len(XCDS)]))
