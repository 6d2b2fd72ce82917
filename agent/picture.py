"""The picture for models that see: which XCD computes each tile, and where the misses are."""

from __future__ import annotations

import base64
import io

import numpy as np

from swizzle_sim.display.tiles import plane, tile_map
from swizzle_sim.scoring import Scorer
from xcd_model import xcd_of
from xcd_model.analysis.sampled_misses import misses_of_workgroups, sampled_touches
from xcd_model.analysis.schedule import schedule_of


def picture_png(scorer: Scorer, order: np.ndarray) -> bytes:
    """PNG of one order: tile to XCD on the left, misses of each tile on the right; the same bytes every time.

    Parameters
    ----------
    scorer : Scorer
    order : (n_workgroups,) int64

    Returns
    -------
    png : bytes
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    plan, grid = scorer.plan, scorer.kernel.grid
    schedule = schedule_of(plan, order, workgroups_per_cu=scorer.occupancy)
    missed = misses_of_workgroups(plan, schedule, sampled_touches(plan, schedule))
    xcd = tile_map(grid, xcd_of(order.size, scorer.gpu, scorer.kernel.programs), order)
    figure = Figure(figsize=(10, 5), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    shown = left.imshow(_shown(xcd), cmap="tab10", vmin=-0.5, vmax=9.5, interpolation="nearest")
    left.set_title("XCD that computes each tile")
    figure.colorbar(shown, ax=left, ticks=range(min(10, scorer.gpu.xcds)))
    misses = right.imshow(_shown(plane(grid, missed)), cmap="viridis_r", interpolation="nearest")
    right.set_title("L2 misses of each tile [lines, estimated]")
    figure.colorbar(misses, ax=right)
    for axes in (left, right):
        axes.set_xlabel("n")
        axes.set_ylabel("m")
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def data_uri(png: bytes) -> str:
    """Data URI of a PNG."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _shown(values: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.masked_less(values, 0)
