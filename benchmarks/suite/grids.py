"""Other grids of a suite kernel, to check a candidate over: prime, skinny, ragged, fewer than XCDs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from swizzle_sim.swizzle.grid import Grid

ROWS = (1, 2, 3, 7, 8, 9, 13, 16, 31, 37, 64, 100, 127, 256, 304)
TILES = (
    (1, 1),
    (1, 5),
    (3, 1),
    (2, 2),
    (4, 4),
    (4, 8),
    (7, 5),
    (8, 8),
    (5, 16),
    (13, 3),
    (11, 11),
    (16, 16),
    (32, 2),
    (37, 1),
)

Sizes = Mapping[str, int]


def rows(problem: Sizes, size: str, block: str | None = None) -> Iterable[tuple[Grid, Sizes]]:
    """One-dimensional grids: ``size`` a whole number of blocks, and one item less where that leaves as many blocks."""
    each = problem[block] if block else 1
    for n in ROWS:
        for cut in (0, 1) if each > 1 else (0,):
            yield Grid((n,)), {**problem, size: n * each - cut}


def tiles(problem: Sizes, sizes: tuple[str, str], blocks: tuple[str, str]) -> Iterable[tuple[Grid, Sizes]]:
    """Two-dimensional grids, as `rows` along both axes."""
    each = problem[blocks[0]], problem[blocks[1]]
    for m, n in TILES:
        for cut in (0, 1) if min(each) > 1 else (0,):
            yield Grid((m, n)), {**problem, sizes[0]: m * each[0] - cut, sizes[1]: n * each[1] - cut}
