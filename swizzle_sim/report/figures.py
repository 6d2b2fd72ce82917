"""The four pictures of a run, as matplotlib figures of the object API: no pyplot, so no backend and no global state."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from swizzle_sim.history import Attempt
from swizzle_sim.report.colours import AFTER, BEFORE, BOUND, INK, OTHER, XCDS, family_colours, family_of, on_colour
from swizzle_sim.scoring import Score
from xcd_model import Traffic
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 150
MAX_BINS = 200  # of the time axis: more are thinner than a line
MAX_SIDE = (
    256  # tiles of a map's side: more are smaller than two pixels, and thinning them out would draw false stripes
)
NUMBERED_SIDE = 16  # maps up to this side carry the XCD's number in each tile
LOG_FROM = 300  # attempts from which the axis is logarithmic: most of what is gained comes early


def png(figure: Figure, *, note: str = "simulated") -> bytes:
    """Bytes of a figure as PNG; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
    note : str
        What kind of numbers these are, for the foot of the picture.

    Returns
    -------
    data : bytes
    """
    figure.supxlabel(note, x=0.995, ha="right", fontsize=7, color=OTHER)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DPI, facecolor="white")
    return stream.getvalue()


def xcd_map(
    xcd_before: np.ndarray, xcd_after: np.ndarray, *, title: str = "", num_xcds: int = 8, ribbon: bool = False
) -> Figure:
    """Which XCD computes each tile, before and after, side by side.

    Parameters
    ----------
    xcd_before, xcd_after : (num_pid_m, num_pid_n) int array
        XCD of each tile; -1 is no tile. At most the first `MAX_SIDE` rows and columns are drawn.
    title : str
    num_xcds : int
    ribbon : bool
        Whether rows are a one-dimensional grid cut into lines, rather than tile rows.

    Returns
    -------
    figure : Figure
    """
    rows, columns = xcd_before.shape
    before, after = (xcd[:MAX_SIDE, :MAX_SIDE] for xcd in (xcd_before, xcd_after))
    shape = before.shape[0] / before.shape[1]
    figure = _figure(11, 1.9 + 4.4 * min(max(shape, 0.35), 1.4))
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_map(left, before, "as launched", num_xcds)
    _draw_map(right, after, "best swizzle", num_xcds)
    for axes in (left, right):
        axes.set_xlabel(f"tile, {columns} a line" if ribbon else "tile column (pid_n)")
    left.set_ylabel("line of tiles" if ribbon else "tile row (pid_m)")
    if max(rows, columns) > MAX_SIDE:
        title += f"; first {before.shape[0]} x {before.shape[1]} of {rows} x {columns} tiles"
    _legend_of_xcds(figure, num_xcds)
    return _finish(figure, title)


def best_so_far(attempts: Sequence[Attempt], baseline: float, bound: float) -> Figure:
    """L2 hit rate of every attempt, and the best up to it.

    Parameters
    ----------
    attempts : sequence of Attempt
        At least one has a score.
    baseline, bound : float
        L2 hit rates, 0 to 1.

    Returns
    -------
    figure : Figure
    """
    figure = _figure(9.5, 4.4)
    axes = figure.subplots()
    scored = [a for a in attempts if a.score is not None]
    number = np.array([a.number for a in scored])
    rate = 100 * np.array([a.score.l2_hit_rate for a in scored if a.score is not None])
    best, last = np.maximum.accumulate(rate), max(a.number for a in attempts)
    levels = [("bound", 100 * bound, BOUND), ("best", best[-1], AFTER), ("baseline", 100 * baseline, BEFORE)]
    _dots(axes, scored, number, rate)
    axes.step([*number, last], [*best, best[-1]], where="post", color=AFTER, lw=1.8, zorder=3)
    for _, value, colour in levels[::2]:  # the best has its line
        axes.axhline(value, color=colour, ls="--", lw=1.2)
    _mark_without_score(axes, attempts)
    _scale_of_attempts(axes, last)
    low, high = min(rate.min(), 100 * baseline), 100 * bound
    pad = max(0.07 * (high - low), 0.5)
    axes.set_ylim(low - 1.6 * pad, high + pad)
    axes.set_ylabel("L2 hit rate [%]")
    _label_levels(axes, levels)
    figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    return _finish(figure, "Best so far")


def over_time(traffic_before: Traffic, traffic_after: Traffic, *, after: str = "best swizzle") -> Figure:
    """L2 hit rate over dispatch time, before and after.

    Parameters
    ----------
    traffic_before, traffic_after : Traffic
    after : str
        What the second is called.

    Returns
    -------
    figure : Figure
    """
    figure = _figure(9.5, 3.8)
    axes = figure.subplots()
    for traffic, label, colour in ((traffic_before, "as launched", BEFORE), (traffic_after, after, AFTER)):
        edges, rate, running = hit_rate_over_time(traffic)
        axes.stairs(100 * rate, edges, baseline=None, color=colour, lw=0.7, alpha=0.45)
        text = f"{label}: {100 * traffic.l2_hit_rate:.1f} % in all"
        axes.plot((edges[1:] + edges[:-1]) / 2, 100 * running, color=colour, lw=2, label=text)
    axes.set_xlim(0, max(traffic_before.duration, traffic_after.duration))
    axes.set_ylim(0, 102)
    unit = "turn (one tensor instruction of every resident workgroup)" if traffic_before.turns else "time [µs]"
    axes.set_xlabel(unit)
    axes.set_ylabel("L2 hit rate [%]")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return _finish(figure, "L2 hit rate over dispatch time")


def per_xcd(before: Score, after: Score, *, name: str = "best swizzle") -> Figure:
    """Draw the L2 hit rate of each XCD, before and after, as bars.

    Parameters
    ----------
    before, after : Score
    name : str
        What the second is called.

    Returns
    -------
    figure : Figure
    """
    figure = _figure(9.5, 3.6)
    axes = figure.subplots()
    n = len(before.per_xcd_l2_hit_rate)
    for score, label, colour, shift in ((before, "as launched", BEFORE, -0.2), (after, name, AFTER, 0.2)):
        rate = 100 * np.array(score.per_xcd_l2_hit_rate)
        at = np.arange(n) + shift
        axes.bar(at, np.nan_to_num(rate), 0.38, color=colour, label=label)
        for x, value in zip(at, rate, strict=True) if n <= len(XCDS) else ():
            text = "idle" if np.isnan(value) else f"{value:.1f}"
            axes.text(x, np.nan_to_num(value) + 1, text, ha="center", va="bottom", fontsize=8, color=INK)
    axes.set_xticks(range(n), [f"XCD {x}" for x in range(n)])
    axes.set_ylim(0, 108)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("L2 hit rate [%]")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return _finish(figure, "L2 hit rate of each XCD")


def hit_rate_over_time(traffic: Traffic) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L2 hit rate in at most `MAX_BINS` bins of turns, or of time.

    Parameters
    ----------
    traffic : Traffic

    Returns
    -------
    edges : (n + 1,) array [turns, or us]
    rate, running : (n,) float array
        0 to 1; nan where nothing was asked. The second is over a window of a twentieth of the bins, as loads of
        different tensors take turns and make the first jump.
    """
    counts = traffic.timeline.sum(axis=1)
    together = max(1, -(-len(counts) // MAX_BINS))
    first = np.arange(0, len(counts), together)
    binned = np.add.reduceat(counts, first, axis=0)
    requests = binned[:, READ_REQUESTS] + binned[:, WRITE_REQUESTS]
    hits = requests - binned[:, READ_MISSES] - binned[:, WRITE_MISSES]
    window = np.ones(2 * (first.size // 40) + 1, np.int64)  # odd, so that it has a middle
    running = _rate(np.convolve(hits, window, "same"), np.convolve(requests, window, "same"))
    return np.append(first * traffic.bin_width, traffic.duration), _rate(hits, requests), running


def _rate(hits: np.ndarray, requests: np.ndarray) -> np.ndarray:
    return np.divide(hits, requests, out=np.full(requests.size, np.nan), where=requests > 0)


def _figure(width_inches: float, height_inches: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width_inches, height_inches), layout="constrained")


def _finish(figure: Figure, title: str) -> Figure:
    """Title and plain frames."""
    figure.suptitle(title, fontsize=12, color=INK, parse_math=False)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_map(axes: Axes, xcd: np.ndarray, title: str, num_xcds: int) -> None:
    from matplotlib.colors import ListedColormap

    colours = [XCDS[x % len(XCDS)] for x in range(num_xcds)]
    shown = np.ma.masked_less(xcd, 0)
    skewed = not 0.25 <= xcd.shape[0] / xcd.shape[1] <= 4
    axes.imshow(
        shown, cmap=ListedColormap(colours), vmin=-0.5, vmax=num_xcds - 0.5, interpolation="nearest",
        aspect="auto" if skewed else "equal",
    )  # fmt: skip
    axes.set_title(title, fontsize=10)
    _whole_numbers(axes)
    if max(xcd.shape) <= NUMBERED_SIDE:
        for (m, n), x in np.ndenumerate(xcd):
            if x >= 0:
                axes.text(n, m, str(x), ha="center", va="center", fontsize=8, color=on_colour(colours[x]))


def _legend_of_xcds(figure: Figure, num_xcds: int) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=XCDS[x % len(XCDS)], label=f"XCD {x}") for x in range(num_xcds)]
    figure.legend(handles=patches, loc="outside right center", frameon=False, fontsize=9)


def _dots(axes: Axes, attempts: list[Attempt], number: np.ndarray, rate: np.ndarray) -> None:
    """Dots by family; the families that were tried most have a colour, the others share grey."""
    families = [family_of(a.name) for a in attempts]
    colours = family_colours(families)
    group = np.array([family if family in colours else "other" for family in families])
    for family, colour in {**colours, "other": OTHER}.items():
        mine = group == family
        if mine.any():
            axes.plot(number[mine], rate[mine], "o", color=colour, ms=4.5, alpha=0.75, mew=0, label=family)


def _mark_without_score(axes: Axes, attempts: Sequence[Attempt]) -> None:
    """Ticks at the foot, where there is no hit rate to read off."""
    number = [a.number for a in attempts if a.score is None]
    if number:
        foot = np.full(len(number), 0.02)
        axes.plot(number, foot, "|", transform=axes.get_xaxis_transform(), color=OTHER, ms=7, label="no score")


def _scale_of_attempts(axes: Axes, last: int) -> None:
    if last >= LOG_FROM:
        axes.set_xscale("symlog", linthresh=1)  # linear up to 1, since the baseline is attempt 0
    axes.set_xlabel("attempt (log scale)" if last >= LOG_FROM else "attempt")
    _whole_numbers(axes)


def _label_levels(axes: Axes, levels: list[tuple[str, float, str]]) -> None:
    """Write names and values right of the axes, from the top down, moved apart where they would touch."""
    low, high = axes.get_ylim()
    gap, above = 0.06 * (high - low), np.inf
    for label, value, colour in levels:
        y = above = min(value, above - gap)
        axes.annotate(
            f"{label} {value:.1f} %", (1.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=9,
            color=colour, fontweight="bold", annotation_clip=False,
        )  # fmt: skip


def _whole_numbers(axes: Axes) -> None:
    """No half attempts, no half tiles, no powers of ten."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    for axis in (axes.xaxis, axes.yaxis) if axes.images else (axes.xaxis,):
        if axis.get_scale() == "linear":
            axis.set_major_locator(MaxNLocator(nbins=9, integer=True, steps=[1, 2, 4, 8, 10]))
        else:
            axis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
