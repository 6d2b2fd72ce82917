"""Picture of figure 15: one panel a kernel, losses ringed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.paper import drawing
from benchmarks.paper.drawing import FAMILIES, LAUNCHED, LIMIT, MEASURED, MODELS, PRINTED, SEARCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS, MARKS = (FAMILIES, SEARCH, MODELS[0]), ("s", "D", "^")


def sweeps(data: Mapping[str, Any]) -> Figure:
    """L2 hit rate over sizes."""
    figure = drawing.canvas(13, 9.5)
    for panel, row in zip(figure.subplots(2, 2).flat, data["kernels"], strict=True):
        _panel(panel, row)
    return drawing.finish(
        figure, f"Figure 15: hit rate over problem sizes, {drawing.gpu_name(data)}", quick=data["quick"]
    )


def _panel(axes: Axes, row: Mapping[str, Any]) -> None:
    at = np.arange(len(row["sizes"]))
    axes.plot(at, _pct(row["bound"]), ":", color=LIMIT, label="bound")
    axes.plot(at, _pct(row["launched"]), "o-", color=LAUNCHED, lw=2, label="as launched")
    for (spec, values), colour, mark in zip(row["swizzles"].items(), COLOURS, MARKS, strict=False):
        axes.plot(at, _pct(values), mark + "--", color=colour, ms=5, lw=1.3, label=spec)
    for n, one in enumerate(row["hurts"]):
        x = row["sizes"].index(one["size"])
        y = 100 * row["swizzles"][one["swizzle"]][x]
        axes.plot([x], [y], "o", mfc="none", mec=MEASURED, ms=11, mew=1, label="" if n else "hurts: below as launched")
    _printed(axes, at, row["printed"])
    axes.set_title(f"{drawing.one_line(row['kernel'])}: simulated, {row['replay']} replay", fontsize=10)
    axes.set_xticks(at, row["sizes"], rotation=45, ha="right", fontsize=7.5)
    axes.set_xlabel("rows x columns" if " x " in row["sizes"][0] else "side", fontsize=9)
    drawing.rates(axes)
    axes.legend(fontsize=7, ncols=2, loc="best", framealpha=0.85)


def _printed(axes: Axes, at: np.ndarray, printed: Mapping[str, Any]) -> None:
    """What the text says of both ends; open marks, as what was swizzled there is no bijection."""
    for key, style, label in (
        ("launched", ":", "paper's text: as launched"),
        ("swizzled", "--", "paper's text: swizzled, no bijection"),
    ):
        pairs = [(x, y) for x, y in zip((at[0], at[-1]), printed[key], strict=True) if y is not None]
        if pairs:
            axes.plot(*zip(*pairs, strict=True), style, marker="X", mfc="white", mec=PRINTED, color=PRINTED, lw=1,
                      ms=8, alpha=0.9, label=label)  # fmt: skip


def _pct(values: list[float | None]) -> np.ndarray:
    return np.array([np.nan if v is None else 100 * v for v in values], float)
