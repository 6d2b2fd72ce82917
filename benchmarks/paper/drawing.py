"""What the figures of the paper have in common: names, colours of the arms, marks of what was measured or printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from swizzle_sim.display.colours import AFTER, BEFORE, BOUND, INK, OTHER
from xcd_model import gpu

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

LAUNCHED, FAMILIES, SEARCH, LIMIT = BEFORE, AFTER, "#e69f00", BOUND
MODELS = ("#009e73", "#56b4e9", "#cc79a7")
MEASURED, PRINTED, NOTHING = INK, "#d55e00", OTHER
TITLES = {
    "gemm": "GEMM",
    "gemm_streamk": "GEMM\n(Stream-K)",
    "fused_elementwise": "fused\nelementwise",
    "layer_norm": "layer norm",
    "softmax": "softmax",
    "spmv": "SpMV",
    "transpose": "transpose",
    "black_scholes": "Black-\nScholes",
    "fdtd_2d": "FDTD 2D",
    "smith_waterman": "Smith-\nWaterman",
    "stencil_2d": "stencil 2D",
}
NO_RUN = "no recorded run"
QUICK = "SMALL SIZES (--quick): shows that it works, nothing else"


def gpu_name(data: Mapping[str, Any]) -> str:
    """GPU of a figure's numbers, as its maker calls it."""
    return gpu(data["gpu"]).title


def one_line(kernel: str) -> str:
    """Name of a kernel without line breaks."""
    return TITLES[kernel].replace("-\n", "-").replace("\n", " ")


def canvas(width_inches: float, height_inches: float) -> Figure:
    """Figure that belongs to no window and no global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_inches, height_inches), layout="constrained")


def finish(figure: Figure, title: str, *, quick: bool = False) -> Figure:
    """Title and plain frames."""
    figure.suptitle(f"{QUICK}\n{title}" if quick else title, fontsize=12, color=INK, parse_math=False)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def rates(axes: Axes, *, label: str = "L2 hit rate [%]", top: float = 104) -> None:
    """Axis of hit rates from 0."""
    axes.set_ylim(0, top)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel(label)
    axes.grid(axis="y", color="0.9", lw=0.7)
    axes.set_axisbelow(True)


def mark_no_bijection(axes: Axes, x: float, y: float, *, label: str = "") -> None:
    """The paper's mark of a broken remapping: a cross in a circle."""
    axes.plot([x], [y], "o", color="white", ms=8, zorder=6)
    axes.plot([x], [y], ls="", marker=r"$\otimes$", color=MEASURED, ms=9.5, mew=0.4, zorder=7, label=label or None)


def whole_numbers(*axes: Axis) -> None:
    """No half tiles, no half evaluations."""
    from matplotlib.ticker import MaxNLocator

    for axis in axes:
        axis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 4, 5, 8, 10]))


def no_run(axes: Axes, x: float, y: float, words: str = NO_RUN, size: float = 6) -> None:
    """Say, where a bar would stand, that nothing was recorded."""
    axes.text(x, y, words, rotation=90, ha="center", va="bottom", fontsize=size, color=NOTHING)
