"""What a run needs before the first request: the optional libraries, a key, an endpoint that answers and has the model.

Keys are moved out of the environment into memory, so no child process inherits them, and are struck from every text
that is stored. There is no option to type a key: a command line is visible to every user of a machine and is written
into the run.
"""

from __future__ import annotations

import difflib
import importlib
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from swizzle_sim.base.release import install_hint
from xcd_model.errors import ModelError

WITHOUT = "without a model: swizzle-sim optimize KERNEL tries the known families, --proposer search their parameters"
# Providers that need no key: servers of one's own.
FOLDER, ANSWERS = "folder", "answers"  # a folder in place of a server, and its usual name: see `swizzle_agent.folder`
LOCAL = frozenset({"hosted_vllm", "vllm", "ollama", "ollama_chat", "llamafile", "lm_studio", FOLDER})
# Variables that do not follow PROVIDER_API_KEY.
VARIABLES = {
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "together_ai": ("TOGETHER_API_KEY", "TOGETHERAI_API_KEY"),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
}
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
BASE_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")  # of the openai client, and of its first version
NO_LIST = frozenset({404, 405, 501})  # statuses of servers that answer questions and list no models
NO_KEY = "no-key"  # clients require a string; a server without keys ignores it
STRUCK = "[key]"
_SHAPE = re.compile(r"\b(?:sk|gsk|xai|pplx|AIza|Bearer\s)[-_A-Za-z0-9.*]{8,}")
_SECRET = re.compile("key|token|secret|passw|auth|sig", re.IGNORECASE)  # names in the query of an address
_taken: dict[str, str] = {}


def provider_of(model: str) -> str:
    """First part of a DSPy model string; ``openai`` where there is none."""
    return model.split("/", 1)[0] if "/" in model else "openai"


def variables_of(model: str) -> tuple[str, ...]:
    """Environment variables that may hold the key of a model."""
    provider = provider_of(model)
    return VARIABLES.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))


def take_keys() -> None:
    """Move every variable that ends with ``_API_KEY`` from the environment into memory."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        _taken[name] = os.environ.pop(name)


def key_of(model: str, api_base: str | None) -> str:
    """Key for a model."""
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


def base_of(model: str, api_base: str | None) -> str | None:
    """Address of the server of a model: as typed, or for ``openai/`` models as the client's own variables have it."""
    if api_base or provider_of(model) != "openai":
        return api_base
    for name in BASE_VARIABLES:
        if found := os.environ.get(name, "").strip():
            check_base(found, name)
            return found
    return None


def check_base(api_base: str | None, named: str = "--api-base") -> None:
    """Refuse an address with a secret in it: it would be stored with the run, and printed."""
    try:
        parts = urlsplit(api_base or "")
        secret = "@" in parts.netloc or any(_SECRET.search(name) for name, _ in parse_qsl(parts.query + parts.fragment))
    except ValueError:
        raise ModelError(f"{named} is no address such as http://localhost:8000/v1", code="setting") from None
    if secret:
        raise ModelError(
            f"{named} holds a user name, a password or a key, which would be stored with the run: set "
            "OPENAI_API_KEY instead",
            code="setting",
        )


def load_dspy() -> ModuleType:
    """DSPy with its logging and its caches off: the run stores every reply itself."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the first call fetches a price table
    dspy = _load("dspy")
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    for name in ("dspy", "LiteLLM", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return dspy


def _load(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(
            f"the llm proposer needs {name}, which cannot be imported ({error}): {install_hint('llm')}; {WITHOUT}",
            code="extra",
        ) from error


@dataclass(frozen=True)
class Check:
    """What pre-flight found of one model."""

    model: str
    # ``ok``, ``unchecked`` (the provider has no model list that the client reads), ``extra``, ``no-key``, ``no-
    # endpoint``, ``auth`` or ``no-model``
    code: str
    message: str  # what was found, and what to do about it

    def __post_init__(self):
        object.__setattr__(self, "message", strike_keys(self.message))

    @property
    def passed(self) -> bool:
        """Whether a run may begin."""
        return self.code in ("ok", "unchecked")


def check_model(model: str, api_base: str | None) -> Check:
    """Check one model."""
    if provider_of(model) == FOLDER:
        return Check(model, "ok", f"answers come from the folder {api_base or ANSWERS}")
    try:
        load_dspy()
        openai = _load("openai")
        api_base = base_of(model, api_base)
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
    except openai.OpenAIError as error:
        if getattr(error, "status_code", None) in NO_LIST:
            return Check(model, "unchecked", f"{base} has no model list; the first answer will tell")
        first = strike_keys(str(error).partition("\n")[0][:200])
        message = f"{base}: no answer ({type(error).__name__}: {first}); is --api-base right, is it up?"
        return Check(model, "no-endpoint", f"{message} {WITHOUT}")
    except (ValueError, TypeError, AttributeError):  # such as a page of a proxy, in HTML
        return Check(model, "unchecked", f"{base} has no model list that can be read; the first answer will tell")


def _listed(model: str, base: str, names: list[str]) -> Check:
    wanted = model.split("/", 1)[-1]
    known = {name.removeprefix("models/") for name in names}
    if wanted in known or f"{wanted}:latest" in known or not known:
        return Check(model, "ok", f"{base} answers and has {wanted}")
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.3) or sorted(known)[:3]
    return Check(model, "no-model", f"{base} has no model {wanted!r}; it has {', '.join(near)} ({len(known)} in all)")


def preflight(models: tuple[str, ...], api_base: str | None) -> list[Check]:
    """Check all models of a run."""
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
        openai: Any = _load("openai")
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
