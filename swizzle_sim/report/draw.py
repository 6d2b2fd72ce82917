"""The pictures of one run: replays the baseline and the best swizzle, and draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swizzle_sim.history import Attempt
from swizzle_sim.report.figures import best_so_far, over_time, per_xcd, png, xcd_map
from swizzle_sim.scoring import Score, Scorer
from swizzle_sim.swizzle import Grid, Swizzle
from xcd_model.dispatch import xcd_of

RIBBON = 64  # tiles a line where a grid has one axis


@dataclass(frozen=True, eq=False)
class Pictures:
    """PNG files by name, and whether the replays behind them still give the stored hit rate.

    Parameters
    ----------
    files : dict of str to bytes
    reproduced : bool
        False where this version counts otherwise than the one that made the run.
    """

    files: dict[str, bytes]
    reproduced: bool


def draw(scorer: Scorer, attempts: Sequence[Attempt], baseline: Score, best: Attempt, best_score: Score) -> Pictures:
    """Draw the four pictures of a run.

    Parameters
    ----------
    scorer : Scorer
    attempts : sequence of Attempt
    baseline : Score
    best : Attempt
    best_score : Score
        Of ``best``.

    Returns
    -------
    pictures : Pictures
    """
    kernel, gpu = scorer.kernel, scorer.gpu
    order = scorer.permutation(Swizzle.parse(best.source))
    as_launched = np.arange(kernel.grid.num_pids)
    before, after = scorer.traffic(as_launched), scorer.traffic(order)
    xcd = xcd_of(kernel.grid.num_pids, gpu, kernel.programs)
    maps = [tile_map(kernel.grid, xcd, one) for one in (as_launched, order)]
    figures = {
        "map.png": xcd_map(*maps, title="XCD of each tile", num_xcds=gpu.xcds, ribbon=_is_ribbon(kernel.grid)),
        "progress.png": best_so_far(attempts, baseline.l2_hit_rate, baseline.bound_l2_hit_rate),
        "over_time.png": over_time(before, after),
        "per_xcd.png": per_xcd(baseline, best_score),
    }
    same = (before.l2_hit_rate, after.l2_hit_rate) == (baseline.l2_hit_rate, best_score.l2_hit_rate)
    note = f"simulated, {scorer.replay} replay"
    return Pictures({name: png(figure, note=note) for name, figure in figures.items()}, same)


def tile_map(grid: Grid, xcd: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Lay the XCD of each tile out as the tiles lie.

    Parameters
    ----------
    grid : Grid
    xcd : (num_pids,) int array
        XCD of each hardware id.
    order : (num_pids,) int array
        Tile that each hardware id computes.

    Returns
    -------
    tiles : (num_pid_m, num_pid_n) int array
        For a grid without two tile axes, lines of `RIBBON` tiles, the last filled up with -1.
    """
    of_tile = np.empty(grid.num_pids, np.int64)
    of_tile[order] = xcd
    if _is_ribbon(grid):
        width = min(RIBBON, grid.num_pids)
        filled = np.full(-(-grid.num_pids // width) * width, -1)
        filled[: grid.num_pids] = of_tile
        return filled.reshape(-1, width)
    if grid.tiles:
        return of_tile.reshape(grid.tiles)
    # a two-dimensional launch counts x, which is pid_m, fastest
    return of_tile.reshape(grid.launch[1], grid.launch[0]).T


def _is_ribbon(grid: Grid) -> bool:
    return grid.shape is None or 1 in grid.shape
