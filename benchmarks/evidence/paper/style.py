"""What figures and sections have in common: names, colours, marks and the form of numbers and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from swizzle_sim.report.display.colours import AFTER, BEFORE, BOUND, INK, OTHER
from xcd_model import gpu

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


LAUNCHED, FAMILIES, SEARCH, LIMIT = BEFORE, AFTER, "#e69f00", BOUND
MODEL_COLOURS = ("#009e73", "#56b4e9", "#cc79a7")
MEASURED, PRINTED_COLOUR, NOTHING = INK, "#d55e00", OTHER
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


def pct(rate: float | None, digits: int = 1) -> str:
    """A rate of 0 to 1 in per cent, without the sign."""
    return "-" if rate is None else f"{100 * rate:.{digits}f}"


def points(gain: float) -> str:
    """A difference of rates, given in points."""
    return f"{0.0 if abs(gain) < 0.05 else gain:+.1f}"


def listed(words: Iterable[str], *, empty: str = "none") -> str:
    """``a, b and c``."""
    found = list(words)
    return " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else "".join(found) or empty


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Markdown table; the first ``left`` columns are words."""
    lines = [heads, ["---"] * left + ["---:"] * (len(heads) - left), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(name: str) -> str:
    """A specification as code; the launch order in words."""
    return "launch order" if name == "identity" else f"`{name}`"


def number_of(n: int, one: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{n} {one}" if n == 1 else f"{n} {one}s"
