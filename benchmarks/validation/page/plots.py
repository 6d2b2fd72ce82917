"""Pictures of the page: predicted against measured, and errors by kernel and over the measured value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from swizzle_sim.report.display.colours import OTHER

from ..predict import Prediction
from ..quantities import QUANTITIES
from ..split import half_of

COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#3b3b3b")
MARKS = "os^Dv"
WORDS = {
    "l2_hit_pct": "L2 hit rate [%]",
    "l2_read_hit_pct": "L2 hit rate of reads [%]",
    "l2_read_misses": "L2 read misses",
    "l1_hit_pct": "L1 hit rate [%]",
    "dram_read_bytes": "DRAM reads [B]",
    "dram_write_bytes": "DRAM writes [B]",
    "time_us": "kernel time [µs]",
    "throughput_tflops": "throughput [TFLOPS]",
}


def scatter(title: str, quantity: str, panels: dict[str, Sequence[Prediction]]) -> Figure:
    """Predicted against measured, a panel for each variant, with the diagonal."""
    figure = Figure(figsize=(4.2 * len(panels) + 1.6, 4.4), layout="constrained")
    kernels = sorted({one.row.kernel for rows in panels.values() for one in rows})
    for at, (variant, rows) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), at + 1)
        known = [one for one in rows if one.value is not None]
        for number, kernel in enumerate(kernels):
            mine = [one for one in known if one.row.kernel == kernel]
            axes.scatter(
                [one.row.measured for one in mine],
                [one.value for one in mine],
                s=26,
                color=COLOURS[number % len(COLOURS)],
                marker=MARKS[number // len(COLOURS)],
                edgecolors="#222222",
                linewidths=0.4,
                label=kernel,
                zorder=3,
            )
        _axes(axes, quantity, variant, known)
    figure.suptitle(f"{title}: {WORDS.get(quantity, quantity)}")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    return figure


def _axes(axes: Axes, quantity: str, variant: str, rows: Sequence[Prediction]) -> None:
    values = [value for one in rows for value in (one.row.measured, one.value or 0.0)]
    if QUANTITIES[quantity].relative and values and min(values) > 0:
        axes.set_xscale("log")
        axes.set_yscale("log")
        low, high = 0.8 * min(values), 1.25 * max(values)
    else:
        low, high = (-3.0, 103.0) if quantity.endswith("_pct") else (0.0, 1.1 * max(values, default=1.0))
    axes.plot([low, high], [low, high], color=OTHER, linewidth=1, zorder=1)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    axes.set_xlabel("measured")
    axes.set_ylabel("predicted")
    axes.set_title(variant, fontsize=10)


FIT, HELD_OUT = "#0072b2", "#e69f00"
SPREAD = 0.32  # half the height of a kernel's strip
LIMIT = 200.0  # percent: errors beyond it are drawn at the edge


def residuals(title: str, quantity: str, rows: Sequence[Prediction]) -> Figure:
    """Error of every row: one strip a kernel on the left, over the measured value on the right."""
    kernels = sorted({one.row.kernel for one in rows}, reverse=True)
    figure = Figure(figsize=(11.5, 1.9 + 0.42 * max(len(kernels), 5)), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=False)
    for at, kernel in enumerate(kernels):
        mine = [one for one in rows if one.row.kernel == kernel]
        _dots(left, mine, [_shown(one) for one in mine], at + np.linspace(-SPREAD, SPREAD, len(mine) + 2)[1:-1])
        left.axhline(at + 0.5, color="#dddddd", linewidth=0.6, zorder=0)
        left.plot([_median(mine)] * 2, [at - 0.42, at + 0.42], color="#222222", linewidth=2, zorder=4)
    left.set_yticks(range(len(kernels)), kernels, fontsize=8)
    left.set_ylim(-0.5, len(kernels) - 0.5)
    _dots(right, rows, [one.row.measured for one in rows], np.array([_shown(one) for one in rows]))
    _label(left, right, quantity, rows)
    figure.suptitle(f"{title}: residuals of {WORDS.get(quantity, quantity)}, {rows[0].variant}")
    _legend(figure)
    return figure


def _shown(one: Prediction) -> float:
    error = one.error or 0.0
    return float(np.clip(error, -LIMIT, LIMIT)) if QUANTITIES[one.row.quantity].relative else error


def _median(rows: Sequence[Prediction]) -> float:
    return float(np.median([_shown(one) for one in rows]))


def _dots(axes: Axes, rows: Sequence[Prediction], x: Sequence[float], y: np.ndarray) -> None:
    for half, colour in (("fit", FIT), ("held out", HELD_OUT)):
        for mark, bijective in (("o", True), ("X", False)):
            chosen = [i for i, one in enumerate(rows) if half_of(one.row) == half and one.row.bijective == bijective]
            axes.scatter(
                [x[i] for i in chosen],
                [y[i] for i in chosen],
                s=24,
                color=colour,
                marker=mark,
                edgecolors="#222222",
                linewidths=0.35,
                zorder=3,
            )


def _label(left: Axes, right: Axes, quantity: str, rows: Sequence[Prediction]) -> None:
    relative = QUANTITIES[quantity].relative
    beyond = relative and any(abs(one.error or 0.0) > LIMIT for one in rows)
    unit = ("error [%]" if relative else "error [points]") + (f", at most ±{LIMIT:g} shown" if beyond else "")
    left.axvline(0, color=OTHER, linewidth=1, zorder=1)
    right.axhline(0, color=OTHER, linewidth=1, zorder=1)
    left.set_xlabel(unit)
    right.set_ylabel(unit)
    right.set_xlabel(f"measured {WORDS.get(quantity, quantity)}")
    if relative and min(one.row.measured for one in rows) > 0:
        right.set_xscale("log")


def _legend(figure: Figure) -> None:
    axes = figure.axes[0]
    handles = [
        axes.scatter([], [], color=FIT, edgecolors="#222222", linewidths=0.35, label="fit half"),
        axes.scatter([], [], color=HELD_OUT, edgecolors="#222222", linewidths=0.35, label="held out"),
        axes.scatter([], [], color="white", marker="X", edgecolors="#222222", label="order that is no permutation"),
        *axes.plot([], [], color="#222222", linewidth=2, label="median of the kernel"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
