"""A launch with more workgroups than tiles: those without a tile return at once, the others compute each tile once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.language.verdict import Budget, Counterexample, where_text
from swizzle_sim.language.vm import run
from swizzle_sim.testing.expression import refuse_more, value_of
from swizzle_sim.testing.grids_to_try import Point


def padded_counterexample(
    tile: Swizzle,
    surplus: Swizzle,
    tiles: Sequence[str],
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int],
    budget: Budget | None = None,
) -> Counterexample | None:
    """Counterexample where the workgroups that do not return miss a tile or share one; None if they do not."""
    refuse_more(grid)
    n_tiles = math.prod(value_of(side, grid, num_xcds, sizes) for side in tiles)
    where = where_text(grid, num_xcds)
    returns, found = (run(one.program, grid, num_xcds, sizes, budget) for one in (surplus, tile))
    for execution in (returns, found):
        if execution.fault:
            fault = execution.fault
            return Counterexample(
                fault.code, f"line {fault.line}: {fault.code} at pid {fault.pid} {where}", (fault.pid,), line=fault.line
            )
    pids = np.flatnonzero(returns.ids == 0)
    computed = found.ids[pids]
    outside = np.flatnonzero((computed < 0) | (computed >= n_tiles))
    if outside.size:
        pid = int(pids[outside[0]])
        return Counterexample(
            "out-of-range", f"pid {pid} computes no tile of the {n_tiles}, and does not return {where}", (pid,)
        )
    times = np.bincount(computed, minlength=n_tiles)
    if (times == 1).all():
        return None
    distinct, missing = int((times > 0).sum()), np.flatnonzero(times == 0)
    said = f"{distinct} of {n_tiles} tiles are computed {where}"
    if missing.size:
        said = f"tile {missing[0]} is computed by nobody; {said}"
    twice = np.flatnonzero(times > 1)
    if twice.size:
        first, second = (int(pid) for pid in pids[computed == twice[0]][:2])
        said = f"pid {second} and pid {first} both compute tile {twice[0]}; {said}"
        return Counterexample(
            "collision", said, (first, second), int(twice[0]), int(missing[0]) if missing.size else None, distinct
        )
    return Counterexample("missing", said, (), None, int(missing[0]), distinct)


def wasted(tiles: Sequence[str], points: Sequence[Point], sizes: Mapping[str, int]) -> str:
    """How many workgroups have no tile, in words: of the launch with the largest share of them."""
    given = [[value_of(one, at.grid, at.num_xcds, {**sizes, **at.sizes}) for one in tiles] for at in points]
    grids = [at.grid.num_pids for at in points]
    share, most = max((1 - math.prod(sides) / n, n) for sides, n in zip(given, grids, strict=True))
    return f"up to {round(share * most)} of {most} workgroups have no tile" if share else ""
