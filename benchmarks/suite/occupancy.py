"""What a workgroup of a compiled kernel occupies: figures of a compiler where there are any, else scaled from them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from xcd_model import Resources

COMPILER = "compiled for gfx942 with Triton 3.9"
WAVE_SIZE = 64
FEWEST_VGPRS, MOST_VGPRS = 16, 512

Tile = tuple[int, ...]


def resources(
    compiled: Mapping[tuple[Tile, int], tuple[int, ...]], tile: Tile, *, num_warps: int, in_flight: int
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
    )
