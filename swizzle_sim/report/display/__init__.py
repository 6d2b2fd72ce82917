"""Pictures and tables: colours, maps of tiles, and what notebooks show in place of long reprs.

Names are imported on first use: ``import swizzle_sim`` in a notebook registers printers, and must stay light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.report.display.picture import Picture, show_map

_HOME = {"Picture": "swizzle_sim.report.display.picture", "show_map": "swizzle_sim.report.display.picture"}

__all__ = ["Picture", "show_map"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
