"""For people who have a swizzle in their own repository: prove it in their own tests.

``assert_bijective`` takes a Python function, a text of the language, or a ``@triton.jit`` function in a file;
``assert_hit_rate`` holds a kernel's simulated L2 hit rate above a floor;
``grids``, ``gpus`` and ``swizzles`` are hypothesis strategies (extra ``testing``). A pytest plugin and
``swizzle-sim check`` build on the same. The names are imported on first use: pytest loads this package in every run.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.testing.bijective import BijectionError, assert_bijective
    from swizzle_sim.testing.candidate import Candidate, as_candidate
    from swizzle_sim.testing.grids_to_try import Point
    from swizzle_sim.testing.hit_rate import HitRateError, assert_hit_rate
    from swizzle_sim.testing.strategies import gpus, grids, swizzles
    from swizzle_sim.testing.trials import Outcome, try_points
    from swizzle_sim.triton_source.prologue import Prologue, read_prologue
    from xcd_model.errors import MissingExtra

_HOME = {
    "BijectionError": "swizzle_sim.testing.bijective",
    "Candidate": "swizzle_sim.testing.candidate",
    "HitRateError": "swizzle_sim.testing.hit_rate",
    "MissingExtra": "xcd_model.errors",
    "Outcome": "swizzle_sim.testing.trials",
    "Point": "swizzle_sim.testing.grids_to_try",
    "Prologue": "swizzle_sim.triton_source.prologue",
    "as_candidate": "swizzle_sim.testing.candidate",
    "assert_bijective": "swizzle_sim.testing.bijective",
    "assert_hit_rate": "swizzle_sim.testing.hit_rate",
    "gpus": "swizzle_sim.testing.strategies",
    "grids": "swizzle_sim.testing.strategies",
    "read_prologue": "swizzle_sim.triton_source.prologue",
    "swizzles": "swizzle_sim.testing.strategies",
    "try_points": "swizzle_sim.testing.trials",
}

__all__ = [
    "BijectionError",
    "Candidate",
    "HitRateError",
    "MissingExtra",
    "Outcome",
    "Point",
    "Prologue",
    "as_candidate",
    "assert_bijective",
    "assert_hit_rate",
    "gpus",
    "grids",
    "read_prologue",
    "swizzles",
    "try_points",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
