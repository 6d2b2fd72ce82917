"""The picture of balance: work along the axis of the grid on which it depends, and when each XCD ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from swizzle_sim.pricing.replaying import work_along
from swizzle_sim.pricing.scores import Balance
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.display.colours import AFTER, BEFORE, INK, OTHER
from swizzle_sim.report.figures import BEST, LAUNCHED, NARROW_INCHES, WIDE_INCHES, figure_of, finished, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_VALUES = 400  # of a coordinate that are drawn one by one; more are thinned


def balance_figure(scorer: Scorer, before: Balance, after: Balance, *, wide: bool = True) -> Figure:
    """Work of the workgroups along their axis, and the end of each XCD in launch order and under the best swizzle.

    Parameters
    ----------
    scorer : Scorer
        Of the kernel.
    before, after : Balance
    wide : bool

    Returns
    -------
    figure : Figure
    """
    figure = figure_of(WIDE_INCHES if wide else NARROW_INCHES, 3.6 if wide else 6.0)
    work, ends = figure.subplots(1, 2) if wide else figure.subplots(2, 1)
    _draw_work(work, scorer)
    _draw_ends(ends, before, after, "turns" if scorer.replay == "lockstep" else "µs")
    legend(figure, 2)
    return finished(figure, "Work of the workgroups, and the end of each XCD")


def _draw_work(axes: Axes, scorer: Scorer) -> None:
    name, digit = next(iter(scorer.kernel.grid.axes.items()))
    if scorer.work.axis:
        name, digit = scorer.work.axis, scorer.kernel.grid.axes[scorer.work.axis]
    mean = work_along(scorer.trace, digit)
    at = np.unique(np.linspace(0, mean.size - 1, min(mean.size, MOST_VALUES)).astype(int))
    axes.fill_between(at, mean[at], step="mid", color=OTHER, linewidth=0)
    axes.set_ylim(0, 1.08 * mean.max())
    axes.set_xlabel(name)
    axes.set_ylabel("tensor instructions a workgroup")


def _draw_ends(axes: Axes, before: Balance, after: Balance, unit: str) -> None:
    n = len(before.per_xcd_finish)
    for one, label, colour, shift in ((before, LAUNCHED, BEFORE, -0.2), (after, BEST, AFTER, 0.2)):
        axes.bar(np.arange(n) + shift, one.per_xcd_finish, 0.38, color=colour, label=label)
    axes.axhline(after.ideal, color=INK, linewidth=1, linestyle=":")
    axes.text(1.01, after.ideal, "ideal", transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=INK)
    axes.set_xticks(range(n))
    axes.set_xlabel("XCD")
    axes.set_ylabel(f"its last workgroup ends [{unit}]")
