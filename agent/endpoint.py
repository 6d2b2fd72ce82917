"""`Endpoint`: one model behind one server, one request at a time, and `Failure`: why a request gave no answer.

DSPy chooses the wire protocol; retries are made by `CachedLM`'s caller. Codes of failures are stable:

| code | what happened | retried |
| --- | --- | --- |
| rate-limit | 429 | yes, after the server's own delay if it names one |
| timeout | no answer in time | yes |
| server | 5xx, or a page in place of an answer | yes |
| connection | connection refused or cut | yes |
| empty | an answer with no text | yes |
| malformed | an answer without the fields of the signature | yes |
| refusal | the model declined, or a filter did | yes |
| too-long | an answer beyond `MAX_REPLY_CHARS` | yes |
| auth | 401 or 403 | no, and the model is dropped for this run |
| billing | 402, or no quota left | no, and the model is dropped for this run |
| no-model | the server has no such model | no, and the model is dropped for this run |
| context | the prompt is longer than the model takes | no |
| bad-request | another 4xx | no |
| unanswered | the run was killed between the question and its answer | no: another iteration asks in its place |
| unexpected | anything else | no |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .providers import base_of, key_of, load_dspy, strike_keys

if TYPE_CHECKING:
    from dspy.lm15 import Request


MAX_REPLY_CHARS = 256 * 1024  # a candidate has at most 64 KiB; the rest is prose
RETRIED = frozenset({"rate-limit", "timeout", "server", "connection", "empty", "malformed", "refusal", "too-long"})
UNANSWERED = "unanswered"
FATAL = frozenset({"auth", "billing", "no-model"})

# lm15 error class -> code, the first that fits. Names, so that this table needs no import of DSPy.
_BY_CLASS = (
    ("RateLimitError", "rate-limit"),
    ("TimeoutError", "timeout"),
    ("AuthError", "auth"),
    ("BillingError", "billing"),
    ("ContextLengthError", "context"),
    ("ContextWindowExceededError", "context"),
    ("UnsupportedModelError", "no-model"),
    ("InvalidRequestError", "bad-request"),
    ("ServerError", "server"),
    ("TransportError", "connection"),
    ("ProviderError", "server"),
)


class Failure(Exception):
    """A request that gave no usable answer."""

    def __init__(self, code: str, message: str, retry_after_s: float | None = None):
        message = strike_keys(message)  # a server may echo the key it was given
        super().__init__(message)
        self.code, self.message, self.retry_after_s = code, message, retry_after_s


def failure_of(error: BaseException) -> Failure:
    """Name what an exception from DSPy, its transport or its adapter means."""
    names = {name.removeprefix("LM") for name in (cls.__name__ for cls in type(error).__mro__)}
    code = next((code for name, code in _BY_CLASS if name in names), "unexpected")
    status = getattr(error, "status", None)
    if code == "bad-request" and status == 404:
        code = "no-model"
    if code == "server" and status is not None and 400 <= status < 500:
        code = "bad-request"
    if code in ("unexpected", "server", "connection") and "timed out" in str(error).lower():
        code = "timeout"
    after = getattr(error, "retry_after", None)
    message = str(error).partition("\n")[0]  # the rest explains how to configure a client that is not the user's
    return Failure(code, f"{type(error).__name__}: {message}", after if isinstance(after, int | float) else None)


@dataclass(frozen=True)
class Answer:
    """Reply of a model."""

    text: str
    finish: str  # ``stop``, ``length``, ``content_filter`` and the like
    refused: bool = False  # the provider flagged the reply as a refusal
    input_tokens: int | None = None
    output_tokens: int | None = None


class Endpoint:
    """One model behind one server; ``timeout_s`` is between two bytes."""

    def __init__(self, model: str, api_base: str | None, *, timeout_s: float):
        self._dspy = load_dspy()
        self.model, self._timeout_s = model, timeout_s
        api_base = base_of(model, api_base)
        self._client = {"api_key": key_of(model, api_base), **({"api_base": api_base} if api_base else {})}

    def ask(self, request: Request) -> Answer:
        """Send one request."""
        try:
            return self._whole(request)
        except Failure:
            raise
        except Exception as error:
            failure = failure_of(error)
            if failure.code == "timeout":  # the client names an option of its own
                failure = Failure("timeout", f"no answer within {self._timeout_s:g} s: --timeout sets how long to wait")
            raise failure from error

    def _whole(self, request: Request) -> Answer:
        lm = self._dspy.LM(self.model, cache=False, num_retries=0, timeout=self._timeout_s, **self._client)
        try:
            with self._dspy.context(disable_history=True, track_usage=False):
                response: Any = lm(request)
        finally:
            lm.close()
        parts = response.message.parts
        text = "".join(part.text for part in parts if part.type == "text")
        refused = any(part.type == "refusal" for part in parts)
        usage = response.usage
        return Answer(text, response.finish_reason, refused, usage.input_tokens, usage.output_tokens)
