"""Sweeps over problem sizes: hit rate against size, swizzled and not, and the sizes where a swizzle hurts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swizzle_sim.kernels import Kernel
from swizzle_sim.swizzle import Swizzle
from swizzle_sim.tuning.points import point_of
from xcd_model import Gpu
from xcd_model.errors import LanguageError, SearchError, UnknownName

MOST_POINTS = 10_000
FORMS = "1024,2048, or low..high, or low..high step n, or powers low..high"


@dataclass(frozen=True)
class Hurt:
    """A size where a swizzle is worse than the order as launched."""

    at: str
    swizzle: str
    points: float


def read_sizes(text: str) -> list[int]:
    """Read ``1024,2048`` or ``1024..16384 step 1024`` or ``powers 1024..16384``.

    Raises
    ------
    LanguageError
        With code ``parameter`` if it has another form, or no value, or too many.
    """
    from swizzle_sim.templates.template import read_values  # noqa: PLC0415  (a cycle through the package otherwise)

    written = " ".join(text.split())
    listed = written if ".." in written or written[:1] in tuple("{[") else f"{{{written}}}"
    try:
        return list(read_values(listed, FORMS))
    except ValueError as rule:
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise LanguageError(str(rule), filename=f"--values {shown!r}", code="parameter") from None


def size_points(
    work: Kernel, gpu: Gpu, swizzles: Sequence[Swizzle], over: Sequence[str], values: Sequence[int], replay: str
) -> list[dict[str, Any]]:
    """Points of a sweep over sizes that move together.

    Raises
    ------
    UnknownName
        If the kernel has no such size.
    SearchError
        If the kernel's sizes are fixed, or there are too many points.
    """
    for name in over:
        if name not in work.problem:
            raise UnknownName(f"size of kernel {work.name}", name, work.problem)
    if work.file.endswith(".npz"):
        raise SearchError(f"{work.name} is a recorded trace of one size: it cannot be swept over sizes", code="sweep")
    if not over or len(values) > MOST_POINTS:
        raise SearchError(f"{len(values)} sizes of {len(over)} names: a sweep has up to {MOST_POINTS}", code="sweep")
    return [point_of(work, gpu, swizzles, replay, {**work.problem, **dict.fromkeys(over, v)}) for v in values]


def hurts(labels: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[Hurt]:
    """Where a swizzle loses hit rate, the worst first."""
    found = []
    for label, row in zip(labels, rows, strict=True):
        for name, score in row["swizzles"].items():
            if row["launched"] is not None and "error" not in score:
                lost = 100 * (row["launched"]["l2_hit_rate"] - score["l2_hit_rate"])
                found += [Hurt(label, name, lost)] if lost > 0 else []
    return sorted(found, key=lambda one: -one.points)


def draw_sweep(path: Path, title: str, axis: str, values: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the picture of a sweep: L2 hit rate over the value, one line an order.

    Source: the figure is figure 15 of SwizzlePerf (arXiv 2508.20258) for any kernel.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    plot = figure.add_subplot()
    kept = [(v, row) for v, row in zip(values, rows, strict=True) if row["launched"] is not None]
    plot.plot(
        [v for v, _ in kept], [100 * row["launched"]["l2_hit_rate"] for _, row in kept], "o-", label="as launched"
    )
    for name in dict.fromkeys(name for _, row in kept for name in row["swizzles"]):
        pairs = [(v, row["swizzles"][name]) for v, row in kept if "error" not in row["swizzles"][name]]
        plot.plot([v for v, _ in pairs], [100 * score["l2_hit_rate"] for _, score in pairs], "s--", label=name)
    bound = [100 * row["launched"]["bound_l2_hit_rate"] for _, row in kept]
    plot.plot([v for v, _ in kept], bound, ":", color="grey", label="bound")
    plot.set(title=title, xlabel=axis, ylabel="L2 hit rate [%], simulated", ylim=(0, 100))
    plot.legend(fontsize="small")
    figure.savefig(path, dpi=120)
