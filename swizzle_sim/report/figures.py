"""The pictures of a run, as matplotlib figures of the object API: no pyplot, so no backend and no global state.

Each is drawn by one function, for a phone as for half of a screen; `swizzle_sim.report.pictures` writes it as SVG into
the page and as PNG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.base.text import cut, visible
from swizzle_sim.pricing.replaying import work_along
from swizzle_sim.pricing.scores import Balance, Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report.display.colours import AFTER, BEFORE, BOUND, INK, OTHER, family_colours, family_of
from swizzle_sim.report.display.tiles import MAX_SIDE, draw_pixels, draw_xcds, legend_of_xcds
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking
from xcd_model import Traffic
from xcd_model.replay.traffic import READ_MISSES, READ_REQUESTS, WRITE_MISSES, WRITE_REQUESTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LAUNCHED, BEST = "launch order", "best swizzle"
INCHES = 4.6
MOST_VALUES = 400  # of a coordinate that are drawn one by one; more are thinned
MAX_BINS = 200  # of the time axis: more are thinner than a line
LOG_FROM = 300  # attempts from which the axis is logarithmic: most of what is gained comes early
RASTER_FROM = 1000  # dots from which an SVG holds them as one image
HEAT = "cividis"  # evenly darker for colour-blind readers too
UNITS = {
    "l2_hit_rate": (100, "%"),
    "time": (1, "µs"),
    "hbm_bytes": (1e-9, "GB"),
    "energy": (1, "J"),
    "balance": (1, "times"),
}


def xcd_map(
    before: np.ndarray, after: np.ndarray, *, title: str = "", num_xcds: int = 8, ribbon: bool = False
) -> Figure:
    """XCD of each tile in launch order and under the best swizzle, side by side.

    Parameters
    ----------
    before, after : (num_pid_m, num_pid_n) int array
        XCD of each tile; -1 is no tile. At most the first `MAX_SIDE` rows and columns are drawn.
    """
    figure, pair, note = _two_maps(before, ribbon)
    for axes, xcd, name in zip(pair, (before, after), (LAUNCHED, BEST), strict=True):
        draw_xcds(axes, xcd[:MAX_SIDE, :MAX_SIDE], name, num_xcds, numbered_side=8)
    legend_of_xcds(figure, num_xcds, "outside lower center", 4)
    return finished(figure, title + note)


def heat_map(before: np.ndarray, after: np.ndarray, most: float, *, title: str = "", ribbon: bool = False) -> Figure:
    """L2 misses [lines] of each tile in launch order and under the best, -1 for no tile; ``most`` ends the scale."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure, pair, note = _two_maps(before, ribbon)
    colours = ScalarMappable(Normalize(0, most or 1.0, clip=True), HEAT)
    for axes, misses, name in zip(pair, (before, after), (LAUNCHED, BEST), strict=True):
        shown = misses[:MAX_SIDE, :MAX_SIDE]
        pixels = np.asarray(colours.to_rgba(shown, bytes=True))
        pixels[shown < 0] = 0
        draw_pixels(axes, pixels, name)
    bar = figure.colorbar(colours, ax=pair, location="bottom", shrink=0.6, aspect=20)
    bar.set_label("L2 misses [lines]", fontsize=9, color=INK)
    bar.outline.set_visible(False)
    return finished(figure, title + note)


def _two_maps(tiles: np.ndarray, ribbon: bool) -> tuple[Figure, list[Axes], str]:
    """Figure with room for two maps, and what of the grid it leaves out."""
    rows, columns = tiles.shape
    shape = min(rows, MAX_SIDE) / min(columns, MAX_SIDE)
    figure = figure_of(1.9 + 1.9 * min(max(shape, 0.35), 1.4))
    left, right = figure.subplots(1, 2, sharey=True)
    for axes in (left, right):
        axes.set_xlabel(f"tile, {columns} a line" if ribbon else "tile column (pid_n)", fontsize=9)
    left.set_ylabel("line of tiles" if ribbon else "tile row (pid_m)", fontsize=9)
    part = f"; first {min(rows, MAX_SIDE)} x {min(columns, MAX_SIDE)} of {rows} x {columns} tiles"
    return figure, [left, right], part if max(rows, columns) > MAX_SIDE else ""


def best_so_far(attempts: Sequence[Attempt], baseline: Score, ranking: Ranking | None = None) -> Figure:
    """Objective of every attempt, and the best up to it."""
    ranking = ranking or Ranking()
    scale, unit = UNITS[ranking.main.name]
    scored = [(a, a.score) for a in attempts if a.score is not None]
    number = np.array([a.number for a, _ in scored])
    value = scale * np.array([ranking.main.of(score) for _, score in scored])
    cost = [ranking.cost(a)[0] for a, _ in scored]
    best = value[[int(np.argmin(cost[: i + 1])) for i in range(len(cost))]]
    last = max(1, *(a.number for a in attempts))
    levels = [(LAUNCHED, scale * ranking.main.of(baseline), BEFORE), ("best", float(best[-1]), AFTER)]
    if ranking.main.name == "l2_hit_rate":
        levels.append(("bound", scale * baseline.bound_l2_hit_rate, BOUND))
    figure, axes = _one_plot(3.8)
    _dots(axes, [a for a, _ in scored], number, value, unit)
    axes.step([*number, last], [*best, best[-1]], where="post", color=AFTER, lw=1.8, zorder=3, label="best so far")
    for name, level, colour in levels:
        if name != "best":  # that has its line
            axes.axhline(level, color=colour, ls="--", lw=1.2)
    _mark_without_score(axes, attempts)
    _scale_of_attempts(axes, last)
    _room(axes, [*value, *(level for _, level, _ in levels)])
    axes.set_ylabel(f"{ranking.main.spoken} [{unit}]")
    _label_levels(axes, levels, "%.1f %%" if ranking.main.name == "l2_hit_rate" else f"%.4g {unit}")
    legend(figure, 2)
    return finished(figure, "Best so far")


def over_time(before: Traffic, after: Traffic, *, name: str = BEST) -> Figure:
    """L2 hit rate over dispatch time, in launch order and under a swizzle.

    Thin: each bin; thick: running over a twentieth of the whole.
    """
    figure, axes = _one_plot(3.2)
    for traffic, label, colour in ((before, LAUNCHED, BEFORE), (after, name, AFTER)):
        edges, rate, running = hit_rate_over_time(traffic)
        axes.stairs(100 * rate, edges, baseline=None, color=colour, lw=0.8, alpha=0.5)
        middle, total = (edges[1:] + edges[:-1]) / 2, 100 * traffic.l2_hit_rate
        axes.plot(middle, 100 * running, color=colour, lw=1.8, label=f"{label}: {total:.1f} % overall")
    axes.set_xlim(0, max(before.duration, after.duration))
    axes.set_ylim(0, 100)
    axes.set_xlabel("turn (one instruction of every resident workgroup)" if before.turns else "time [µs]", fontsize=9)
    axes.set_ylabel("L2 hit rate [%]")
    legend(figure, 1)
    return finished(figure, "L2 hit rate over dispatch time")


def per_xcd(before: Score, after: Score, *, name: str = BEST) -> Figure:
    """L2 hit rate of each XCD, in launch order and under a swizzle."""
    figure, axes = _one_plot(3.2)
    n = len(before.per_xcd_l2_hit_rate)
    for score, label, colour, shift in ((before, LAUNCHED, BEFORE, -0.2), (after, name, AFTER, 0.2)):
        rate = 100 * np.array(score.per_xcd_l2_hit_rate)
        at = np.arange(n) + shift
        for x, bar in enumerate(axes.bar(at, np.nan_to_num(rate), 0.38, color=colour, label=label)):
            give_titles(bar, [f"XCD {x}, {label}: " + ("idle" if math.isnan(rate[x]) else f"{rate[x]:.1f} %")])
    axes.set_xticks(range(n))
    axes.set_xlabel("XCD")
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("L2 hit rate [%]")
    legend(figure, 2)
    return finished(figure, "L2 hit rate of each XCD")


def balance(scorer: Scorer, before: Balance, after: Balance) -> Figure:
    """Work of the workgroups along their axis, and the end of each XCD in launch order and under the best swizzle."""
    figure = figure_of(6.0)
    work, ends = figure.subplots(2, 1)
    axes = scorer.kernel.grid.axes
    name = scorer.work.axis or next(iter(axes))
    mean = work_along(scorer.trace, axes[name])
    at = np.unique(np.linspace(0, mean.size - 1, min(mean.size, MOST_VALUES)).astype(int))
    work.fill_between(at, mean[at], step="mid", color=OTHER, linewidth=0)
    work.set_ylim(0, 1.08 * mean.max())
    work.set_xlabel(name)
    work.set_ylabel("tensor instructions a workgroup")
    n = len(before.per_xcd_finish)
    for one, label, colour, shift in ((before, LAUNCHED, BEFORE, -0.2), (after, BEST, AFTER, 0.2)):
        ends.bar(np.arange(n) + shift, one.per_xcd_finish, 0.38, color=colour, label=label)
    ends.axhline(after.ideal, color=INK, linewidth=1, linestyle=":")
    ends.text(1.01, after.ideal, "ideal", transform=ends.get_yaxis_transform(), va="center", fontsize=8, color=INK)
    ends.set_xticks(range(n))
    ends.set_xlabel("XCD")
    ends.set_ylabel(f"its last workgroup ends [{'turns' if scorer.replay == 'lockstep' else 'µs'}]")
    legend(figure, 2)
    return finished(figure, "Work of the workgroups, and the end of each XCD")


def hit_rate_over_time(traffic: Traffic) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L2 hit rate in at most `MAX_BINS` bins of turns, or of time.

    edges : (n + 1,) [turns, or us]
    rate, running : (n,) float, 0 to 1, nan where there was no request; the second is over a window of a twentieth of
        the bins, as loads of different tensors take turns and make the first jump
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


def give_titles(artist: Any, titles: Sequence[str]) -> None:
    """Give an artist of matplotlib a title a marker, or one for a bar: what a browser shows where the pointer rests."""
    artist.titles = list(titles)


def _one_plot(height_inches: float) -> tuple[Figure, Axes]:
    """Figure with one pair of axes."""
    figure = figure_of(height_inches)
    return figure, figure.subplots()


def figure_of(height_inches: float) -> Figure:
    """Empty figure."""
    from matplotlib.figure import Figure

    return Figure(figsize=(INCHES, height_inches), layout="constrained")


def legend(figure: Figure, ncols: int) -> None:
    """Legend below the axes; a label is a model's name at worst, never markup."""
    found = figure.legend(loc="outside lower center", ncols=ncols, frameon=False, fontsize=8, labelcolor=INK)
    for text in found.get_texts():
        text.set_parse_math(False)


def finished(figure: Figure, title: str) -> Figure:
    """Title, plain frames, and ink in place of matplotlib's black: a page turns it light on dark paper."""
    figure.suptitle(title, fontsize=11, color=INK, parse_math=False)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[:].set_color(OTHER)
        axes.tick_params(color=OTHER, labelcolor=INK, labelsize=9)
        if not axes.images and axes.get_label() != "<colorbar>":
            axes.grid(axis="y", color=OTHER, alpha=0.25, lw=0.6)
            axes.set_axisbelow(True)
        for label in (axes.xaxis.label, axes.yaxis.label, axes.title):
            label.set_color(INK)
    return figure


def _dots(axes: Axes, attempts: list[Attempt], number: np.ndarray, value: np.ndarray, unit: str) -> None:
    """Dots by family or model; those that were tried most have a colour, the others share grey."""
    models = [cut(visible(a.proposer), 60) if a.proposer.startswith("llm:") else "" for a in attempts]
    ascii_alone = [name.encode("ascii", "replace").decode() for name in models]  # the font has no other letters
    groups = [name or family_of(a.name) for name, a in zip(ascii_alone, attempts, strict=True)]
    colours = family_colours(groups)
    group = np.array([one if one in colours else "other" for one in groups])
    for one, colour in {**colours, "other": OTHER}.items():
        mine = (group == one) & np.isfinite(value)
        if mine.any():
            (dots,) = axes.plot(
                number[mine], value[mine], "o", color=colour, ms=4.5, alpha=0.75, mew=0, label=one,
                rasterized=mine.sum() > RASTER_FROM,
            )  # fmt: skip
            give_titles(
                dots, [f"{attempts[i].number}: {attempts[i].name}, {value[i]:.4g} {unit}" for i in np.flatnonzero(mine)]
            )


def _mark_without_score(axes: Axes, attempts: Sequence[Attempt]) -> None:
    """Ticks at the foot, where there is no value to read off."""
    number = [a.number for a in attempts if a.score is None]
    if number:
        axes.plot(
            number, [0.02 for _ in number], "|", transform=axes.get_xaxis_transform(), color=OTHER, ms=7,
            label="no score", rasterized=len(number) > RASTER_FROM,
        )  # fmt: skip


def _scale_of_attempts(axes: Axes, last: int) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axes.set_xlabel("attempt (log scale)" if last >= LOG_FROM else "attempt")
    if last >= LOG_FROM:
        axes.set_xscale("symlog", linthresh=1)  # linear up to 1, since the launch order is attempt 0
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True, steps=[1, 2, 4, 8, 10]))


def _room(axes: Axes, values: Sequence[float]) -> None:
    """Limits with room for the ticks at the foot."""
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    pad = max(0.07 * (high - low), 0.005 * abs(high), 1e-9)
    axes.set_ylim(low - 1.6 * pad, high + pad)


def _label_levels(axes: Axes, levels: list[tuple[str, float, str]], form: str) -> None:
    """Write names and values at the left, where attempts are few, from the top down, spaced where they would touch."""
    low, high = axes.get_ylim()
    gap, above = 0.1 * (high - low), np.inf
    finite = [level for level in levels if math.isfinite(level[1])]
    for label, value, colour in sorted(finite, key=lambda level: -level[1]):
        y = above = min(value, above - gap)
        axes.text(
            0.01, y, f"{label} {form % value}", transform=axes.get_yaxis_transform(), va="bottom", fontsize=9,
            color=colour, fontweight="bold", parse_math=False,
        )  # fmt: skip
