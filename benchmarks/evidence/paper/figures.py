"""The figures there are, and what each is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import audit_table, figure_2, figure_5, figure_14, figure_15, figure_16
from .jobs import Job
from .settings import Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Data = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One figure or table of the page."""

    title: str
    jobs: Callable[[Settings], list[Job]]  # ``jobs(settings)``: what has to be worked out
    # ``gather(settings, results by job name) -> dict``: the numbers, JSON-ready
    gather: Callable[[Settings, Mapping[str, Mapping[str, Any]]], dict[str, Any]]
    words: Callable[[Data], str]  # ``words(data)``: Markdown
    # ``draw(data) -> Figure`` by file name
    pictures: Mapping[str, Callable[[Data], Figure]] = field(default_factory=dict)
    kind: str = ""  # at the foot of each picture: what is simulated, measured or published in it


PARTS = {
    "figure-2": Part(
        title="Figure 2: ten kernels",
        jobs=figure_2.jobs,
        gather=figure_2.gather,
        words=figure_2.words,
        pictures={"figure-2.png": figure_2.bars, "figure-2-orders.png": figure_2.orders},
        kind="simulated: timed replay; measured: rocprofv3 on MI300X, public logs; printed: arXiv 2508.20258",
    ),
    "figure-5": Part(
        title="Figure 5: the map of a GEMM, before and after",
        jobs=figure_5.jobs,
        gather=figure_5.gather,
        words=figure_5.words,
        pictures={"figure-5.png": figure_5.maps},
        kind="simulated: timed replay",
    ),
    "figure-14": Part(
        title="Figure 14: progression",
        jobs=figure_14.jobs,
        gather=figure_14.gather,
        words=figure_14.words,
        pictures={"figure-14.png": figure_14.progression},
        kind="simulated: timed replay",
    ),
    "figure-15": Part(
        title="Figure 15: problem sizes",
        jobs=figure_15.jobs,
        gather=figure_15.gather,
        words=figure_15.words,
        pictures={"figure-15.png": figure_15.sweeps},
        kind="simulated: timed replay; paper's text: arXiv 2508.20258, ends of the range only",
    ),
    "figure-16": Part(
        title="Figure 16: models",
        jobs=figure_16.jobs,
        gather=figure_16.gather,
        words=figure_16.words,
        pictures={"figure-16.png": figure_16.model_bars},
        kind="simulated: timed replay",
    ),
    "audit": Part(
        title="The audit: every printed formula",
        jobs=audit_table.jobs,
        gather=audit_table.gather,
        words=audit_table.words,
    ),
}
