"""The gallery: every family of swizzles with a small map of what it does, to be clicked into the editor."""

from __future__ import annotations

import numpy as np

from swizzle_sim.language import FAMILIES, Grid, Swizzle, family, holds, parse_spec
from swizzle_sim.report.display.tiles import map_png

SIDE = 16  # tiles of a small map's side
XCDS = 8
_FLAT = Grid((SIDE * SIDE,), (SIDE, SIDE))
_BOX = Grid((SIDE, 4, 4))


def cards() -> dict[str, bytes]:
    """PNG of each family by name: 16 x 16 tiles (3-D orders: 16 x 4 x 4 workgroups, x along the rows), 8 XCDs."""
    return {name: map_png(small_map(name), XCDS) for name in FAMILIES}


def small_map(spec: str) -> np.ndarray:
    """XCD of each tile of the gallery's grid under a specification, (16, 16) int array."""
    three = parse_spec(spec)[-1][0].axes == 3
    grid = _BOX if three else _FLAT
    order = Swizzle.parse(family(spec)).permutation(grid, XCDS)
    xcd = np.empty(grid.num_pids, np.int64)
    xcd[order] = np.arange(grid.num_pids) % XCDS
    return xcd.reshape(SIDE, SIDE)


def fits(spec: str, grid: Grid, num_xcds: int) -> bool:
    """Whether a specification has the axes that it needs on a grid, and is a bijection there."""
    axes = parse_spec(spec)[-1][0].axes
    if axes == 3 and len(grid.launch) != 3:
        return False
    return not (axes == 2 and grid.shape is None) and holds(spec, grid, num_xcds)
