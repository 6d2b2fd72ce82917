"""Pictures of a study: bars for contexts and models, lines for progression and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.display.colours import XCDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAUNCHED = "0.7"
SERIES = XCDS[1:]


def draw_study(found: Mapping[str, Any], path: Path) -> Path:
    """Draw what `agent.study.run_study` gathered.

    Parameters
    ----------
    found : mapping
    path : Path
        PNG to write.

    Returns
    -------
    path : Path
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    by_kernel: dict[str, list[Mapping[str, Any]]] = {}
    for row in found["rows"]:
        by_kernel.setdefault(row["kernel"], []).append(row)
    panels = 1 if found["which"] in ("contexts", "models") else len(by_kernel)
    figure = Figure(figsize=(max(5.0, 3.6 * panels), 3.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    if panels == 1 and found["which"] in ("contexts", "models"):
        _bars(axes[0], by_kernel)
    else:
        draw = _progression if found["which"] == "progression" else _sizes
        for panel, (name, rows) in zip(axes, by_kernel.items(), strict=True):
            draw(panel, rows)
            panel.set_title(name)
    for panel in axes:
        panel.set_ylabel("L2 hit rate [%]")
        panel.set_ylim(0, 100)
        panel.grid(axis="y", alpha=0.3)
        panel.legend(fontsize="small")
    figure.suptitle(f"{found['which']} on {found['gpu']}, {found['replay']} replay, simulated")
    figure.savefig(path, metadata={"Software": None})
    return path


def _pct(values: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if v is None else 100 * v for v in values], float)


def _bars(axes: Axes, by_kernel: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    labels = list(dict.fromkeys(row["label"] for rows in by_kernel.values() for row in rows))
    width, at = 0.8 / (len(labels) + 1), np.arange(len(by_kernel))
    launched = [rows[0]["baseline_l2_hit_rate"] for rows in by_kernel.values()]
    axes.bar(at, _pct(launched), width, color=LAUNCHED, label="as launched")
    for i, label in enumerate(labels):
        best = [next((r["best_l2_hit_rate"] for r in rows if r["label"] == label), None) for rows in by_kernel.values()]
        axes.bar(at + (i + 1) * width, _pct(best), width, color=SERIES[i % len(SERIES)], label=label)
    axes.set_xticks(at + 0.4 - width / 2, list(by_kernel), rotation=30, ha="right")


def _progression(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    for i, row in enumerate(rows):
        colour = SERIES[i % len(SERIES)]
        each = _pct(row["l2_hit_rate_of_each"])
        best = np.fmax.accumulate(np.concatenate([_pct([row["baseline_l2_hit_rate"]]), each]))
        axes.plot(range(1, each.size + 1), each, ":", marker=".", color=colour)
        axes.plot(range(best.size), best, color=colour, label=row["label"])
    axes.set_xlabel("candidate")
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _sizes(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    at = range(len(rows))
    axes.plot(at, _pct([r["baseline_l2_hit_rate"] for r in rows]), color=LAUNCHED, marker="o", label="as launched")
    axes.plot(at, _pct([r["best_l2_hit_rate"] for r in rows]), color=SERIES[0], marker="o", label=rows[0]["label"])
    changing = [name for name in rows[0]["problem"] if len({r["problem"][name] for r in rows}) > 1]
    names = ["\n".join(f"{name}={r['problem'][name]}" for name in changing) for r in rows]
    axes.set_xticks(list(at), names, fontsize="x-small")
