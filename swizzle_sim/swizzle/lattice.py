"""Other grids on which a candidate is tried: the shapes that break remappings."""

from __future__ import annotations

from swizzle_sim.swizzle.grid import Grid

XCD_COUNTS = (1, 2, 3, 4, 6, 8)

# One workgroup, fewer than XCDs, primes, one off a multiple, multiples of 8 and 64, powers of two.
_LINES = (1, 2, 3, 5, 7, 8, 12, 16, 24, 31, 36, 48, 63, 64, 65, 72, 96, 97, 100, 120, 128, 144, 192, 216, 256, 257, 288)
# Skinny both ways, square and not, non-divisible, prime.
_PLANES = (
    *((1, 1), (1, 7), (7, 1), (1, 16), (16, 1), (2, 2), (2, 3), (3, 2), (3, 5), (5, 3), (4, 4), (4, 8), (8, 4)),
    *((6, 6), (7, 11), (8, 8), (8, 9), (9, 8), (12, 12), (13, 13), (8, 16), (16, 8), (16, 16), (24, 8), (8, 24)),
    *((5, 16), (16, 5), (32, 4), (4, 32), (17, 16), (16, 17)),
)
_BOXES = (
    *((1, 1, 1), (1, 1, 7), (1, 7, 1), (7, 1, 1), (2, 2, 2), (2, 3, 5), (5, 3, 2), (4, 4, 4), (3, 3, 3)),
    *((8, 2, 2), (2, 8, 2), (2, 2, 8), (8, 8, 2), (8, 8, 8), (4, 8, 6), (7, 5, 3), (6, 4, 4), (16, 4, 1), (1, 8, 16)),
)


def lattice_like(grid: Grid) -> list[Grid]:
    """Return small grids of the same kind as ``grid``: as many axes, tiles where it has tiles."""
    if grid.tiles:
        return [Grid((m * n,), (m, n)) for m, n in _PLANES]
    if len(grid.launch) == 1:
        return [Grid((n,)) for n in _LINES]
    return [Grid(sides) for sides in (_PLANES if len(grid.launch) == 2 else _BOXES)]
