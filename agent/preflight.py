"""Pre-flight: do endpoint, key and model answer? Asked through the openai client's model list, before a run begins."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent.extra import WITHOUT, load_dspy, load_openai
from agent.keys import NO_KEY, key_of, provider_of, strike_keys, variables_of
from xcd_model.errors import ModelError

# Public endpoints that list their models the OpenAI way.
BASES = {
    "openai": "https://api.openai.com/v1",
    "groq": "https://api.groq.com/openai/v1",
    "deepseek": "https://api.deepseek.com",
    "mistral": "https://api.mistral.ai/v1",
    "xai": "https://api.x.ai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "ollama": "http://localhost:11434/v1",
    "ollama_chat": "http://localhost:11434/v1",
}
TIMEOUT_S = 15.0


@dataclass(frozen=True)
class Check:
    """What pre-flight found of one model.

    Parameters
    ----------
    model : str
    code : str
        ``ok``, ``unchecked`` (the provider has no model list that the client reads), ``extra``, ``no-key``,
        ``no-endpoint``, ``auth`` or ``no-model``.
    message : str
        What was found, and what to do about it.
    """

    model: str
    code: str
    message: str

    @property
    def passed(self) -> bool:
        """Whether a run may begin."""
        return self.code in ("ok", "unchecked")


def check_model(model: str, api_base: str | None) -> Check:
    """Check one model.

    Parameters
    ----------
    model : str
        DSPy model string.
    api_base : str or None

    Returns
    -------
    Check
    """
    try:
        load_dspy()
        openai = load_openai()
        key = key_of(model, api_base)
    except ModelError as error:
        return Check(model, error.code, str(error))
    base = api_base or BASES.get(provider_of(model))
    if base is None:
        return Check(model, "unchecked", f"{provider_of(model)} has no model list to ask; the first answer will tell")
    return _answer(openai, model, base, key)


def _answer(openai: Any, model: str, base: str, key: str) -> Check:
    """Ask a server for its models."""
    try:
        with openai.OpenAI(api_key=key, base_url=base, max_retries=0, timeout=TIMEOUT_S) as client:
            return _listed(model, base, [entry.id for entry in client.models.list()])
    except (openai.AuthenticationError, openai.PermissionDeniedError):
        what = "no key was sent" if key == NO_KEY else "the key was refused"
        return Check(model, "auth", f"{base}: {what}; set {' or '.join(variables_of(model))}")
    except openai.NotFoundError:
        return Check(model, "unchecked", f"{base} has no model list; the first answer will tell")
    except openai.OpenAIError as error:
        message = f"{base}: no answer ({type(error).__name__}: {_first_line(error)}); is --api-base right, is it up?"
        return Check(model, "no-endpoint", f"{message} {WITHOUT}")
    except ValueError as error:  # what answered is not such a server
        return Check(model, "no-endpoint", f"{base}: not an OpenAI-compatible server ({_first_line(error)})")


def _listed(model: str, base: str, names: list[str]) -> Check:
    wanted = model.split("/", 1)[-1]
    known = {name.removeprefix("models/") for name in names}
    if wanted in known or f"{wanted}:latest" in known or not known:
        return Check(model, "ok", f"{base} answers and has {wanted}")
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.3) or sorted(known)[:3]
    return Check(model, "no-model", f"{base} has no model {wanted!r}; it has {', '.join(near)} ({len(known)} in all)")


def _first_line(error: Exception) -> str:
    return strike_keys(str(error).partition("\n")[0][:200])


def preflight(models: tuple[str, ...], api_base: str | None) -> list[Check]:
    """Check all models of a run.

    Raises
    ------
    ModelError
        With the code of the first model that may not be asked.
    """
    checks = [check_model(model, api_base) for model in models]
    for check in checks:
        if not check.passed:
            named = check.message if check.message.startswith(check.model) else f"{check.model}: {check.message}"
            raise ModelError(named, code=check.code)
    return checks


def doctor() -> Iterator[tuple[str, str, str]]:
    """What `swizzle-sim doctor` says of the llm proposer: (name, ``ok``, ``missing`` or ``off``, what to do)."""
    try:
        dspy: Any = load_dspy()
        openai: Any = load_openai()
    except ModelError as error:
        yield "llm proposer", "off", str(error)
        return
    yield "llm proposer", "ok", f"dspy {dspy.__version__}, openai {openai.__version__}"
    for model in ("openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"):
        try:
            key_of(model, None)
        except ModelError:
            yield f"key of {provider_of(model)}", "off", f"set {' or '.join(variables_of(model))} to use it"
        else:
            check = check_model(model, None)
            yield f"key of {provider_of(model)}", "ok" if check.passed else "missing", check.message
