"""Hierarchical orders: space-filling curves, blocks with an order inside each, and boxes of three dimensions.

Curves are Morton and Hilbert order on any grid: the enclosing curve without the cells outside. Each level halves the
current cell along every axis. Both halves hold a known number of tiles inside the grid, so the remaining rank decides
the half: no table, no search, one step per bit. The loop is therefore exact on prime and skinny grids, where
interleaving the bits of ``pid`` would leave the grid.

Blocks and boxes at the far edges are clipped, so those walks are exact on any grid too. Behind `contiguous` a block of
num_pids / num_xcds tiles is the share of one XCD; behind `chunked` it is a chunk. A box one tile deep is a tile of one
plane (a GEMM of a batch), a box as deep as the grid is a pillar (a stencil that marches along z).
"""

from __future__ import annotations

from swizzle_sim.language.families.placement import Family, Parameter

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


def _morton_text(first_m: str, first_n: str, rows: str, cols: str, rank: str) -> str:
    """Text of ``morton`` on a part of the grid; each argument is an expression of the language."""
    return _prefix(first_m, first_n, rows, cols, rank) + _MORTON


def _morton() -> str:
    return _morton_text(*_WHOLE)


def _hilbert() -> str:
    return _prefix(*_WHOLE) + _HILBERT


def _block(rows: int, cols: int) -> str:
    """Text that finds the block of ``pid``: its size ``high`` x ``wide`` tiles, and the ``rank`` of ``pid`` in it."""
    return f"""\
height = min({rows}, num_pid_m)
width = min({cols}, num_pid_n)
band_pids = height * num_pid_n
first_m = pid // band_pids * height
high = min(num_pid_m - first_m, height)
rank = pid % band_pids
block_pids = high * width
first_n = rank // block_pids * width
wide = min(num_pid_n - first_n, width)
rank = rank % block_pids
"""


def _blocks(rows: int, cols: int, size: int) -> str:
    return (
        _block(rows, cols)
        + f"""\
group = min({size}, high)
group_pids = group * wide
skipped = rank // group_pids * group
length = min(high - skipped, group)
step = rank % group_pids
pid_m = first_m + skipped + step % length
pid_n = first_n + step // length
"""
    )


def _morton_blocks(rows: int, cols: int) -> str:
    return _block(rows, cols) + _morton_text("first_m", "first_n", "high", "wide", "rank")


def _boxes(x: int, y: int, z: int) -> str:
    return f"""\
thick = min({z}, num_pid_z)
slab_pids = thick * num_pid_x * num_pid_y
first_z = pid // slab_pids * thick
deep = min(num_pid_z - first_z, thick)
rank = pid % slab_pids
height = min({y}, num_pid_y)
band_pids = height * num_pid_x * deep
first_y = rank // band_pids * height
high = min(num_pid_y - first_y, height)
rank = rank % band_pids
width = min({x}, num_pid_x)
box_pids = width * high * deep
first_x = rank // box_pids * width
wide = min(num_pid_x - first_x, width)
rank = rank % box_pids
pid_x = first_x + rank % wide
pid_y = first_y + rank // wide % high
pid_z = first_z + rank // (wide * high)
"""


def _morton_3d() -> str:
    # As `_MORTON`, with a third halving: the counts of tiles inside the grid determine the half of a rank.
    return """\
side = max(num_pid_x, num_pid_y, num_pid_z) - 1
bits = 0
for i in range(5):
    jump = 16 >> i
    if (side >> (bits + jump)) > 0:
        bits = bits + jump
rank = pid
pid_x = 0
pid_y = 0
pid_z = 0
wide = num_pid_x
high = num_pid_y
deep = num_pid_z
for level in range(bits + 1):
    half = 1 << (bits - level)
    near = min(deep, half)
    upper = rank >= near * high * wide
    rank = rank - upper * near * high * wide
    pid_z = pid_z + upper * half
    deep = deep - near if upper else near
    near = min(high, half)
    lower = rank >= deep * near * wide
    rank = rank - lower * deep * near * wide
    pid_y = pid_y + lower * half
    high = high - near if lower else near
    near = min(wide, half)
    right = rank >= deep * high * near
    rank = rank - right * deep * high * near
    pid_x = pid_x + right * half
    wide = wide - near if right else near
"""


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

ROWS = Parameter(16, 1, 65536, "rows of tiles in a block")
COLS = Parameter(16, 1, 65536, "columns of tiles in a block")

BLOCKS = (
    Family(
        name="blocks",
        summary="Blocks of `rows` x `cols` tiles, inside each bands of `size` rows walked column by column.",
        text=_blocks,
        source="two-level order of hipBLASLt (WGM inside an XCD's part) and Triton tutorial 03 (GROUP_SIZE_M)",
        parameters={"rows": ROWS, "cols": COLS, "size": Parameter(4, 1, 65536, "rows of tiles in a band")},
        axes=2,
    ),
    Family(
        name="morton_blocks",
        summary="Blocks of `rows` x `cols` tiles, inside each Z order; clipped to the grid.",
        text=_morton_blocks,
        source="Morton, IBM technical report, 1966, inside blocks",
        parameters={"rows": ROWS, "cols": COLS},
        axes=2,
    ),
)

BOXES = (
    Family(
        name="boxes",
        summary="Boxes of `x` x `y` x `z` workgroups, x fastest inside a box and from box to box; clipped to the grid.",
        text=_boxes,
        source="3-D blocking of stencils (Rivera and Tseng, SC 2000)",
        parameters={
            "x": Parameter(4, 1, 65536, "workgroups of a box along x"),
            "y": Parameter(4, 1, 65536, "workgroups of a box along y"),
            "z": Parameter(4, 1, 65536, "workgroups of a box along z"),
        },
        axes=3,
    ),
    Family(
        name="morton_3d",
        summary="Z order in three dimensions: eighths of eighths; clipped to the grid.",
        text=_morton_3d,
        source="Morton, IBM technical report, 1966",
        axes=3,
    ),
)
