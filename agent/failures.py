"""What can go wrong when a model is asked, as stable codes, and what to do about each.

| code | what happened | asked again |
| --- | --- | --- |
| rate-limit | 429 | yes, after the server's own delay if it names one |
| timeout | no answer in time | yes |
| server | 5xx | yes |
| connection | connection refused, cut, or a stream that broke off | yes |
| empty | an answer with no text | yes |
| malformed | an answer without the fields asked for | yes |
| refusal | the model declined, or a filter did | yes |
| too-long | an answer beyond `MAX_REPLY_CHARS` | yes |
| auth | 401 or 403 | no, and the model is not asked again in this run |
| billing | 402, or no quota left | no, and the model is not asked again in this run |
| no-model | the server has no such model | no, and the model is not asked again in this run |
| context | the prompt is longer than the model takes | no |
| bad-request | another 4xx | no |
| unexpected | anything else | no |
"""

from __future__ import annotations

MAX_REPLY_CHARS = 256 * 1024  # a candidate has at most 64 KiB; the rest is prose
AGAIN = frozenset({"rate-limit", "timeout", "server", "connection", "empty", "malformed", "refusal", "too-long"})
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
    ("StreamAssemblyError", "connection"),
    ("ProviderError", "server"),
)


class Failure(Exception):
    """One ask that gave no usable answer.

    Parameters
    ----------
    code : str
        From the table of this module.
    message : str
    retry_after_s : float or None
        What the server asked for.
    """

    def __init__(self, code: str, message: str, retry_after_s: float | None = None):
        super().__init__(message)
        self.code, self.message, self.retry_after_s = code, message, retry_after_s


def failure_of(error: BaseException) -> Failure:
    """Name what an exception from DSPy, its transport or its adapter means."""
    names = {name.removeprefix("LM") for name in (cls.__name__ for cls in type(error).__mro__)}
    code = next((code for name, code in _BY_CLASS if name in names), "unexpected")
    status = getattr(error, "status", None)
    if code == "bad-request" and status == 404:
        code = "no-model"
    if code == "server" and status is not None and status < 500:
        code = "bad-request"
    if code in ("unexpected", "server", "connection") and "timed out" in str(error).lower():
        code = "timeout"
    after = getattr(error, "retry_after", None)
    message = str(error).partition("\n")[0]  # what follows tells how to configure a client that is not the user's
    return Failure(code, f"{type(error).__name__}: {message}", after if isinstance(after, int | float) else None)
