"""Tiles of a grid as a plane, and the one drawing of them: which XCD computes which tile."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.report.display.colours import INK, on_colour, xcd_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIBBON = 64  # tiles a line where a grid has one axis
NO_TILE = -1
MAX_SIDE = 256  # tiles of a map's side: more are under two pixels each, and thinning them out draws false stripes
NUMBERED_SIDE = 16  # maps up to this side carry the XCD's number in each tile
LEAST_PIXELS = 512  # of a map's longer side: printers smooth what is smaller


def tile_coordinates(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Tile row and column of each workgroup; a grid without tile axes is one row."""
    pid = np.arange(grid.num_pids)
    if grid.tiles:
        return pid // grid.tiles[1], pid % grid.tiles[1]
    if len(grid.launch) == 1:
        return np.zeros_like(pid), pid
    return pid % grid.launch[0], pid // grid.launch[0]


def is_ribbon(grid: Grid) -> bool:
    """Whether a grid has no two axes of tiles, and so is cut into lines."""
    return grid.shape is None or 1 in grid.shape


def plane(grid: Grid, of_tile: np.ndarray) -> np.ndarray:
    """Values of all tiles as they lie, (num_pid_m, num_pid_n); without two axes lines of `RIBBON`, then `NO_TILE`."""
    if is_ribbon(grid):
        width = min(RIBBON, grid.num_pids)
        filled = np.full(-(-grid.num_pids // width) * width, NO_TILE, of_tile.dtype)
        filled[: grid.num_pids] = of_tile
        return filled.reshape(-1, width)
    if grid.tiles:
        return of_tile.reshape(grid.tiles)
    # a two-dimensional launch counts x, which is pid_m, fastest
    return of_tile.reshape(grid.launch[1], grid.launch[0]).T


def tile_map(grid: Grid, xcd: np.ndarray, order: np.ndarray) -> np.ndarray:
    """XCD of each tile, laid out as by `plane`, from the XCD of each hardware id and the tile that it computes."""
    of_tile = np.empty(grid.num_pids, np.int32)
    of_tile[order] = xcd
    return plane(grid, of_tile)


def map_png(xcd: np.ndarray, num_xcds: int) -> bytes:
    """PNG of a (rows, columns) map of XCDs, one pixel a tile, `NO_TILE` transparent, to be scaled up unsmoothed."""
    from PIL import Image  # noqa: PLC0415  (matplotlib's; the process that serves the page draws only on request)

    image = Image.fromarray(np.where(xcd < 0, num_xcds, xcd).astype(np.uint8))
    colours = [xcd_colour(x) for x in range(num_xcds + 1)]
    image.putpalette([int(colour[i : i + 2], 16) for colour in colours for i in (1, 3, 5)])
    stream = io.BytesIO()
    image.save(stream, format="png", transparency=num_xcds)
    return stream.getvalue()


def draw_xcds(axes: Axes, tiles: np.ndarray, title: str, num_xcds: int, numbered_side: int = NUMBERED_SIDE) -> None:
    """Draw a (rows, columns) map of XCDs, `NO_TILE` where there is none; small maps carry their numbers too."""
    from matplotlib.colors import to_rgba_array

    colours = [xcd_colour(x) for x in range(num_xcds)]
    pixels = np.round(255 * to_rgba_array(colours)).astype(np.uint8)[tiles]
    pixels[tiles == NO_TILE] = 0
    draw_pixels(axes, pixels, title)
    if max(tiles.shape) <= numbered_side:
        for (m, n), x in np.ndenumerate(tiles):
            if x != NO_TILE:
                axes.text(n, m, str(x), ha="center", va="center", fontsize=8, color=on_colour(colours[x]))


def draw_pixels(axes: Axes, pixels: np.ndarray, title: str) -> None:
    """Draw (rows, columns, 4) uint8 colours as oblong or square tiles, exactly filling the axes."""
    from matplotlib.ticker import MaxNLocator

    rows, columns = pixels.shape[:2]
    times = max(1, LEAST_PIXELS // max(rows, columns))
    skewed = not 0.25 <= rows / columns <= 4
    axes.imshow(
        pixels.repeat(times, axis=0).repeat(times, axis=1), interpolation="none", aspect="auto" if skewed else "equal",
        extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
    )  # fmt: skip
    axes.set_title(title, fontsize=10, parse_math=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=7, integer=True, steps=[1, 2, 4, 8, 10]))


def legend_of_xcds(figure: Figure, num_xcds: int, loc: Any = "outside right center", ncols: int = 1) -> None:
    """Legend with the colour of each XCD."""
    from matplotlib.patches import Patch

    patches = [Patch(color=xcd_colour(x), label=f"XCD {x}") for x in range(num_xcds)]
    figure.legend(handles=patches, loc=loc, ncols=ncols, frameon=False, fontsize=8, labelcolor=INK)
