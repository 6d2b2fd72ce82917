"""The experiment: kernels, swizzles, their scores, and the search for better ones.

The names below are the Python API; they are imported on first use, so that ``import swizzle_sim`` stays light.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.capture.describe import describe
    from swizzle_sim.capture.user_kernel import kernel
    from swizzle_sim.display import Picture, show_map
    from swizzle_sim.history import Attempt, History
    from swizzle_sim.kernels import Kernel, kernel_names
    from swizzle_sim.recorder import record
    from swizzle_sim.release import version
    from swizzle_sim.scores import Score
    from swizzle_sim.scoring import Scorer, score
    from swizzle_sim.search import Run, optimize
    from swizzle_sim.swizzle import Grid, Swizzle, Verdict, emit_hip, emit_triton, family, verify
    from swizzle_sim.tuning.what_if import what_if
    from xcd_model import Gpu, gpu, gpu_names
    from xcd_model.errors import NotBijective, SwizzleSimError

_HOME = {
    "Attempt": "swizzle_sim.history",
    "Gpu": "xcd_model.spec.gpu",
    "Grid": "swizzle_sim.swizzle",
    "History": "swizzle_sim.history",
    "Kernel": "swizzle_sim.kernels",
    "NotBijective": "xcd_model.errors",
    "Picture": "swizzle_sim.display",
    "Run": "swizzle_sim.search",
    "Score": "swizzle_sim.scores",
    "Scorer": "swizzle_sim.scoring",
    "Swizzle": "swizzle_sim.swizzle",
    "SwizzleSimError": "xcd_model.errors",
    "Verdict": "swizzle_sim.swizzle",
    "describe": "swizzle_sim.capture.describe",
    "emit_hip": "swizzle_sim.swizzle",
    "emit_triton": "swizzle_sim.swizzle",
    "family": "swizzle_sim.swizzle",
    "gpu": "xcd_model.spec.load",
    "gpu_names": "xcd_model.spec.load",
    "kernel": "swizzle_sim.capture.user_kernel",
    "kernel_names": "swizzle_sim.kernels",
    "optimize": "swizzle_sim.search",
    "record": "swizzle_sim.recorder",
    "score": "swizzle_sim.scoring",
    "show_map": "swizzle_sim.display",
    "verify": "swizzle_sim.swizzle",
    "version": "swizzle_sim.release",
    "what_if": "swizzle_sim.tuning.what_if",
}

__all__ = [
    "Attempt",
    "Gpu",
    "Grid",
    "History",
    "Kernel",
    "NotBijective",
    "Picture",
    "Run",
    "Score",
    "Scorer",
    "Swizzle",
    "SwizzleSimError",
    "Verdict",
    "describe",
    "emit_hip",
    "emit_triton",
    "family",
    "gpu",
    "gpu_names",
    "kernel",
    "kernel_names",
    "optimize",
    "record",
    "score",
    "show_map",
    "verify",
    "version",
    "what_if",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


if (_shell := getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()) is not None:  # in a notebook
    from swizzle_sim.display.notebook import register

    register(_shell)
