"""Pictures of figure 2: bars and marks for ten kernels, and every measured order beside its replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.paper import drawing
from benchmarks.paper.drawing import FAMILIES, LAUNCHED, LIMIT, MEASURED, MODELS, PRINTED, SEARCH, TITLES
from benchmarks.paper.published import ARMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Places in a kernel's unit of the axis.
BARS, WIDTH, LLM, LLM_STEP, HARDWARE = (-0.40, -0.22, -0.04), 0.17, 0.09, 0.07, 0.36
ARMS_SHOWN = (("families", "best family, simulated", FAMILIES), ("search", "two-stage search, simulated", SEARCH))


def bars(data: Mapping[str, Any]) -> Figure:
    """L2 hit rates above, speedups below."""
    figure = drawing.canvas(14, 8.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    for i, row in enumerate(data["kernels"]):
        for axes in (above, below):
            axes.axvspan(i + HARDWARE - 0.12, i + HARDWARE + 0.1, color="0.95", zorder=0)
        _hit_rates(above, i, row)
        _speedups(below, i, row)
    drawing.rates(above)
    above.set_title("grey bands: hardware and paper; the rest: simulated", fontsize=8, loc="right", color="0.4")
    below.axhline(1, color=LAUNCHED, lw=1)
    below.set_ylabel("speedup over as launched")
    below.grid(axis="y", color="0.9", lw=0.7)
    below.set_axisbelow(True)
    below.set_xlim(-0.6, len(data["kernels"]) - 0.4)
    below.set_xticks(range(len(data["kernels"])), [TITLES[row["kernel"]] for row in data["kernels"]], fontsize=8)
    handles = dict(zip(*reversed(above.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower left", ncols=3, frameon=False, fontsize=8)
    return drawing.finish(figure, f"Figure 2: ten kernels on {drawing.gpu_name(data)}", quick=data["quick"])


def _hit_rates(axes: Axes, i: int, row: Mapping[str, Any]) -> None:
    shown = [("launched", "as launched, simulated", LAUNCHED), *ARMS_SHOWN]
    for (key, label, colour), at in zip(shown, BARS, strict=True):
        score = row[key] if key == "launched" else row[key]["score"]
        axes.bar(i + at, 100 * score["l2_hit_rate"], WIDTH, color=colour, label=label)
    bound = 100 * row["launched"]["bound_l2_hit_rate"]
    ends = [i + BARS[0] - WIDTH / 2, i + BARS[-1] + WIDTH / 2]
    axes.plot(ends, [bound] * 2, color=LIMIT, lw=1.5, label="bound: no balanced bijection exceeds it")
    _models(axes, i, row["models"])
    _hardware(axes, i + HARDWARE, row)


def _models(axes: Axes, i: int, models: Mapping[str, Any]) -> None:
    if not any(models.values()):
        drawing.no_run(axes, i + LLM + LLM_STEP, 1, f"LLM {', '.join(models)}: {drawing.NO_RUN}")
        return
    for arm, colour, step in zip(ARMS, MODELS, range(len(ARMS)), strict=True):
        found, at = models[arm], i + LLM + step * LLM_STEP
        if found is None or found["score"] is None:
            drawing.no_run(axes, at, 1, f"{arm}: {drawing.NO_RUN if found is None else 'no bijection'}", size=5)
        else:
            rate = 100 * found["score"]["l2_hit_rate"]
            axes.bar(at, rate, LLM_STEP, color=colour, label=f"LLM, {arm}, recorded; simulated")


def _hardware(axes: Axes, x: float, row: Mapping[str, Any]) -> None:
    measured, printed = row["measured"], row["printed"]
    if measured["launched_pct"] is not None:
        axes.plot([x], [measured["launched_pct"]], "s", mfc="white", mec=MEASURED, ms=6, zorder=5,
                  label="as launched, measured")  # fmt: skip
    if best := measured["bijection"]:
        axes.plot([x], [best["l2_pct"]], "D", color=MEASURED, ms=5, zorder=5, label="best bijection, measured")
    if other := measured["no_bijection"]:
        drawing.mark_no_bijection(axes, x, other["l2_pct"], label="best of what is no bijection, measured")
    if printed and printed["from_pct"] is not None:
        start, broken = printed["from_pct"], printed["bijective"] is False
        label = "gain printed in the paper" + (" for a formula that is no bijection" if broken else "")
        ends = [start, start + printed["gain"]]
        line = ":" if broken else "-"
        axes.plot([x + 0.07] * 2, ends, line, marker="^", markevery=[1], color=PRINTED, lw=1.6, ms=5.5, label=label)


def _speedups(axes: Axes, i: int, row: Mapping[str, Any]) -> None:
    for (key, _, colour), at in zip(ARMS_SHOWN, BARS[1:], strict=True):
        axes.bar(i + at, row[key]["score"]["speedup"] - 1, WIDTH, bottom=1, color=colour)
    for arm, colour, step in zip(ARMS, MODELS, range(len(ARMS)), strict=True):
        found = row["models"][arm]
        if found and found["score"]:
            axes.bar(i + LLM + step * LLM_STEP, found["score"]["speedup"] - 1, LLM_STEP, bottom=1, color=colour)
    x, measured, printed = i + HARDWARE, row["measured"], row["printed"]
    if best := measured["bijection"]:
        axes.plot([x], [best["speedup"]], "D", color=MEASURED, ms=5, zorder=5)
    if other := measured["no_bijection"]:
        drawing.mark_no_bijection(axes, x, other["speedup"])
    if printed and printed["speedup"]:
        axes.plot([x + 0.07], [printed["speedup"]], "^", color=PRINTED, ms=6, zorder=8)


def orders(data: Mapping[str, Any]) -> Figure:
    """Each measured bijection: the counter and the replay of the same order."""
    rows: Sequence[Mapping[str, Any]] = data["orders"]
    figure = drawing.canvas(9.5, 1.8 + 0.24 * len(rows))
    axes = figure.subplots()
    for y, row in enumerate(rows):
        axes.plot([row["measured_pct"], row["simulated_pct"]], [y, y], color="0.75", lw=1.2, zorder=1)
        axes.plot([row["low_pct"], row["high_pct"]], [y, y], color=MEASURED, lw=3, zorder=2)
        axes.plot([row["measured_pct"]], [y], "D", color=MEASURED, ms=5, zorder=3, label="" if y else "measured")
        axes.plot([row["simulated_pct"]], [y], "o", mfc="white", mec=FAMILIES, mew=1.6, ms=6.5, zorder=4,
                  label="" if y else f"simulated, {data['orders_replay']} replay")  # fmt: skip
    axes.set_yticks(
        range(len(rows)), [f"{drawing.one_line(r['kernel'])}: {_name(r['order'])}" for r in rows], fontsize=8
    )
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("L2 hit rate [%]")
    axes.grid(axis="x", color="0.9", lw=0.7)
    figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    title = "Figure 2, order by order: measured bijections, and the replay of the same"
    return drawing.finish(figure, title, quick=data["quick"])


def _name(order: str) -> str:
    return "as launched" if order == "baseline" else order
