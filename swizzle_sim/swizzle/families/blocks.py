"""Two-level orders: the tile grid in blocks, and an order inside each block.

Behind `contiguous` a block of num_pids / num_xcds tiles is what one XCD gets; behind `chunked` it is a chunk. Blocks
at the far edges are clipped, so the walk is exact on any grid.
"""

from __future__ import annotations

from swizzle_sim.swizzle.families.curves import morton_text
from swizzle_sim.swizzle.families.nouns import Family, Parameter


def _block(rows: int, cols: int) -> str:
    """Text that says in which block, of which size, ``pid`` lies: ``rank`` in it, ``high`` x ``wide`` tiles."""
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
    return _block(rows, cols) + morton_text("first_m", "first_n", "high", "wide", "rank")


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
