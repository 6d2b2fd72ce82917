"""The proposer that reads and writes: a language model through DSPy, with the simulator as its judge.

The names below are the Python API; they are imported on first use, so that ``import agent`` needs no DSPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.cascade import Cascade, Judgement
    from agent.inputs import Inputs
    from agent.loop import propose
    from agent.repeat import repeat_run
    from agent.settings import Settings
    from agent.study import Study, run_study
    from agent.transcript import Exchange, Transcript
    from agent.tune import tune_prompt
    from agent.verifiable import reward

_HOME = {
    "Cascade": "agent.cascade",
    "Exchange": "agent.transcript",
    "Inputs": "agent.inputs",
    "Judgement": "agent.cascade",
    "Settings": "agent.settings",
    "Study": "agent.study",
    "Transcript": "agent.transcript",
    "propose": "agent.loop",
    "repeat_run": "agent.repeat",
    "reward": "agent.verifiable",
    "run_study": "agent.study",
    "tune_prompt": "agent.tune",
}

__all__ = [
    "Cascade",
    "Exchange",
    "Inputs",
    "Judgement",
    "Settings",
    "Study",
    "Transcript",
    "propose",
    "repeat_run",
    "reward",
    "run_study",
    "tune_prompt",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
