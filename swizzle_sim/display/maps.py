"""`show_map`: which XCD computes which tile, under several orders side by side."""

from __future__ import annotations

import numpy as np

from swizzle_sim.display.picture import Picture
from swizzle_sim.kernels import Kernel
from swizzle_sim.report.colours import INK, XCDS, on_colour
from swizzle_sim.report.tiles import tile_map
from swizzle_sim.swizzle import Swizzle
from xcd_model import Gpu, xcd_of
from xcd_model.errors import SizeError

MAX_MAPS = 4
MAX_SIDE = 256
NUMBERED_SIDE = 10  # maps up to this side carry the XCD's number in each tile
NOTE = "exact: round-robin dispatch and the order's own arithmetic"


def show_map(kernel: Kernel, gpu: Gpu, *swizzles: Swizzle, launched: bool = True) -> Picture:
    """Draw the XCD of each tile as launched, and under each swizzle.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    *swizzles : Swizzle
        Their names are the titles.
    launched : bool
        Whether the order as launched comes first.

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
    from matplotlib.patches import Patch

    num_pids = kernel.grid.num_pids
    orders = {"as launched": np.arange(num_pids)} if launched else {}
    for number, one in enumerate(swizzles, 1):
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
        _draw(axes, tiles, title, gpu.xcds)
    patches = [Patch(color=XCDS[x % len(XCDS)], label=f"XCD {x}") for x in range(min(gpu.xcds, len(XCDS)))]
    figure.legend(handles=patches, loc="outside right center", frameon=False, fontsize=8)
    figure.suptitle(f"XCD of each tile: {kernel.name}, grid {kernel.grid}", fontsize=10, color=INK, parse_math=False)
    return Picture(figure, NOTE)


def _draw(axes, tiles: np.ndarray, title: str, num_xcds: int) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.ticker import MaxNLocator

    colours = [XCDS[x % len(XCDS)] for x in range(num_xcds)]
    skewed = not 0.25 <= tiles.shape[0] / tiles.shape[1] <= 4
    axes.imshow(
        np.ma.masked_less(tiles, 0), cmap=ListedColormap(colours), vmin=-0.5, vmax=num_xcds - 0.5,
        interpolation="nearest", aspect="auto" if skewed else "equal",
    )  # fmt: skip
    axes.set_title(title, fontsize=9, parse_math=False)
    axes.tick_params(labelsize=8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if max(tiles.shape) <= NUMBERED_SIDE:
        for (m, n), x in np.ndenumerate(tiles):
            if x >= 0:
                axes.text(n, m, str(x), ha="center", va="center", fontsize=8, color=on_colour(colours[x]))
