"""The llm proposer: language models through DSPy write swizzles, and the simulator judges them.

The names below are the Python API; they are imported on first use, so that importing the package needs no DSPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swizzle_sim.report.bottleneck import bottleneck_report

    from .loop import propose, repeat_run
    from .settings import Inputs, Settings
    from .transcript import Exchange, Transcript
    from .tune import tune_prompt
    from .verifiable import reward, rewards

_HOME = {
    "Exchange": "transcript",
    "Inputs": "settings",
    "Settings": "settings",
    "Transcript": "transcript",
    "bottleneck_report": "swizzle_sim.report.bottleneck",
    "propose": "loop",
    "repeat_run": "loop",
    "reward": "verifiable",
    "rewards": "verifiable",
    "tune_prompt": "tune",
}

__all__ = [
    "Exchange",
    "Inputs",
    "Settings",
    "Transcript",
    "bottleneck_report",
    "propose",
    "repeat_run",
    "reward",
    "rewards",
    "tune_prompt",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    value = getattr(importlib.import_module(home if "." in home else f".{home}", __name__), name)
    globals()[name] = value
    return value
