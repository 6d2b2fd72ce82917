"""Which tiles a list of answers leaves out or computes twice, in the words that verification uses."""

from __future__ import annotations

import numpy as np

from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.verdict import Counterexample


def where_text(grid: Grid, num_xcds: int) -> str:
    """Grid and XCD count, as every message names them."""
    return f"(grid {grid}, {num_xcds} XCD{'s' * (num_xcds != 1)})"


def tally(columns: list[tuple[str, np.ndarray, int, int]], grid: Grid, num_xcds: int) -> Counterexample | None:
    """Say what keeps answers from being a permutation of a grid, if anything.

    Parameters
    ----------
    columns : list of (name, (num_pids,) int array, stride, extent)
        Coordinates of the answer; the tile is the sum of ``value * stride``.
    grid : Grid
    num_xcds : int
        For the message.

    Returns
    -------
    Counterexample or None
    """
    inside = np.ones(grid.num_pids, bool)
    for _, values, _, extent in columns:
        inside &= (values >= 0) & (values < extent)
    tiles = np.zeros(grid.num_pids, np.int64)
    for _, values, stride, _ in columns:
        tiles += np.where(inside, values, 0).astype(np.int64) * stride
    computed = np.zeros(grid.num_pids, bool)
    computed[tiles[inside]] = True
    distinct = int(computed.sum())
    if distinct == grid.num_pids:
        return None
    missing = int(np.argmin(computed))
    gaps = f"{_missing_text(computed)} computed by nobody {where_text(grid, num_xcds)}"
    gaps += f"; {distinct} of {grid.num_pids} tiles are computed"
    if not inside.all():
        pid = int(np.argmin(inside))
        name, values, _, extent = next(one for one in columns if not 0 <= one[1][pid] < one[3])
        message = f"pid {pid} computes {name} = {values[pid]}, outside 0..{extent - 1}; {gaps}"
        return Counterexample("out-of-range", message, (pid,), None, missing, distinct)
    first = np.unique(tiles, return_index=True)[1]
    again = np.ones(grid.num_pids, bool)
    again[first] = False
    clash = int(np.argmax(again))
    tile = int(tiles[clash])
    owner = int(np.argmax(tiles == tile))
    message = f"pid {clash} and pid {owner} both compute tile {tile}; {gaps}"
    return Counterexample("collision", message, (clash, owner), tile, missing, distinct)


def _missing_text(computed: np.ndarray) -> str:
    first = int(np.argmin(computed))
    after = computed[first:]
    length = int(np.argmax(after)) if after.any() else len(after)
    others = int((~computed).sum()) - length
    named = f"tiles {first}..{first + length - 1}" if length > 1 else f"tile {first}"
    if others:
        return f"{named} and {others} others are"
    return f"{named} are" if length > 1 else f"{named} is"
