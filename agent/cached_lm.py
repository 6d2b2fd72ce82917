"""`CachedLM`: the engine that DSPy talks to, and `Client`: a question, retried until its answer can be parsed.

A reply is looked up in the transcript, or requested and stored there before it is used; so resuming a run and
repeating one without a model are the same code. A question is stored before it is sent: one whose answer a killed run
could not store is not sent again.
"""

from __future__ import annotations

import dataclasses
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from swizzle_sim.base.release import version
from xcd_model.errors import RunError

from .endpoint import MAX_REPLY_CHARS, RETRIED, UNANSWERED, Answer, Endpoint, Failure
from .providers import load_dspy, strike_keys
from .settings import Prices, Settings
from .transcript import Exchange, Position, Transcript, digest_of, request_text

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response

STORED_CHARS = 4 << 20  # of a reply; the rest would only swell the file
LONGEST_WAIT_S = 120.0
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)
_MARKER = re.compile(r"\n?\s*\[\[ ## completed ## \]\]\s*$")
_draw = random.Random()
T = TypeVar("T")


@dataclass(frozen=True)
class Retry:
    """How often a request is tried, and how long between."""

    tries: int  # at least 1
    sleep: Callable[[float], None] = time.sleep
    left_s: Callable[[], float] = lambda: float("inf")  # time left for the run [s]

    def wait(self, ask: int, retry_after_s: float | None) -> None:
        """Wait as long as the server said, or exponentially longer with jitter."""
        delay = retry_after_s if retry_after_s is not None else 2.0**ask * _draw.uniform(0.5, 1.5)
        self.sleep(max(0.0, min(delay, LONGEST_WAIT_S, self.left_s())))


class CachedLM:
    """Answers DSPy's requests from a transcript, or from an endpoint into the transcript."""

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
        self._retry_after_s: float | None = None

    def retried(self, question: Position, request: Callable[[], T], retry: Retry) -> T:
        """Result of ``request()``, whose failures that may pass are retried."""
        for ask in range(retry.tries):
            self.position, self._retry_after_s = question._replace(ask=ask), None
            try:
                return request()
            except Failure as failure:
                if failure.code not in RETRIED or ask + 1 == retry.tries:
                    raise
            if not self.looked_up:
                retry.wait(ask, self._retry_after_s)
        raise AssertionError("tries is at least 1")

    def complete(self, request: Request) -> Response:
        """Answer one request of DSPy."""
        text = request_text(_plain(dataclasses.asdict(request)))
        found = self._find(text)
        self.looked_up = found is not None
        if found is None:
            found = self._ask_once(request, text)
        if found.code:
            raise Failure(found.code, found.error or "")
        return _response(found)

    def close(self) -> None:
        """Do nothing: DSPy closes its engines, and this one holds nothing open."""

    def _find(self, text: str) -> Exchange | None:
        found = self.transcript.find(self.position)
        again = self._recorded.find(self.position) if found is None and self._recorded is not None else None
        found = found or again
        if found is None and self._endpoint_of is None:
            raise RunError(
                f"{self.position}: the recorded run has no answer to this question, and a repeated run uses no model"
            )
        if found is not None and found.digest != digest_of(text):
            raise RunError(
                f"{self.transcript.path}: iteration {self.position.iteration}, {self.position.purpose}: the prompt is "
                f"not the one that was answered (written by {found.version}, this is {_versions()}): this version can "
                "neither repeat nor resume the run"
            )
        if again is not None:
            self.transcript.add(dataclasses.replace(again, request=text))  # which a recording leaves out
        return found

    def _ask_once(self, request: Request, text: str) -> Exchange:
        """Send a question that is already on disk, so that a run which is killed meanwhile does not send it again."""
        asked = Exchange(
            *self.position,
            model=request.model,
            seed=self._seed,
            version=_versions(),
            request=text,
            digest=digest_of(text),
            code=UNANSWERED,
            error="the command died while the question was under way",
            at=_now(),
        )
        self.transcript.add(asked)
        try:
            found = self._request(request, asked)
        except BaseException:  # such as Ctrl-C: nobody waits any more, and the run may ask when it goes on
            self.transcript.withdraw(asked.position)
            raise
        self.transcript.complete(found)
        return found

    def _request(self, request: Request, asked: Exchange) -> Exchange:
        if self._endpoint_of is None:
            raise RunError("a repeated run uses no model")
        began = time.perf_counter()
        code, error, answer = None, None, None
        try:
            answer = self._endpoint_of(request.model).ask(request)
            code, error = _fault_of(answer)
        except Failure as failure:
            code, error = failure.code, failure.message
            self._retry_after_s = failure.retry_after_s
        tokens = (answer.input_tokens, answer.output_tokens) if answer else (None, None)
        return dataclasses.replace(
            asked,
            reply=strike_keys(answer.text[:STORED_CHARS]) if answer else None,  # before anything reads it
            finish=answer.finish if answer else None,
            code=code,
            error=error,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            dollars=self._prices.dollars(request.model, *tokens) if answer else 0.0,
            latency_ms=(time.perf_counter() - began) * 1e3,
            at=_now(),
        )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Client:
    """Puts DSPy's questions to models through a `CachedLM`, with retries."""

    def __init__(self, lm: CachedLM, settings: Settings, retry: Retry):
        self._dspy, self._cached, self._settings, self._retry = load_dspy(), lm, settings, retry

    def answer(self, predict: Any, model: str, question: Position, inputs: Mapping[str, Any]) -> Any:
        """Answer of a model to one question."""
        chat = self._dspy.ChatAdapter(use_json_adapter_fallback=False)  # one question is one request
        adapter, wrong = self._dspy.JSONAdapter() if self._settings.structured else chat, ""

        def request() -> Any:
            nonlocal wrong
            lm = self._lm(model, predict, question.candidate + self._cached.position.ask, inputs)
            try:
                with self._dspy.context(lm=lm, adapter=adapter, disable_history=True):
                    return predict(**inputs, signature=_asked_again(predict.signature, wrong))
            except Exception as error:
                if (failure := _failure_behind(error, self._dspy)) is None:
                    raise
            wrong = failure.message if failure.code == "malformed" else ""
            raise failure

        return self._cached.retried(question, request, self._retry)

    def _lm(self, model: str, predict: Any, draw: int, inputs: Mapping[str, Any]) -> Any:
        options: dict[str, Any] = {"temperature": self._settings.temperature, "max_tokens": self._settings.reply_tokens}
        if self._settings.structured:
            options["response_format"] = _schema(predict.signature, len(inputs.get("history", ())))
        options["seed"] = self._settings.seed + draw
        return self._dspy.LM(model, cache=False, num_retries=0, engine=self._cached, **options)


def candidate_text(field: str) -> str:
    """Text of a candidate without the fence that models like to put around it."""
    text = _MARKER.sub("", field)
    fenced = _FENCE.findall(text)
    return (fenced[-1] if fenced else text).strip("\n") + "\n"


def _schema(signature: Any, attempts: int) -> Any:
    """Pydantic model of the outputs, for a server that constrains its answers: a critique of each attempt at most."""
    import pydantic

    fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in signature.output_fields.items()}
    if "critique" in fields:  # without an end small models fill the reply with it
        fields["critique"] = (fields["critique"][0], pydantic.Field(max_length=attempts))
    return pydantic.create_model("Answer", **fields)


def _failure_behind(error: BaseException, dspy: Any) -> Failure | None:
    """The failure behind an exception of DSPy; None for a defect of ours."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Failure):
            return cause
        if isinstance(cause, RunError):
            raise cause
        cause = cause.__cause__
    if isinstance(error, dspy.utils.exceptions.AdapterParseError):
        found = error.parsed_result or {}
        lacks = [name for name in error.signature.output_fields if name not in found]
        what = f"has no field {', '.join(lacks)}" if lacks else "has a field that cannot be read as its type"
        return Failure("malformed", f"the answer {what}")
    if isinstance(error, ValueError):
        return Failure("malformed", "the answer has a field that cannot be read as its type")
    return None


def _asked_again(signature: Any, wrong: str) -> Any:
    """Signature whose instructions say what was wrong with the last answer, if anything was."""
    if not wrong:
        return signature
    return signature.with_instructions(
        f"{signature.instructions}\n\nYour last answer could not be read: {wrong}. Write each field under its header."
    )


def _fault_of(answer: Answer) -> tuple[str | None, str | None]:
    """Code and message of an answer that is unusable before it is parsed."""
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
