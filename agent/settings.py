"""`Settings`: what a run of the llm proposer was asked, and `Budget`: when it has to stop."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from agent.contexts import CONTEXTS
from agent.prices import Prices
from agent.transcript import Exchange
from xcd_model.errors import ModelError

LIMITS = ("iterations", "max_tokens", "max_dollars", "max_minutes", "timeout_s", "tries", "stream", "api_base")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What shapes a run of the proposer.

    Parameters
    ----------
    models : tuple of str
        DSPy model strings; several share one history.
    api_base : str or None
        Of an OpenAI-compatible server; it serves all models.
    context : {"aware", "unaware", "overload"}
    iterations, candidates : int
        Iterations, and candidates asked for in each.
    max_tokens : int or None
        Of all prompts and replies together.
    max_dollars, max_minutes : float or None
    temperature : float or None
        None leaves it to the provider.
    reply_tokens : int or None
        Most tokens of one reply; None leaves it to the provider.
    timeout_s : float [s]
        For one answer.
    tries : int
        Times one question is asked before the iteration is given up.
    stream : bool
        Read answers as they are written, which bounds the whole answer by ``timeout_s`` and not each part of it.
    structured : bool
        Constrain answers by a JSON schema, for servers that can and small models that must.
    image : bool
        Add a picture of the best order.
    seed : int
        Sent to models that take one.
    stage_two : int
        Full replays to search the parameters of each answer with, which is then a template; 0 asks for formulas.
    """

    models: tuple[str, ...]
    api_base: str | None = None
    context: str = "aware"
    iterations: int = 5
    candidates: int = 1
    max_tokens: int | None = None
    max_dollars: float | None = None
    max_minutes: float | None = None
    temperature: float | None = None
    reply_tokens: int | None = None
    timeout_s: float = 300.0
    tries: int = 4
    stream: bool = False
    structured: bool = False
    image: bool = False
    seed: int = 0
    stage_two: int = 0

    def __post_init__(self):
        object.__setattr__(self, "models", tuple(self.models))
        if not self.models or not all(model.strip() for model in self.models):
            raise ModelError("name a model, such as --model openai/gpt-4o", code="no-model")
        if len(set(self.models)) < len(self.models):
            raise ModelError(f"a model is named twice: {', '.join(self.models)}", code="no-model")
        if self.context not in CONTEXTS:
            raise ModelError(f"context {self.context!r}: there is {', '.join(CONTEXTS)}", code="context-name")
        for name in ("iterations", "candidates", "tries", "timeout_s"):
            if getattr(self, name) <= 0:
                raise ModelError(f"{name} = {getattr(self, name)}: more than 0", code="setting")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "models": list(self.models)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        """Inverse of `as_dict`; keys it does not know are left out."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in values.items() if key in known})

    def prompts(self) -> dict[str, Any]:
        """The part that decides what is asked: a resumed run must agree on it, and may differ in the limits."""
        return {key: value for key, value in self.as_dict().items() if key not in LIMITS}


class Budget:
    """Says when a run has spent what it may.

    Parameters
    ----------
    settings : Settings
    prices : Prices

    Raises
    ------
    ModelError
        With code ``no-price`` if dollars are limited and a model has no price.
    """

    def __init__(self, settings: Settings, prices: Prices):
        self.settings, self._began, self._earlier_s = settings, time.monotonic(), 0.0
        if settings.max_dollars is not None:
            unknown = [m for m in settings.models if prices.dollars(m, 0, 0) is None]
            if unknown:
                raise ModelError(
                    f"no price is known for {', '.join(unknown)} (table of {prices.date}), so --max-dollars cannot be "
                    "kept: give --prices FILE with it, or limit --max-tokens",
                    code="no-price",
                )

    def began_before(self, exchanges: Iterable[Exchange]) -> None:
        """Count the time that an interrupted run spent waiting for answers."""
        self._earlier_s = sum(e.latency_ms for e in exchanges) / 1e3

    def left_s(self) -> float:
        """Time left [s]; infinite without a limit."""
        if self.settings.max_minutes is None:
            return float("inf")
        return 60 * self.settings.max_minutes - self._earlier_s - (time.monotonic() - self._began)

    def spent(self, exchanges: Iterable[Exchange]) -> str:
        """Why to stop before the next question, or an empty text."""
        known = list(exchanges)
        tokens = sum((e.input_tokens or 0) + (e.output_tokens or 0) for e in known)
        dollars = sum(e.dollars or 0.0 for e in known)
        limits = self.settings
        if limits.max_tokens is not None and tokens >= limits.max_tokens:
            return f"tokens: {tokens} of {limits.max_tokens}"
        if limits.max_dollars is not None and dollars >= limits.max_dollars:
            return f"dollars: {dollars:.4f} of {limits.max_dollars:g}"
        if self.left_s() <= 0:
            return f"time: {limits.max_minutes:g} minutes"
        return ""
