"""For people who have a swizzle in their own repository: prove it in their own tests.

``assert_bijective`` takes a Python function, a text of the language, or a ``@triton.jit`` function in a file;
``grids``, ``gpus`` and ``swizzles`` are hypothesis strategies (extra ``testing``). A pytest plugin and
``swizzle-sim check`` build on the same. The names are imported on first use: pytest loads this package in every run.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.testing.bijective import BijectionError, assert_bijective
    from swizzle_sim.testing.candidate import Candidate, as_candidate
    from swizzle_sim.testing.prologue import Prologue, read_prologue
    from swizzle_sim.testing.strategies import gpus, grids, swizzles
    from swizzle_sim.testing.trials import Outcome, Point, try_points
    from xcd_model.errors import MissingExtra

_HOME = {
    "BijectionError": "bijective",
    "Candidate": "candidate",
    "MissingExtra": "extra",
    "Outcome": "trials",
    "Point": "trials",
    "Prologue": "prologue",
    "as_candidate": "candidate",
    "assert_bijective": "bijective",
    "gpus": "strategies",
    "grids": "strategies",
    "read_prologue": "prologue",
    "swizzles": "strategies",
    "try_points": "trials",
}

__all__ = [
    "BijectionError",
    "Candidate",
    "MissingExtra",
    "Outcome",
    "Point",
    "Prologue",
    "as_candidate",
    "assert_bijective",
    "gpus",
    "grids",
    "read_prologue",
    "swizzles",
    "try_points",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
