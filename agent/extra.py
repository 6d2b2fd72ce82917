"""The optional libraries behind the agent: DSPy and the openai client, imported only where a model is asked."""

from __future__ import annotations

import importlib
import logging
import os
from types import ModuleType

from swizzle_sim.release import install_hint
from xcd_model.errors import ModelError

WITHOUT = "without a model: swizzle-sim optimize KERNEL tries the known families, --proposer search their parameters"


def load_dspy() -> ModuleType:
    """DSPy, quiet, with its caches off: every reply is kept by the run itself.

    Raises
    ------
    ModelError
        With code ``extra`` if it is not installed.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the first call fetches a price table
    dspy = _load("dspy")
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    for name in ("dspy", "LiteLLM", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return dspy


def load_openai() -> ModuleType:
    """The openai client; raises as `load_dspy`."""
    return _load("openai")


def _load(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(
            f"the llm proposer needs {name}, which cannot be imported ({error}): {install_hint('llm')}; {WITHOUT}",
            code="extra",
        ) from error
