"""`Recorder`: the engine that DSPy talks to. It looks an answer up, or asks for it and keeps it before it is used."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from agent.endpoint import Answer, Endpoint
from agent.failures import MAX_REPLY_CHARS, Failure
from agent.keys import strike_keys
from agent.prices import Prices
from agent.transcript import Exchange, Position, Transcript, digest_of, request_text
from swizzle_sim.release import version
from xcd_model.errors import RunError

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response

KEPT_CHARS = 4 << 20  # of a reply; the rest would only swell the file


class Recorder:
    """Answers DSPy's requests from a transcript, or from an endpoint into the transcript.

    Parameters
    ----------
    transcript : Transcript
        Of the run.
    endpoint_of : callable or None
        ``endpoint_of(model) -> Endpoint``; None where no model may be asked.
    prices : Prices
    seed : int
    recorded : Transcript, optional
        A finished run to repeat: answers come from it, and are copied.

    Attributes
    ----------
    position : Position
        What is asked next; whoever asks sets it.
    looked_up : bool
        Whether the latest answer had been given before.
    """

    def __init__(
        self,
        transcript: Transcript,
        endpoint_of: Callable[[str], Endpoint] | None,
        prices: Prices,
        seed: int,
        recorded: Transcript | None = None,
    ):
        self.transcript, self._endpoint_of, self._prices, self._seed = transcript, endpoint_of, prices, seed
        self._recorded = recorded
        self.position = Position(0, "", 0, 0)
        self.looked_up = False

    def complete(self, request: Request) -> Response:
        """Answer one request of DSPy.

        Raises
        ------
        Failure
            If no usable answer came, now or when it was recorded.
        RunError
            If the transcript holds an answer to another prompt, or none where no model may be asked.
        """
        text = request_text(_plain(dataclasses.asdict(request)))
        found = self._find(text)
        self.looked_up = found is not None
        if found is None:
            found = self._ask(request, text)
            self.transcript.add(found)
        if found.code:
            raise Failure(found.code, found.error or "")
        return _response(found)

    def _find(self, text: str) -> Exchange | None:
        found = self.transcript.find(self.position)
        if found is None and self._recorded is not None:
            found = self._recorded.find(self.position)
            if found is not None:
                self.transcript.add(found)
        if found is None and self._endpoint_of is None:
            raise RunError(
                f"{self.position}: the recorded run has no answer to this question, and no model may be asked"
            )
        if found is not None and found.digest != digest_of(text):
            raise RunError(
                f"{self.transcript.path}: iteration {self.position.iteration}, {self.position.purpose}: the prompt is "
                f"not the one that was answered (written by {found.version}, this is {_versions()}): the run cannot be "
                "repeated or gone on with by this version"
            )
        return found

    def _ask(self, request: Request, text: str) -> Exchange:
        if self._endpoint_of is None:
            raise RunError("no model may be asked here")
        began = time.perf_counter()
        code, error, answer = None, None, None
        try:
            answer = self._endpoint_of(request.model).ask(request)
            code, error = _fault_of(answer)
        except Failure as failure:
            code, error = failure.code, failure.message
            self.retry_after_s = failure.retry_after_s
        tokens = (answer.input_tokens, answer.output_tokens) if answer else (None, None)
        return Exchange(
            *self.position,
            model=request.model,
            seed=self._seed,
            version=_versions(),
            request=text,
            digest=digest_of(text),
            reply=strike_keys(answer.text[:KEPT_CHARS]) if answer else None,  # before anything reads it
            finish=answer.finish if answer else None,
            code=code,
            error=error,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            dollars=self._prices.dollars(request.model, *tokens) if answer else 0.0,
            latency_ms=(time.perf_counter() - began) * 1e3,
            at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        )

    retry_after_s: float | None = None

    def close(self) -> None:
        """DSPy closes engines; this one holds nothing open."""


def _fault_of(answer: Answer) -> tuple[str | None, str | None]:
    """What makes an answer unusable before it is parsed."""
    if answer.refused or answer.finish == "content_filter":
        return "refusal", f"the model declined: {answer.text[:200]}"
    if not answer.text.strip():
        return "empty", "the answer has no text"
    if len(answer.text) > MAX_REPLY_CHARS:
        return "too-long", f"the answer has more than {MAX_REPLY_CHARS} characters"
    return None, None


def _response(found: Exchange) -> Response:
    from dspy.lm15 import FINISH_REASONS, Message, Response, Usage

    return Response(
        id=None,
        model=found.model,
        message=Message.assistant(found.reply or ""),
        finish_reason=found.finish if found.finish in FINISH_REASONS else "stop",
        usage=Usage(input_tokens=found.input_tokens, output_tokens=found.output_tokens),
    )


def _plain(value: Any) -> Any:
    """Request as JSON has it: nothing that is None or empty, so that new options of DSPy change no digest."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items() if v is not None and v not in ((), {})}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) else str(value)


def _versions() -> str:
    import dspy

    return f"swizzle-sim {version()}, dspy {dspy.__version__}"
