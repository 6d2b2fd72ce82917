"""`Endpoint`: one model behind one server, asked once at a time; DSPy chooses the wire, retries are made elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.failures import MAX_REPLY_CHARS, Failure, failure_of
from agent.keys import key_of

if TYPE_CHECKING:
    from dspy.lm15 import Request


@dataclass(frozen=True)
class Answer:
    """What came back.

    Parameters
    ----------
    text : str
    finish : str
        ``stop``, ``length``, ``content_filter`` and the like.
    refused : bool
        The model declined in so many words.
    input_tokens, output_tokens : int or None
    """

    text: str
    finish: str
    refused: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None


class Endpoint:
    """Asks one model.

    Parameters
    ----------
    model : str
        DSPy model string.
    api_base : str or None
    timeout_s : float [s]
        Between two bytes; with ``stream`` also for the whole answer.
    stream : bool

    Raises
    ------
    ModelError
        With code ``extra`` or ``no-key``.
    """

    def __init__(self, model: str, api_base: str | None, *, timeout_s: float, stream: bool):
        from agent.extra import load_dspy

        self._dspy = load_dspy()
        self.model, self._timeout_s, self._stream = model, timeout_s, stream
        self._client = {"api_key": key_of(model, api_base), **({"api_base": api_base} if api_base else {})}

    def ask(self, request: Request) -> Answer:
        """Send one request.

        Raises
        ------
        Failure
            If no answer came.
        """
        try:
            return self._streamed(request) if self._stream else self._whole(request)
        except Failure:
            raise
        except Exception as error:
            raise failure_of(error) from error

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

    def _streamed(self, request: Request) -> Answer:
        from dspy.clients.engines import LM15Engine
        from dspy.lm15 import RouterConfig, Timeouts

        provider = LM15Engine(RouterConfig(env={})).resolve(self.model).provider
        base = self._client.get("api_base")
        engine = LM15Engine(
            RouterConfig(
                api_keys={provider: self._client["api_key"]},
                base_urls={provider: base} if base else None,
                timeouts=Timeouts(read=self._timeout_s),
            )
        )
        deadline = time.monotonic() + self._timeout_s
        text, size, refused = [], 0, False
        try:
            for event in engine.stream(request):
                if event.type == "error":
                    raise Failure("server", f"the stream ended with an error: {event.error.message}")
                if event.type == "delta" and event.delta.type == "text":
                    text.append(event.delta.text)
                    size += len(event.delta.text)
                if event.type == "end":
                    usage = event.usage
                    counts = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
                    return Answer("".join(text), event.finish_reason or "stop", refused, *counts)
                if size > MAX_REPLY_CHARS:
                    return Answer("".join(text), "too-long", refused)
                if time.monotonic() > deadline:
                    raise Failure("timeout", f"the answer was not complete after {self._timeout_s:g} s")
        finally:
            engine.close()
        raise Failure("connection", "the stream ended before the answer did")
