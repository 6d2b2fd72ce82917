"""The propose program: DSPy's predictor for a signature, fresh or as `tune-prompt` saved it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent.extra import load_dspy
from xcd_model.errors import ModelError


def propose_program(*, image: bool, template: bool = False, state: dict[str, Any] | None = None) -> Any:
    """Predictor that proposes a swizzle, or a template.

    Parameters
    ----------
    image : bool
        Whether it takes a picture.
    template : bool
        Whether it answers with a template.
    state : mapping, optional
        As `read_program` gives it.

    Returns
    -------
    predict : dspy.Predict

    Raises
    ------
    ModelError
        With code ``program`` if the state is not one of this program.
    """
    dspy = load_dspy()
    from agent.signatures import ProposeSwizzle, ProposeSwizzleSeeing, ProposeTemplate, ProposeTemplateSeeing

    plain, seeing = (ProposeTemplate, ProposeTemplateSeeing) if template else (ProposeSwizzle, ProposeSwizzleSeeing)
    predict = dspy.Predict(seeing if image else plain)
    if state is not None:
        try:
            predict.load_state(state)
        except Exception as error:
            raise ModelError(
                f"not a program of tune-prompt: {type(error).__name__}: {error}", code="program"
            ) from error
        predict.lm = None  # a saved program names the model it was tuned with; the run names its own
    return predict


def memory_program() -> Any:
    """Predictor of the memory analysis."""
    dspy = load_dspy()
    from agent.signatures import AnalyzeMemory

    return dspy.Predict(AnalyzeMemory)


def read_program(path: str | Path) -> dict[str, Any]:
    """State of a program that `tune-prompt` saved.

    Raises
    ------
    ModelError
        With code ``program`` if the file cannot be read or holds something else.
    """
    try:
        state = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: not a program that can be read ({error})", code="program") from error
    if not isinstance(state, dict) or "signature" not in state:
        raise ModelError(f"{path}: not a program of tune-prompt: it has no signature", code="program")
    return state
