"""Morton and Hilbert order on any grid: the enclosing curve, with the cells outside left out.

Each level halves the current cell twice. Its two halves hold a known number of tiles inside the grid, so the
remaining rank says which half it falls into: no table, no search, one step per bit. The loop therefore stays exact
on prime and skinny grids, where interleaving the bits of ``pid`` would leave the grid.
"""

from __future__ import annotations

from swizzle_sim.swizzle.families.nouns import Family

# floor(log2(longest side - 1)) is found by bisection: five steps instead of thirty-one.


def _prefix(first_m: str, first_n: str, rows: str, cols: str, rank: str) -> str:
    """Names of the loops below, for the cells of ``rows`` x ``cols`` tiles from ``(first_m, first_n)``."""
    return f"""\
rows = {rows}
cols = {cols}
rank = {rank}
pid_m = {first_m}
pid_n = {first_n}
side = max(rows, cols) - 1
bits = 0
for i in range(5):
    jump = 16 >> i
    if (side >> (bits + jump)) > 0:
        bits = bits + jump
"""


_WHOLE = ("0", "0", "num_pid_m", "num_pid_n", "pid")

_MORTON = """\
for level in range(bits + 1):
    half = 1 << (bits - level)
    near = min(rows, half)
    lower = rank >= near * cols
    rank = rank - lower * near * cols
    pid_m = pid_m + lower * half
    rows = rows - near if lower else near
    near = min(cols, half)
    right = rank >= rows * near
    rank = rank - right * rows * near
    pid_n = pid_n + right * half
    cols = cols - near if right else near
"""

# `swap`: the first split is along columns. `flip`: the upper half comes first. Quarters 0 and 3 turn the curve.
_HILBERT = """\
swap = 0
flip = 0
for level in range(bits + 1):
    half = 1 << (bits - level)
    length = cols if swap else rows
    width = rows if swap else cols
    near = min(length, half)
    first = (length - near if flip else near) * width
    second = rank >= first
    rank = rank - second * first
    up = second ^ flip
    length = length - near if up else near
    near = min(width, half)
    first = (width - near if up else near) * length
    last = rank >= first
    rank = rank - last * first
    over = last ^ up
    width = width - near if over else near
    pid_m = pid_m + (over if swap else up) * half
    pid_n = pid_n + (up if swap else over) * half
    rows = width if swap else length
    cols = length if swap else width
    if second == last:
        swap = 1 - swap
        flip = flip ^ last
"""


def morton_text(first_m: str, first_n: str, rows: str, cols: str, rank: str) -> str:
    """Text of ``morton`` on a part of the grid; each argument is an expression."""
    return _prefix(first_m, first_n, rows, cols, rank) + _MORTON


def _morton() -> str:
    return morton_text(*_WHOLE)


def _hilbert() -> str:
    return _prefix(*_WHOLE) + _HILBERT


CURVES = (
    Family(
        name="morton",
        summary="Z order: quarters of quarters, each row by row; clipped to the grid.",
        text=_morton,
        source="Morton, IBM technical report, 1966",
        axes=2,
    ),
    Family(
        name="hilbert",
        summary="Hilbert curve: as Z order, but turned so that consecutive tiles touch; clipped to the grid.",
        text=_hilbert,
        source="Hilbert, Math. Annalen 38, 1891; AMD tessera sweep (its cousin GILBERT)",
        axes=2,
    ),
)
