"""The report of a run: ``report.html``, its pictures, and the best swizzle as text, Triton and HIP.

Names are imported on first use: a notebook's printers are in this room too, and ``import swizzle_sim`` must stay light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.report.display.picture import png
    from swizzle_sim.report.figures import best_so_far, over_time, per_xcd, xcd_map
    from swizzle_sim.report.write import write_best, write_report

__all__ = ["best_so_far", "over_time", "per_xcd", "png", "write_best", "write_report", "xcd_map"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "display.picture" if name == "png" else "write" if name.startswith("write") else "figures"
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
