"""Scatter plots: predicted against measured, one picture a GPU and quantity, one colour a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.fidelity.predict import Prediction
from benchmarks.fidelity.quantities import QUANTITIES
from swizzle_sim.display.colours import OTHER

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
    """Predicted against measured, a panel for each variant, with the diagonal.

    Parameters
    ----------
    title, quantity : str
    panels : dict of str to sequence of Prediction
        By variant; those without a value are left out.
    """
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
