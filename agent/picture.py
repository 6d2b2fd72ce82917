"""The picture for models that see: which XCD computes each tile, and where the misses are."""

from __future__ import annotations

import base64
import io

import numpy as np

from agent.reuse import reuse_of, tile_coordinates
from swizzle_sim.scoring import Scorer
from xcd_model import xcd_of


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

    reuse = reuse_of(scorer.plan, order, workgroups_per_cu=scorer.occupancy, grid=scorer.kernel.grid)
    xcd = np.empty(order.size)
    xcd[order] = xcd_of(order.size, scorer.gpu)
    figure = Figure(figsize=(10, 5), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    shown = left.imshow(_plane(scorer, xcd), cmap="tab10", vmin=-0.5, vmax=9.5, interpolation="nearest")
    left.set_title("XCD that computes each tile")
    figure.colorbar(shown, ax=left, ticks=range(min(10, scorer.gpu.xcds)))
    misses = right.imshow(_plane(scorer, reuse.misses_of_workgroup), cmap="viridis_r", interpolation="nearest")
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


def _plane(scorer: Scorer, of_workgroup: np.ndarray) -> np.ndarray:
    """Values on the tile grid; a grid without tile axes is folded into lines of 64."""
    row, col = tile_coordinates(scorer.kernel.grid)
    if scorer.kernel.grid.shape is None:
        width = min(64, of_workgroup.size)
        row, col = np.divmod(np.arange(of_workgroup.size), width)
    plane = np.full((row.max() + 1, col.max() + 1), np.nan)
    plane[row, col] = of_workgroup
    return plane
