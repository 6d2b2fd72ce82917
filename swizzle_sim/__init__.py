"""The experiment: kernels, swizzles, their scores, and the search for better ones.

The names below are the Python API; they are imported on first use, so that ``import swizzle_sim`` stays light.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.base.release import version
    from swizzle_sim.capture.describe import describe
    from swizzle_sim.capture.recorder import record
    from swizzle_sim.capture.user_kernel import kernel
    from swizzle_sim.language import Grid, Swizzle, Verdict, emit_hip, emit_triton, family, verify
    from swizzle_sim.pricing.scores import Score
    from swizzle_sim.pricing.scoring import Scorer, score
    from swizzle_sim.report.display.picture import Picture, show_map
    from swizzle_sim.search.history import Attempt, History
    from swizzle_sim.search.loop import Run
    from swizzle_sim.search.strategies.families import optimize
    from swizzle_sim.search.what_if import what_if
    from swizzle_sim.workload.kernels import Kernel, kernel_names
    from xcd_model import Gpu, gpu, gpu_names
    from xcd_model.errors import NotBijective, SwizzleSimError

_HOME = {
    "Attempt": "swizzle_sim.search.history",
    "Gpu": "xcd_model.spec.gpu",
    "Grid": "swizzle_sim.language",
    "History": "swizzle_sim.search.history",
    "Kernel": "swizzle_sim.workload.kernels",
    "NotBijective": "xcd_model.errors",
    "Picture": "swizzle_sim.report.display.picture",
    "Run": "swizzle_sim.search.loop",
    "Score": "swizzle_sim.pricing.scores",
    "Scorer": "swizzle_sim.pricing.scoring",
    "Swizzle": "swizzle_sim.language",
    "SwizzleSimError": "xcd_model.errors",
    "Verdict": "swizzle_sim.language",
    "describe": "swizzle_sim.capture.describe",
    "emit_hip": "swizzle_sim.language",
    "emit_triton": "swizzle_sim.language",
    "family": "swizzle_sim.language",
    "gpu": "xcd_model.spec.load",
    "gpu_names": "xcd_model.spec.load",
    "kernel": "swizzle_sim.capture.user_kernel",
    "kernel_names": "swizzle_sim.workload.kernels",
    "optimize": "swizzle_sim.search.strategies.families",
    "record": "swizzle_sim.capture.recorder",
    "score": "swizzle_sim.pricing.scoring",
    "show_map": "swizzle_sim.report.display.picture",
    "verify": "swizzle_sim.language",
    "version": "swizzle_sim.base.release",
    "what_if": "swizzle_sim.search.what_if",
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
    from swizzle_sim.report.display.notebook import register

    register(_shell)
