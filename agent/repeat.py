"""`repeat_run`: a recorded run once more, from its transcript alone."""

from __future__ import annotations

import json
from pathlib import Path

from agent.inputs import Inputs
from agent.loop import INPUTS, OnStep, propose
from agent.settings import Settings
from agent.transcript import Transcript
from swizzle_sim.history import History
from swizzle_sim.recorded import recorded_kernel
from swizzle_sim.search import Run
from xcd_model import Gpu
from xcd_model.errors import ModelError


def repeat_run(run: str | Path, folder: str | Path, *, on_step: OnStep | None = None) -> Run:
    """Repeat a recorded run, with no model and no network: same prompts, same attempts, same scores, to the byte.

    Parameters
    ----------
    run : path
        Folder of a run of the llm proposer.
    folder : path
        Run folder to make.
    on_step : callable, optional

    Returns
    -------
    Run

    Raises
    ------
    RunError
        If there is no such run, or this version does not come to the same prompts.
    ModelError
        With code ``not-llm`` if the run was made by another proposer.
    """
    with History(Path(run)) as history:
        about = history.about
    if "settings" not in about:
        raise ModelError(f"{run}: made by another proposer than llm: there are no replies to repeat", code="not-llm")
    settings = Settings.from_dict(about["settings"])
    with Transcript(Path(run)) as transcript:
        inputs = Inputs.from_dict(transcript.noted(INPUTS))
    return propose(
        recorded_kernel(about),
        Gpu.from_dict(json.loads(json.dumps(about["gpu_description"]))),
        folder,
        settings,
        inputs=inputs,
        replay=about["replay"],
        jitter_ns=about["jitter_ns"],
        repeat=Path(run),
        command=about["command"],
        on_step=on_step,
    )
