"""Keys of model providers: taken out of the environment, kept in memory, struck from every text that is kept.

Once taken, a key is in no environment, so no child process inherits it. There is no option to type one: a command
line is seen by every user of a machine and is written into the run.
"""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping

from agent.extra import WITHOUT
from xcd_model.errors import ModelError

# Providers that need no key: servers of one's own.
LOCAL = frozenset({"hosted_vllm", "vllm", "ollama", "ollama_chat", "llamafile", "lm_studio"})
# Variables that do not follow PROVIDER_API_KEY.
VARIABLES = {
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "together_ai": ("TOGETHER_API_KEY", "TOGETHERAI_API_KEY"),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
}
NO_KEY = "no-key"  # clients want a string; a server that asks for no key ignores it
STRUCK = "[key]"
_SHAPE = re.compile(r"\b(?:sk|gsk|xai|pplx|AIza|Bearer\s)[-_A-Za-z0-9.*]{8,}")
_taken: dict[str, str] = {}


def provider_of(model: str) -> str:
    """First part of a DSPy model string; ``openai`` where there is none."""
    return model.split("/", 1)[0] if "/" in model else "openai"


def variables_of(model: str) -> tuple[str, ...]:
    """Environment variables that may hold the key of a model."""
    provider = provider_of(model)
    return VARIABLES.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))


def take_keys(environment: MutableMapping[str, str] | None = None) -> None:
    """Move every variable that ends with ``_API_KEY`` from the environment into memory."""
    env = os.environ if environment is None else environment
    for name in [name for name in env if name.endswith("_API_KEY")]:
        _taken[name] = env.pop(name)


def key_of(model: str, api_base: str | None) -> str:
    """Key for a model.

    Raises
    ------
    ModelError
        With code ``no-key`` if the provider needs one and none is set; the message names the variable.
    """
    take_keys()
    names = variables_of(model)
    found = next((_taken[name] for name in names if _taken.get(name, "").strip()), None)
    if found:
        return found.strip()
    if api_base or provider_of(model) in LOCAL:
        return NO_KEY
    raise ModelError(
        f"{model} needs a key: set {' or '.join(names)}, or --api-base for a server of your own; {WITHOUT}",
        code="no-key",
    )


def strike_keys(text: str) -> str:
    """Text without keys: those taken, and whatever has the shape of one."""
    for secret in _taken.values():
        if len(secret.strip()) >= 4:
            text = text.replace(secret.strip(), STRUCK)
    return _SHAPE.sub(STRUCK, text)
