"""A map of XCDs as a small PNG, one pixel a tile, and the colours of more XCDs than there are colours."""

from __future__ import annotations

import io

import numpy as np

from swizzle_sim.report.colours import XCDS

PALER = 0.45  # from the ninth XCD on, the colours come again with so much white in them, or black from the 17th on


def xcd_colour(xcd: int) -> str:
    """Colour of an XCD as ``#rrggbb``: the eight of the reports, then paler ones, then darker ones."""
    colour, turn = XCDS[xcd % len(XCDS)], xcd // len(XCDS) % 3
    if turn == 0:
        return colour
    to = 255 if turn == 1 else 0
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (to - part) * PALER):02x}" for part in parts)


def map_png(xcd: np.ndarray, num_xcds: int) -> bytes:
    """PNG of a map.

    Parameters
    ----------
    xcd : (rows, columns) int array
        XCD of each tile; -1 is transparent.
    num_xcds : int
        At most 255.

    Returns
    -------
    data : bytes
        One pixel a tile, to be scaled up without smoothing.
    """
    from PIL import Image  # noqa: PLC0415  (the process that serves the page draws nothing until it is asked)

    image = Image.fromarray(np.where(xcd < 0, num_xcds, xcd).astype(np.uint8))
    image.putpalette([int(xcd_colour(x)[i : i + 2], 16) for x in range(num_xcds + 1) for i in (1, 3, 5)])
    stream = io.BytesIO()
    image.save(stream, format="png", transparency=num_xcds)
    return stream.getvalue()
