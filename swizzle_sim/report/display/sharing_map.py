"""The map of `swizzle-sim show`: how much of its lines one workgroup shares with each other, tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.pricing.sharing import Shared

LINE = 32  # workgroups a line where a grid has one axis
TEXT_ROWS, TEXT_COLS = 17, 33
STEPS = "·░▒▓█"  # none, up to a third, up to two thirds, less than all, all
PLAIN_STEPS = ".-+*#"


@dataclass(frozen=True, eq=False)
class Window:
    """Tiles around one workgroup, laid out as they lie."""

    tiles: np.ndarray = field(repr=False)  # (rows, cols) int64 array: workgroup of each cell, -1 where there is none
    first_row: int  # of the whole map
    first_col: int
    row: str  # what the axes are called
    col: str
    note: str  # what of the grid is not shown; empty where all is


def window(grid: Grid, workgroup: int, most_rows: int, most_cols: int) -> Window:
    """Cut the map of a grid around a workgroup.

    A one-dimensional grid is laid out in lines of `LINE`; of a three-dimensional one the plane of the workgroup is
    taken, x down and y across.
    """
    row, col, note = "pid_m", "pid_n", list[str]()
    tiles: np.ndarray
    if grid.shape and grid.tiles:
        tiles = np.arange(grid.num_pids).reshape(grid.tiles)
    elif len(grid.launch) == 1:
        cols = min(LINE, grid.num_pids)
        tiles = np.full(-(-grid.num_pids // cols) * cols, -1)
        tiles[: grid.num_pids] = np.arange(grid.num_pids)
        tiles, row, col = tiles.reshape(-1, cols), "line", f"pid, {cols} a line"
    else:
        gx, gy = grid.launch[0], grid.launch[1]
        plane = workgroup // (gx * gy)
        tiles = (np.arange(gx * gy) + plane * gx * gy).reshape(gy, gx).T
        if len(grid.launch) == 3:
            row, col = "pid_x", "pid_y"
            note.append(f"plane pid_z = {plane} of {grid.launch[2]}")
    at_row, at_col = (int(x[0]) for x in np.nonzero(tiles == workgroup))
    rows, cols = tiles.shape
    first_row, first_col = _first(at_row, rows, most_rows), _first(at_col, cols, most_cols)
    tiles = tiles[first_row : first_row + most_rows, first_col : first_col + most_cols]
    if tiles.shape != (rows, cols):
        note.append(f"{tiles.shape[0]} x {tiles.shape[1]} of {rows} x {cols} {'cells' if row == 'line' else 'tiles'}")
    return Window(tiles, first_row, first_col, row, col, ", ".join(note))


def _first(at: int, length: int, most: int) -> int:
    return min(max(0, at - most // 2), max(0, length - most))


def draw_text(shared: Sequence[Shared], grid: Grid, workgroup: int, width: int, unicode: bool = True) -> str:
    """Maps of all tensors in characters, side by side as far as they fit."""
    cut = window(grid, workgroup, TEXT_ROWS, TEXT_COLS)
    steps = STEPS if unicode else PLAIN_STEPS
    maps: dict[tuple[str, ...], list[str]] = {}
    for one in shared:  # tensors with the same map share it
        share = np.where(cut.tiles >= 0, one.share[cut.tiles], np.nan)
        level = np.select([share == 0, share <= 1 / 3, share <= 2 / 3, share < 1], [0, 1, 2, 3], 4)
        cells = np.array(list(steps))[level]
        cells[cut.tiles == workgroup] = "X"
        cells[cut.tiles < 0] = " "
        maps.setdefault(tuple("".join(row) for row in cells), []).append(one.tensor)
    across = max(cut.tiles.shape[1], *(len(", ".join(names)) for names in maps.values()))
    at_once = max(1, (width + 3) // (across + 3))
    blocks = [[", ".join(names), *rows] for rows, names in maps.items()]
    lines: list[str] = []
    for first in range(0, len(blocks), at_once):
        some = blocks[first : first + at_once]
        lines += ["   ".join(cell.ljust(across) for cell in row).rstrip() for row in zip(*some, strict=True)]
        lines.append("")
    names = ("no line", "up to a third", "up to two thirds", "most", "all")
    legend = ", ".join(f"{mark} {name}" for mark, name in zip(steps, names, strict=True))
    lines.append(f"X workgroup {workgroup}; lines in common with it: {legend}")
    lines.append(f"down: {cut.row}, across: {cut.col}{'; ' + cut.note if cut.note else ''}")
    return "\n".join(lines)
