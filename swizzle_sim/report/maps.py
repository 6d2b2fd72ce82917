"""The maps of the page: XCD and misses of each tile as images of a pixel or more a tile, and when each tile runs."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from swizzle_sim.report.colours import XCDS, on_colour
from swizzle_sim.report.tiles import NO_TILE, is_ribbon, plane
from swizzle_sim.swizzle.grid import Grid
from xcd_model.analysis.schedule import Schedule

MAX_SIDE = 256  # tiles of a map's side that are shown
NUMBERED_SIDE = 16  # maps up to this side carry the XCD's number in each tile
LEAST_PIXELS = 512  # of an image's longer side: printers smooth what is smaller
WIDE, TALL = 3.0, 1.3  # maps wider or taller than this, side by side, are drawn with oblong tiles
STEPS = 240  # of the slider
NEVER = 255
HEAT = "cividis"  # evenly darker for colour-blind readers too


@dataclass(frozen=True)
class Number:
    """Number of an XCD in a tile, placed in percent."""

    x: float
    y: float
    text: str
    style: str


@dataclass(frozen=True)
class Map:
    """One map.

    Parameters
    ----------
    title : str
    image : str
        Data URI.
    alt : str
    numbers : tuple of Number
    """

    title: str
    image: str
    alt: str
    numbers: tuple[Number, ...] = ()


def shown(grid: Grid, of_tile: np.ndarray) -> np.ndarray:
    """Values of the tiles that a map shows, as they lie."""
    return plane(grid, of_tile)[:MAX_SIDE, :MAX_SIDE]


def cropped(grid: Grid) -> str:
    """What of a grid its maps leave out; empty where nothing."""
    rows, columns = plane(grid, np.zeros(grid.num_pids, np.int8)).shape
    if max(rows, columns) <= MAX_SIDE:
        return ""
    what = f"lines of {columns} tiles" if is_ribbon(grid) else f"x {columns} tiles"
    return f"The first {min(rows, MAX_SIDE)} x {min(columns, MAX_SIDE)} of {rows} {what}."


def xcd_image(grid: Grid, xcd: np.ndarray, title: str, num_xcds: int) -> Map:
    """Map of the XCD that computes each tile.

    Parameters
    ----------
    grid : Grid
    xcd : (num_pids,) int array
        XCD of each tile.
    title : str
    num_xcds : int
    """
    tiles = shown(grid, xcd)
    rgb = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in XCDS], np.uint8)
    pixels = np.zeros((*tiles.shape, 4), np.uint8)
    pixels[..., :3], pixels[..., 3] = rgb[tiles % len(XCDS)], 255 * (tiles != NO_TILE)
    numbers = []
    if max(tiles.shape) <= NUMBERED_SIDE:
        rows, columns = tiles.shape
        for (m, n), x in np.ndenumerate(tiles):
            if x != NO_TILE:
                at = round(100 * (n + 0.5) / columns, 2), round(100 * (m + 0.5) / rows, 2)
                numbers.append(Number(*at, str(x), "on-" + on_colour(XCDS[x % len(XCDS)])))
    return Map(title, data_uri(pixels), f"XCD of each tile, {title}: {tiles.shape[0]} x {tiles.shape[1]} tiles, "
               f"{num_xcds} XCDs.", tuple(numbers))  # fmt: skip


def heat_image(grid: Grid, misses: np.ndarray, title: str, most: float) -> Map:
    """Map of the misses of each tile.

    Parameters
    ----------
    grid : Grid
    misses : (num_pids,) float array [lines]
    title : str
    most : float [lines]
        End of the colour scale.
    """
    from matplotlib import colormaps

    tiles = shown(grid, misses)
    pixels = (255 * colormaps[HEAT](np.clip(tiles / (most or 1.0), 0, 1))).round().astype(np.uint8)
    pixels[..., 3] = 255 * (tiles != NO_TILE)
    alt = (
        f"Misses of each tile, {title}: {misses.min():,.0f} to {misses.max():,.0f} lines, {misses.mean():,.0f} a tile."
    )
    return Map(title, data_uri(pixels), alt)


def heat_scale() -> str:
    """Data URI of the colours of `heat_image`, fewest misses on the left."""
    from matplotlib import colormaps

    return data_uri((255 * colormaps[HEAT](np.linspace(0, 1, 256)[None])).round().astype(np.uint8), least=1)


def data_uri(pixels: np.ndarray, least: int = LEAST_PIXELS) -> str:
    """Data URI of (rows, columns, 4) uint8 pixels as PNG, each repeated until the longer side has ``least``."""
    from matplotlib.image import imsave

    rows, columns = pixels.shape[:2]
    times = max(1, least // max(rows, columns))
    down = times * max(1, int(columns / (WIDE * rows))) if least > 1 else 1
    across = times * max(1, round(rows / (TALL * columns)))
    stream = io.BytesIO()
    imsave(
        stream, pixels.repeat(down, axis=0).repeat(across, axis=1), format="png", metadata={"Software": "swizzle-sim"}
    )
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def slider_data(grid: Grid, schedules: tuple[Schedule, ...]) -> dict[str, Any]:
    """When each tile of the maps runs, for the page's slider: JSON-ready.

    Parameters
    ----------
    grid : Grid
    schedules : tuple of Schedule
        Of each map.

    Returns
    -------
    data : dict
        ``maps``: for each map ``begin`` and ``end``, base64 of a byte a tile, the step of the slider before which the
        tile waits and from which it is done; `NEVER` where there is no tile.
    """
    turns = max(one.turns for one in schedules)
    maps = [
        {"begin": _steps(grid, STEPS * one.begin // turns), "end": _steps(grid, -(-STEPS * one.end // turns))}
        for one in schedules
    ]
    rows, columns = shown(grid, schedules[0].begin).shape
    return {"steps": STEPS, "turns": turns, "rows": rows, "columns": columns, "never": NEVER, "maps": maps}


def _steps(grid: Grid, step: np.ndarray) -> str:
    tiles = shown(grid, step)
    return base64.b64encode(np.where(tiles == NO_TILE, NEVER, tiles).astype(np.uint8).tobytes()).decode("ascii")
