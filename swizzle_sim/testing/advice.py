"""The comment that a function needs which is skipped: what the user adds to have it checked."""

from __future__ import annotations

import re

from swizzle_sim.testing.files import Target
from xcd_model.errors import SwizzleSimError

_NO_VALUE = re.compile(r"(?:^|: )([\w, ]+?) (?:has|have) no value")


def advice_of(target: Target, error: SwizzleSimError) -> str:
    """Line to add above a function, or around statements of it, after what stopped its reading."""
    begin = "//" if target.path.suffix != ".py" else "#"
    message = str(error)
    missing = _NO_VALUE.search(message)
    if missing:
        names = [name.strip() for name in missing.group(1).split(",")]
        return f"{begin} swizzle: " + " ".join(f"{name}=..." for name in names)
    if "grids=" in message:
        return f"{begin} swizzle: grids=..., the launch that the constants of the file are for"
    if "tiles=" in message:
        return f"{begin} swizzle: tiles=..., one count for each coordinate"
    if "say which names" in message:
        return f"{begin} swizzle: answer=..., the names that hold the tile"
    return f"{begin} swizzle: begin pid=..., and {begin} swizzle: end, around the lines that compute the tile"
