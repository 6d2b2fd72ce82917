"""How the tiles of a grid lie on paper."""

from __future__ import annotations

import numpy as np

from swizzle_sim.swizzle.grid import Grid

RIBBON = 64  # tiles a line where a grid has one axis
NO_TILE = -1


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
    """Lay values of tiles out as the tiles lie.

    Parameters
    ----------
    grid : Grid
    of_tile : (num_pids,) array
        Value of each tile.

    Returns
    -------
    values : (num_pid_m, num_pid_n) array
        For a grid without two tile axes, lines of `RIBBON` tiles, the last filled up with `NO_TILE`.
    """
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
    """XCD of each tile, laid out as by `plane`.

    Parameters
    ----------
    grid : Grid
    xcd : (num_pids,) int array
        XCD of each hardware id.
    order : (num_pids,) int array
        Tile that each hardware id computes.
    """
    of_tile = np.empty(grid.num_pids, np.int64)
    of_tile[order] = xcd
    return plane(grid, of_tile)
