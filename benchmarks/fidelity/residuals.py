"""Residual plots: errors by kernel, and over what they may hang on, since a wrong assumption shows as a pattern."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.quantities import QUANTITIES
from benchmarks.fidelity.scatter import WORDS
from benchmarks.fidelity.split import place_of
from swizzle_sim.display.colours import OTHER

FIT, HELD_OUT = "#0072b2", "#e69f00"
SPREAD = 0.32  # half the height of a kernel's strip
LIMIT = 200.0  # percent: errors beyond it are drawn at the edge


def residuals(title: str, quantity: str, rows: Sequence[Prediction]) -> Figure:
    """Error of every row: one strip a kernel on the left, over the measured value on the right.

    Parameters
    ----------
    title, quantity : str
    rows : sequence of Prediction
        Of one variant, each with an error.
    """
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
            chosen = [
                i
                for i, one in enumerate(rows)
                if place_of(one.row.gpu, one.row.kernel).half == half and one.row.bijective == bijective
            ]
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
