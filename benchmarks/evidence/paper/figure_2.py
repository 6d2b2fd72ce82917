"""Figure 2: ten kernels in launch order and with the best order of each arm, next to what was printed and counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

from swizzle_sim.language import Swizzle
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu

from . import counted, published, style
from .formulas import FORMULAS
from .jobs import Job
from .recorded import PICTURE, recorded_runs
from .scored_suite import PAPER
from .searches import arms_job, arms_name, texts_job
from .settings import GPU, Settings
from .style import (
    FAMILIES,
    LAUNCHED,
    LIMIT,
    MEASURED,
    MODEL_COLOURS,
    NO_RUN,
    PRINTED_COLOUR,
    SEARCH,
    TITLES,
    code,
    listed,
    number_of,
    one_line,
    pct,
    table,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Found = Mapping[str, Mapping[str, Any]]


def jobs(settings: Settings) -> list[Job]:
    """Families and search of each kernel, and the best of each recorded model once more."""
    made = []
    for name in PAPER:
        made.append(arms_job(settings, name))
        if texts := {arm: run.best.source for arm, run in _runs(settings, name).items()}:
            made.append(texts_job(_texts_name(name), settings.kernel(name), texts))
    return made


def gather(settings: Settings, found: Found) -> dict[str, Any]:
    """Numbers of the figure."""
    return {
        "gpu": GPU,
        "quick": settings.quick,
        "kernels": [_kernel(settings, name, found) for name in PAPER],
        "orders": counted.same_orders(PAPER, settings),
        "orders_replay": counted.REPLAY,
    }


def _kernel(settings: Settings, name: str, found: Found) -> dict[str, Any]:
    arms = found[arms_name(name)]
    return {
        "kernel": name,
        **{key: arms[key] for key in ("problem", "grid", "replay", "evaluations", "launched")},
        **{arm: _shown(arms[arm]) for arm in ("families", "search")},
        "models": {arm: None for arm in published.ARMS} | _models(settings, name, found),
        "measured": counted.measured(name),
        "printed": _printed(name),
    }


def _shown(arm: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: arm[key] for key in ("name", "source", "domain", "score")}, "replayed": len(arm["rates"])}


def _models(settings: Settings, name: str, found: Found) -> dict[str, Any]:
    runs = _runs(settings, name)
    scores = found[_texts_name(name)]["texts"] if runs else {}
    return {
        arm: {
            "run": run.run,
            "models": run.models,
            "when": run.when,
            "name": run.best.name,
            "proposals": len(run.rates),
            **scores[arm],
        }
        for arm, run in runs.items()
    }


def _runs(settings: Settings, name: str) -> dict[str, Any]:
    """Recorded run of each context at the size drawn; of several the first by name, that of the study of contexts."""
    problem = dict(settings.kernel(name).problem)
    found = reversed(recorded_runs(settings.studies))
    return {run.context: run for run in found if (run.kernel, run.problem, run.gpu) == (name, problem, GPU)}


def _texts_name(name: str) -> str:
    return f"models' best on {name}"


def _printed(name: str) -> dict[str, Any] | None:
    """What the paper says, and of the formula it prints: whether it is a bijection at the size it was measured at.

    ``from_pct`` and ``to_pct`` are measured with that formula where a log has it; else the lowest rate in launch order.
    """
    said = published.PRINTED.get(name)
    if said is None:
        return None
    low = (counted.measured(name)["range_pct"] or [None])[0]
    more: dict[str, Any] = {"words": said.words, "from_pct": low, "to_pct": None, "bijective": None}
    for formula in (one for one in FORMULAS if one.label == said.formula):
        work = kernel(formula.kernel, **formula.sizes)
        found = Swizzle.parse(formula.text).verify(work.grid, gpu(GPU).xcds, work.problem, lattice=[])
        more = {"bijective": found.bijective, "tiles_computed": found.distinct_tiles, "tiles": found.n_workgroups}
        more |= {"words": formula.claim, "from_pct": formula.baseline_pct or low, "to_pct": formula.measured_pct}
    return {"gain": said.gain, "speedup": said.speedup, "formula": said.formula, **more}


# Places in a kernel's unit of the axis.
BARS, WIDTH, LLM, LLM_STEP, HARDWARE = (-0.40, -0.22, -0.04), 0.17, 0.09, 0.07, 0.36
ARMS_SHOWN = (("families", "best family, simulated", FAMILIES), ("search", "two-stage search, simulated", SEARCH))


def bars(data: Mapping[str, Any]) -> Figure:
    """L2 hit rates above, speedups below."""
    figure = style.canvas(14, 8.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    for i, row in enumerate(data["kernels"]):
        for axes in (above, below):
            axes.axvspan(i + HARDWARE - 0.12, i + HARDWARE + 0.1, color="0.95", zorder=0)
        _hit_rates(above, i, row)
        _speedups(below, i, row)
    style.rates(above)
    above.set_title("grey bands: hardware and paper; the rest: simulated", fontsize=8, loc="right", color="0.4")
    below.axhline(1, color=LAUNCHED, lw=1)
    below.set_ylabel("speedup over launch order")
    below.grid(axis="y", color="0.9", lw=0.7)
    below.set_axisbelow(True)
    below.set_xlim(-0.6, len(data["kernels"]) - 0.4)
    below.set_xticks(range(len(data["kernels"])), [TITLES[row["kernel"]] for row in data["kernels"]], fontsize=8)
    handles = dict(zip(*reversed(above.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower left", ncols=3, frameon=False, fontsize=8)
    return style.finish(figure, f"Figure 2: ten kernels on {style.gpu_name(data)}", quick=data["quick"])


def _hit_rates(axes: Axes, i: int, row: Mapping[str, Any]) -> None:
    shown = [("launched", "launch order, simulated", LAUNCHED), *ARMS_SHOWN]
    for (key, label, colour), at in zip(shown, BARS, strict=True):
        score = row[key] if key == "launched" else row[key]["score"]
        axes.bar(i + at, 100 * score["l2_hit_rate"], WIDTH, color=colour, label=label)
    bound = 100 * row["launched"]["bound_l2_hit_rate"]
    ends = [i + BARS[0] - WIDTH / 2, i + BARS[-1] + WIDTH / 2]
    axes.plot(ends, [bound] * 2, color=LIMIT, lw=1.5, label="bound: no balanced bijection exceeds it")
    _model_bars(axes, i, row["models"])
    _hardware(axes, i + HARDWARE, row)


def _model_bars(axes: Axes, i: int, models: Mapping[str, Any]) -> None:
    if not any(models.values()):
        style.no_run(axes, i + LLM + LLM_STEP, 1, f"LLM {', '.join(models)}: {style.NO_RUN}")
        return
    for arm, colour, step in zip(published.ARMS, MODEL_COLOURS, range(len(published.ARMS)), strict=True):
        found, at = models[arm], i + LLM + step * LLM_STEP
        if found is None or found["score"] is None:
            style.no_run(axes, at, 1, f"{arm}: {style.NO_RUN if found is None else 'no bijection'}", size=5)
        else:
            rate = 100 * found["score"]["l2_hit_rate"]
            axes.bar(at, rate, LLM_STEP, color=colour, label=f"LLM, {arm}, recorded; simulated")
    if (found := models.get(PICTURE)) and found["score"]:
        label = f"LLM, {PICTURE}, recorded; simulated"
        axes.plot([i + LLM], [100 * found["score"]["l2_hit_rate"]], "*", color="black", ms=7, zorder=6, label=label)


def _hardware(axes: Axes, x: float, row: Mapping[str, Any]) -> None:
    measured, printed = row["measured"], row["printed"]
    if measured["launched_pct"] is not None:
        axes.plot([x], [measured["launched_pct"]], "s", mfc="white", mec=MEASURED, ms=6, zorder=5,
                  label="launch order, measured")  # fmt: skip
    if best := measured["bijection"]:
        axes.plot([x], [best["l2_pct"]], "D", color=MEASURED, ms=5, zorder=5, label="best bijection, measured")
    if other := measured["no_bijection"]:
        style.mark_no_bijection(axes, x, other["l2_pct"], label="best of what is no bijection, measured")
    if printed and printed["from_pct"] is not None:
        start, broken = printed["from_pct"], printed["bijective"] is False
        label = "gain printed in the paper" + (" for a formula that is no bijection" if broken else "")
        ends = [start, start + printed["gain"]]
        line = ":" if broken else "-"
        axes.plot(
            [x + 0.07] * 2, ends, line, marker="^", markevery=[1], color=PRINTED_COLOUR, lw=1.6, ms=5.5, label=label
        )


def _speedups(axes: Axes, i: int, row: Mapping[str, Any]) -> None:
    for (key, _, colour), at in zip(ARMS_SHOWN, BARS[1:], strict=True):
        axes.bar(i + at, row[key]["score"]["speedup"] - 1, WIDTH, bottom=1, color=colour)
    for arm, colour, step in zip(published.ARMS, MODEL_COLOURS, range(len(published.ARMS)), strict=True):
        found = row["models"][arm]
        if found and found["score"]:
            axes.bar(i + LLM + step * LLM_STEP, found["score"]["speedup"] - 1, LLM_STEP, bottom=1, color=colour)
    x, measured, printed = i + HARDWARE, row["measured"], row["printed"]
    if best := measured["bijection"]:
        axes.plot([x], [best["speedup"]], "D", color=MEASURED, ms=5, zorder=5)
    if other := measured["no_bijection"]:
        style.mark_no_bijection(axes, x, other["speedup"])
    if printed and printed["speedup"]:
        axes.plot([x + 0.07], [printed["speedup"]], "^", color=PRINTED_COLOUR, ms=6, zorder=8)


def orders(data: Mapping[str, Any]) -> Figure:
    """Each measured bijection: the counter and the replay of the same order."""
    rows: Sequence[Mapping[str, Any]] = data["orders"]
    figure = style.canvas(9.5, 1.8 + 0.24 * len(rows))
    axes = figure.subplots()
    for y, row in enumerate(rows):
        axes.plot([row["measured_pct"], row["simulated_pct"]], [y, y], color="0.75", lw=1.2, zorder=1)
        axes.plot([row["low_pct"], row["high_pct"]], [y, y], color=MEASURED, lw=3, zorder=2)
        axes.plot([row["measured_pct"]], [y], "D", color=MEASURED, ms=5, zorder=3, label="" if y else "measured")
        axes.plot([row["simulated_pct"]], [y], "o", mfc="white", mec=FAMILIES, mew=1.6, ms=6.5, zorder=4,
                  label="" if y else f"simulated, {data['orders_replay']} replay")  # fmt: skip
    axes.set_yticks(range(len(rows)), [f"{style.one_line(r['kernel'])}: {_name(r['order'])}" for r in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("L2 hit rate [%]")
    axes.grid(axis="x", color="0.9", lw=0.7)
    figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    title = "Figure 2, order by order: measured bijections, and the replay of the same"
    return style.finish(figure, title, quick=data["quick"])


def _name(order: str) -> str:
    return "launch order" if order == "baseline" else order


CLEAR = 1.0  # points: less is not called a gain
FAR = 5.0  # points between replay and counter in launch order from which a gain is doubted


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    return "\n\n".join(
        [_what(data), _doubt(data), _table(data), _models_words(data), *_printed_words(data), _orders(data)]
    )


def _what(data: Mapping[str, Any]) -> str:
    rows = data["kernels"]
    best = [max((row[arm] for arm in ("families", "search")), key=lambda a: a["score"]["l2_hit_rate"]) for row in rows]
    gains = [100 * (b["score"]["l2_hit_rate"] - r["launched"]["l2_hit_rate"]) for r, b in zip(rows, best, strict=True)]
    clear = [one_line(row["kernel"]) for row, gain in zip(rows, gains, strict=True) if gain >= CLEAR]
    at_bound = [
        one_line(r["kernel"]) for r in rows if r["launched"]["l2_hit_rate"] >= r["launched"]["bound_l2_hit_rate"]
    ]
    top = max(range(len(rows)), key=lambda i: gains[i])
    speedups = [one["score"]["speedup"] for one in best]
    slower = [one_line(row["kernel"]) for row, s in zip(rows, speedups, strict=True) if s < 0.995]
    return (
        f"**Simulated** ({rows[0]['replay']} replay): the better of both arms gains {mean(gains):+.1f} points of L2 "
        f"hit rate on average, {gains[top]:+.1f} at most ({one_line(rows[top]['kernel'])}); {len(clear)} of "
        f"{len(rows)} kernels gain a point or more ({listed(clear)}). In launch order, {listed(at_bound)} "
        f"{_are(at_bound)} at the proven bound: no bijection can gain. Predicted speedups run from "
        f"{min(speedups):.2f} to {max(speedups):.2f}, mean {mean(speedups):.2f}; a better hit rate comes out slower "
        f"for {listed(slower)}: the objective is the hit rate, as in the paper.\n\n"
        f"{_counted(rows)}\n\n"
        f"**Published**: {published.MEAN_GAIN} points "
        f"on average and up to {published.LARGEST_GAIN:g}; speedup {published.MEAN_SPEEDUP} on average, "
        f"up to {published.LARGEST_SPEEDUP}, on "
        f"{published.SPED_UP} of 10 kernels."
    )


def _counted(rows: list[Mapping[str, Any]]) -> str:
    """What hardware counted of bijections, where the launch order is kept if it has more hits."""
    best = [one for row in rows if (one := row["measured"]["bijection"])]
    kept = [max(0.0, one["l2_pct"] - one["launched_pct"]) for one in best]
    times = [one["speedup"] if gain else 1.0 for one, gain in zip(best, kept, strict=True)]
    return (
        f"**Counted on hardware**, the best measured bijection of {len(best)} of these kernels against the launch "
        "order of its own log, which is kept where it has more hits: "
        f"{mean(kept):+.1f} points on average, {mean(times):.2f}x."
    )


def _doubt(data: Mapping[str, Any]) -> str:
    """Kernels whose launch order the model mispredicts: a gain over it may be the model's own error."""
    missed = []
    for row in data["kernels"]:
        simulated, measured = 100 * row["launched"]["l2_hit_rate"], row["measured"]["launched_pct"]
        if measured is not None and abs(simulated - measured) > FAR:
            missed.append(f"{one_line(row['kernel'])} ({simulated:.1f} simulated, {measured:.1f} measured)")
    if not missed:
        return f"As launched, every kernel is met within {FAR:g} points of the counter."
    return (
        f"**Doubt these gains**: in launch order the replay is more than {FAR:g} points off the counter for "
        f"{listed(missed)}. What is gained there is gained over an order that the model has wrong.{_as_measured(data)}"
    )


def _as_measured(data: Mapping[str, Any]) -> str:
    """Kernels whose suite version differs from the one that was measured, by their launch orders."""
    orders = {row["kernel"]: row["simulated_pct"] for row in data["orders"] if row["order"] == "baseline"}
    rates = {row["kernel"]: 100 * row["launched"]["l2_hit_rate"] for row in data["kernels"]}
    apart = [
        f"{one_line(name)} ({rate:.1f} here, {orders[name]:.1f} there)"
        for name, rate in rates.items()
        if abs(rate - orders.get(name, math.nan)) > FAR
    ]
    if not apart:
        return ""
    return (
        " The bars replay the suite's kernel, the picture of orders below the kernel as it was measured: of "
        f"{listed(apart)} the launch orders differ so, and the gain of the bars is one over the lower of the two."
    )


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _table(data: Mapping[str, Any]) -> str:
    simulated = ("launch order", "best family", "", "search", "", "bound")
    heads = ("kernel", *simulated, "measured, launch order", "best bijection", "no bijection", "printed gain")
    rows = []
    for row in data["kernels"]:
        measured, cells = row["measured"], [one_line(row["kernel"]), pct(row["launched"]["l2_hit_rate"])]
        for arm in ("families", "search"):
            score = row[arm]["score"]
            cells += [f"{pct(score['l2_hit_rate'])} ({score['speedup']:.2f}x)", code(row[arm]["name"])]
        cells.append(pct(row["launched"]["bound_l2_hit_rate"]))
        cells.append("-" if measured["launched_pct"] is None else f"{measured['launched_pct']:.1f}")
        for key in ("bijection", "no_bijection"):
            one = measured[key]
            cells.append(f"{one['l2_pct']:.1f} ({one['speedup']:.2f}x)" if one else "-")
        cells.append(_gain(row["printed"]))
        rows.append(cells)
    most = max(row["evaluations"] for row in data["kernels"])
    later = [(one_line(row["kernel"]), row["launched"]["launch"]) for row in data["kernels"]]
    warm = listed(f"{name} at launch {launch}" for name, launch in later if launch > 1)
    return (
        table(heads, rows) + "\n\nL2 hit rates in per cent of requests, speedups over the launch order in brackets. "
        f"*Best family* and *search* each had up to {most} evaluations; the search ends at the bound. "
        f"Counted at the first launch, but {warm}. *Measured*: rocprofv3 on an MI300X, public logs behind the paper, "
        "the order with the best hit rate among those that are bijections, and among those that are none. *Printed*: "
        "in the text; its plots have no values, and six kernels are named."
    )


def _gain(printed: Mapping[str, Any] | None) -> str:
    if printed is None:
        return "-"
    speedup = f" ({printed['speedup']:.2f}x)" if printed["speedup"] else ""
    broken = f", figure {printed['formula']}: no bijection" if printed.get("bijective") is False else ""
    return f"+{printed['gain']:g}{speedup}{broken}"


def _models_words(data: Mapping[str, Any]) -> str:
    there = [(r, arm, found) for r in data["kernels"] for arm, found in r["models"].items() if found]
    total, seen = len(published.ARMS) * len(data["kernels"]), sum(arm == PICTURE for _, arm, _ in there)
    if not there:
        return (
            f"**LLM arms** (hardware-aware, -unaware, -overload): {NO_RUN} on these kernels at these sizes, for none "
            f"of the {total} pairs of kernel and context. `python -m swizzle_benchmarks.evidence.study contexts` "
            "records them in `studies/recorded`; from `benchmarks/evidence/paper/recorded` `make paper` draws them."
        )
    lines = [
        f"**LLM arms**: {len(there) - seen} of {total} pairs of kernel and context have a recorded run, and "
        f"{number_of(seen, 'kernel')} one more with a picture of the best order in each question (`--image`). The "
        "recorded orders are scored again here.\n"
    ]
    for row, arm, found in there:
        score = found["score"]
        rate = f"{pct(score['l2_hit_rate'])} % ({score['speedup']:.2f}x)" if score else "no bijection here"
        lines.append(
            f"- {one_line(row['kernel'])}, {arm}, {listed(found['models'])}: {rate}, "
            f"{'recorded ' + found['when'] if found['when'] else 'nothing asked, its launch order is at the bound'}, "
            f"run `{found['run']}`"
        )
    return "\n".join(lines)


def _printed_words(data: Mapping[str, Any]) -> list[str]:
    rows = [row for row in data["kernels"] if row["printed"]]
    broken = [row for row in rows if row["printed"].get("bijective") is False]
    if not rows:
        return []
    said = [
        f"**Where the paper's points rest on no bijection.** Of the {len(rows)} gains that the text prints, "
        f"{len(broken)} belong to formulas that are no bijections at the size they were measured at: "
        + listed(
            f"{one_line(row['kernel'])} (+{row['printed']['gain']:g}, figure {row['printed']['formula']}: "
            f"{row['printed']['tiles_computed']:,} of {row['printed']['tiles']:,} tiles computed)"
            for row in broken
        )
        + f". Together the {len(rows)} gains are {sum(r['printed']['gain'] for r in rows):g} points; ten kernels with "
        f"a mean of {published.MEAN_GAIN} make {10 * published.MEAN_GAIN:g}, which leaves "
        f"{10 * published.MEAN_GAIN - sum(r['printed']['gain'] for r in rows):g} for the other four."
    ]
    ends = [end for row in broken if (end := _near_100(row))]
    if ends:
        said.append(
            f"The text counts {published.NEAR_100} kernels that approach 100 %. "
            f"{number_of(len(ends), 'kernel')} end there, each "
            f"with such a formula: {listed(ends)}."
        )
    return said


def _near_100(row: Mapping[str, Any]) -> str:
    """Where a printed formula took the measured hit rate, if that is near 100 %."""
    start, end, gain = (row["printed"][key] for key in ("from_pct", "to_pct", "gain"))
    if start is None or (end or start + gain) < 97:
        return ""
    if end is None:
        return f"{one_line(row['kernel'])} (no log of it; {start:.1f} in launch order + {gain:g} printed)"
    return f"{one_line(row['kernel'])} ({start:.1f} → {end:.1f} measured)"


def _orders(data: Mapping[str, Any]) -> str:
    rows = data["orders"]
    errors = [abs(row["simulated_pct"] - row["measured_pct"]) for row in rows]
    worst = sorted(rows, key=lambda row: -abs(row["simulated_pct"] - row["measured_pct"]))[:5]
    bad = listed(
        f"{one_line(row['kernel'])} `{row['order']}` ({row['measured_pct']:.1f} measured, {row['simulated_pct']:.1f} "
        "simulated)"
        for row in worst
    )
    within = sum(error <= 3 for error in errors)
    return (
        "![The same orders, measured and simulated](figure-2-orders.png)\n\n"
        f"**Order by order**, {data['orders_replay']} replay beside the counter: {within} of {len(rows)} measured "
        f"bijections are met within 3 points, the mean error is {mean(errors):.1f} points. The worst: {bad}. "
        "Where the replay of a measured order is far off, a simulated gain is no promise."
    )
