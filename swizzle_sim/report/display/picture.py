"""What a notebook shows as a picture: a figure with a foot that says what kind of numbers it holds, and `show_map`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from swizzle_sim.language import Swizzle
from swizzle_sim.report.display.colours import INK, OTHER
from swizzle_sim.report.display.tiles import MAX_SIDE, draw_xcds, legend_of_xcds, tile_map
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, xcd_of
from xcd_model.errors import SizeError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTEBOOK_DPI = 120  # half as much again as it is shown with, and small enough to keep in a repository
SHOWN_DPI = 80
LAUNCHED = "launch order"
MAX_MAPS = 4
NUMBERED_SIDE = 10  # maps up to this side carry the XCD's number in each tile
EXACT = "exact: the dispatch rule and the swizzle's own arithmetic"


def png(figure: Figure, *, note: str = "simulated", dpi: int = 150, **options) -> bytes:
    """Bytes of a figure as PNG; the same figure gives the same bytes."""
    figure.supxlabel(note, x=0.995, ha="right", fontsize=7, color=OTHER, parse_math=False)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi, facecolor="white", pil_kwargs=options)
    return stream.getvalue()


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of matplotlib's object API, shown without pyplot and without a backend."""

    figure: Figure
    note: str = "simulated"  # at the foot: what kind of numbers these are, such as ``simulated, timed replay``

    @cached_property
    def data(self) -> bytes:
        """PNG; the same figure gives the same bytes."""
        return png(self.figure, note=self.note, dpi=NOTEBOOK_DPI, optimize=True)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width = int.from_bytes(self.data[16:20], "big")
        return self.data, {"width": width * SHOWN_DPI // NOTEBOOK_DPI}

    def __repr__(self) -> str:
        title = self.figure.get_suptitle() or "a figure"
        return f"<Picture: {title} ({self.note})>"


def show_map(kernel: Kernel, gpu: Gpu, *swizzles: Swizzle | str, launched: bool = True) -> Picture:
    """Draw the XCD of each tile in launch order, and under each swizzle.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    *swizzles : Swizzle or str
        What `Swizzle.read` takes; their names are the titles.
    launched : bool
        Whether the launch order comes first.

    Returns
    -------
    Picture

    Raises
    ------
    NotBijective
        If one of them is no permutation of the kernel's grid: a tile has two XCDs, or none.
    SizeError
        If there is nothing to draw, or there are more than `MAX_MAPS` maps.
    """
    from matplotlib.figure import Figure

    num_pids = kernel.grid.num_pids
    orders = {LAUNCHED: np.arange(num_pids)} if launched else {}
    for number, one in enumerate(map(Swizzle.read, swizzles), 1):
        title = one.name or f"swizzle {number}"
        orders[title if title not in orders else f"{title} ({number})"] = one.permutation(
            kernel.grid, gpu.xcds, kernel.problem
        )
    if not 1 <= len(orders) <= MAX_MAPS:
        raise SizeError(f"{len(orders)} maps: side by side there is room for 1 to {MAX_MAPS}")
    xcd = xcd_of(num_pids, gpu, kernel.programs)
    maps = {title: tile_map(kernel.grid, xcd, order)[:MAX_SIDE, :MAX_SIDE] for title, order in orders.items()}
    rows, cols = next(iter(maps.values())).shape
    height = 1.0 + 3.0 * min(max(rows / cols, 0.3), 1.3)
    figure = Figure(figsize=(0.9 + 3.1 * len(maps), height), layout="constrained")
    for axes, (title, tiles) in zip(figure.subplots(1, len(maps), squeeze=False)[0], maps.items(), strict=True):
        draw_xcds(axes, tiles, title, gpu.xcds, NUMBERED_SIDE)
        axes.tick_params(labelsize=8)
    legend_of_xcds(figure, gpu.xcds)
    figure.suptitle(f"XCD of each tile: {kernel.name}, grid {kernel.grid}", fontsize=10, color=INK, parse_math=False)
    return Picture(figure, EXACT)
