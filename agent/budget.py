"""`Turns`: which of several models proposes next; `Budget`: when a run has spent its limits."""

from __future__ import annotations

import time
from collections.abc import Iterable

from xcd_model.errors import ModelError

from .endpoint import Failure
from .settings import Prices, Settings
from .transcript import Exchange


class Turns:
    """Several models take turns; one that fails for good, or expects no better order, is dropped."""

    def __init__(self, models: tuple[str, ...]):
        self.left = list(models)
        self._out: dict[str, Failure] = {}

    @property
    def why(self) -> str:
        """Reasons for which models were dropped."""
        return "; ".join(f"{model}: {failure.message}" for model, failure in self._out.items())

    @property
    def code(self) -> str:
        """Code of the first failure for which a model was dropped."""
        return next((failure.code for failure in self._out.values()), "model")

    def drop(self, model: str, why: Failure) -> None:
        """Choose a model no more."""
        self._out[model] = why
        self.left.remove(model)

    def choose(self) -> str:
        """Model that proposes next, which goes to the end of the line."""
        if not self.left:
            raise ModelError(f"every model was dropped: {self.why}", code=self.code)
        self.left.append(self.left.pop(0))
        return self.left[-1]


class Budget:
    """Limits of a run in tokens, dollars and time; an interrupted run waited for the ``earlier`` answers."""

    def __init__(self, settings: Settings, prices: Prices, earlier: Iterable[Exchange] = ()):
        self.settings, self._began = settings, time.monotonic()
        self._earlier_s = sum(e.latency_ms for e in earlier) / 1e3
        if settings.max_dollars is not None:
            unknown = [m for m in settings.models if prices.dollars(m, 0, 0) is None]
            if unknown:
                raise ModelError(
                    f"no price is known for {', '.join(unknown)} (table of {prices.date}), so --max-dollars cannot be "
                    "applied: give --prices FILE with it, or limit --max-tokens",
                    code="no-price",
                )

    def left_s(self) -> float:
        """Time left [s]; infinite without a limit."""
        if self.settings.max_minutes is None:
            return float("inf")
        return 60 * self.settings.max_minutes - self._earlier_s - (time.monotonic() - self._began)

    def spent(self, exchanges: Iterable[Exchange]) -> str:
        """Limit that is reached before the next request, or an empty text."""
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
