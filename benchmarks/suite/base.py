"""What every kernel of the suite is built from: allowed sizes, other grids to check a candidate over, and occupancy.

Sizes are those whose blocks Triton takes, whose offsets fit 32 bits, and whose traces can be replayed. Occupancy has a
compiler's figures where there are any, else figures scaled from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from swizzle_sim.language.grid import Grid
from xcd_model import Resources
from xcd_model.errors import SizeError

MAX_TILE_ITEMS = 1 << 20  # Triton's limit on the items of one tensor
MAX_OFFSET = 2**31 - 1  # the kernels compute offsets in 32-bit integers
MAX_WORKGROUPS = 1 << 20
MAX_INSTRUCTIONS = 1 << 25  # tensor instructions of all workgroups: half a GiB of trace
MAX_TOUCHES = 8e9  # line touches: about a minute of plain replay


def check_block(kernel: str, *, most: int = 4096, **blocks: int) -> None:
    """Refuse blocks that ``tl.arange`` cannot make, or that no workgroup can hold.

    Raises
    ------
    SizeError
        If a block is no power of two from 1 to ``most``, or a tile has more than `MAX_TILE_ITEMS`.
    """
    items = 1
    for name, block in blocks.items():
        if block & (block - 1) or not 1 <= block <= most:
            raise SizeError(f"{kernel}: {name} = {block}: a block is a power of two from 1 to {most} (tl.arange)")
        items *= block
    if items > MAX_TILE_ITEMS:
        raise SizeError(f"{kernel}: {blocks} is a tile of {items} items; Triton takes at most {MAX_TILE_ITEMS}")


def check_items(kernel: str, what: str, n_items: int) -> None:
    """Refuse an array that 32-bit offsets do not reach.

    Raises
    ------
    SizeError
    """
    if n_items > MAX_OFFSET:
        raise SizeError(
            f"{kernel}: {what} has {n_items} items; the kernel's offsets are 32-bit, so at most {MAX_OFFSET}"
        )


def check_traceable(kernel: str, *, workgroups: int, instructions: float, touches: float) -> None:
    """Refuse a launch too large to trace and replay.

    Parameters
    ----------
    kernel : str
    workgroups : int
    instructions, touches : float
        Tensor instructions and line touches of all workgroups, about.

    Raises
    ------
    SizeError
    """
    if workgroups > MAX_WORKGROUPS or instructions > MAX_INSTRUCTIONS or touches > MAX_TOUCHES:
        raise SizeError(
            f"{kernel}: {workgroups} workgroups with {instructions:.1e} tensor instructions and about {touches:.1e} "
            f"line touches; the limits are {MAX_WORKGROUPS}, {MAX_INSTRUCTIONS:.1e} and {MAX_TOUCHES:.0e}: use a "
            "smaller problem or larger blocks"
        )


LINE_BYTES = 128  # for estimates of a trace's size only


def check_dot_block(kernel: str, *, most: int = 1024, **blocks: int) -> None:
    """Refuse blocks that ``tl.dot`` cannot multiply.

    Raises
    ------
    SizeError
        If a block is no power of two from 16 to ``most``.
    """
    for name, block in blocks.items():
        if block & (block - 1) or not 16 <= block <= most:
            raise SizeError(
                f"{kernel}: {name} = {block}: a power of two from 16 to {most}, as tl.dot and tl.arange need"
            )


def lines_of(rows: float, items: int, item_bytes: int = 2) -> float:
    """Lines that a tile covers, about: each row begins a line."""
    return rows * -(-items * item_bytes // LINE_BYTES)


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


def row_grids(problem: Sizes, size: str, block: str | None = None) -> Iterable[tuple[Grid, Sizes]]:
    """One-dimensional grids: ``size`` a whole number of blocks, and one item less where that leaves as many blocks."""
    each = problem[block] if block else 1
    for n in ROWS:
        for cut in (0, 1) if each > 1 else (0,):
            yield Grid((n,)), {**problem, size: n * each - cut}


def tile_grids(problem: Sizes, sizes: tuple[str, str], blocks: tuple[str, str]) -> Iterable[tuple[Grid, Sizes]]:
    """Two-dimensional grids, as `row_grids` along both axes."""
    each = problem[blocks[0]], problem[blocks[1]]
    for m, n in TILES:
        for cut in (0, 1) if min(each) > 1 else (0,):
            yield Grid((m, n)), {**problem, sizes[0]: m * each[0] - cut, sizes[1]: n * each[1] - cut}


COMPILER = "compiled for gfx942 with Triton 3.9"
WAVE_SIZE = 64
FEWEST_VGPRS, MOST_VGPRS = 16, 512

Tile = tuple[int, ...]


def resources(
    compiled: Mapping[tuple[Tile, int], tuple[int, ...]],
    tile: Tile,
    *,
    num_warps: int,
    in_flight: int,
    loads_per_step: int = 0,
) -> Resources:
    """Resources of one workgroup.

    Parameters
    ----------
    compiled : mapping of (tile, num_warps) to (VGPRs, LDS bytes) or (VGPRs, LDS bytes, code bytes)
        What the compiler reported.
    tile : tuple of int
        Block along each axis.
    num_warps : int
    in_flight : int
        Tensor instructions that are issued before the first of them is waited for.
    loads_per_step : int
        Of a pipelined loop, see `xcd_model.Resources`.

    Returns
    -------
    Resources
        For a tile that nobody compiled, the figures of the compiled tile nearest in items a thread, in proportion.
    """
    if (tile, num_warps) in compiled:
        (vgprs, lds, *code), source = compiled[tile, num_warps], COMPILER
    else:
        load = np.prod(tile) / num_warps
        near = min(compiled, key=lambda known: abs(np.log(np.prod(known[0]) / known[1] / load)))
        vgprs = int(np.clip(np.ceil(compiled[near][0] * load * near[1] / np.prod(near[0])), FEWEST_VGPRS, MOST_VGPRS))
        lds = int(np.ceil(compiled[near][1] * np.prod(tile) / np.prod(near[0])))
        code = list(compiled[near][2:])
        source = f"estimated: in proportion to the tile {'x'.join(map(str, near[0]))} on {near[1]} waves, {COMPILER}"
    return Resources(
        threads=num_warps * WAVE_SIZE,
        vgprs=vgprs,
        lds_bytes=lds,
        instructions_in_flight=in_flight,
        source=source,
        code_bytes=sum(code),
        loads_per_step=loads_per_step,
    )
