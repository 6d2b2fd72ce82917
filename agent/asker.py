"""`Asker`: puts a question to a model until there is an answer of the right form, or patience runs out."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from agent.extra import load_dspy
from agent.failures import AGAIN, Failure
from agent.recorder import Recorder
from agent.settings import Settings
from agent.transcript import Position
from xcd_model.errors import RunError

LONGEST_WAIT_S = 120.0
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)
_MARKER = re.compile(r"\n?\s*\[\[ ## completed ## \]\]\s*$")


class Asker:
    """Asks through a recorder.

    Parameters
    ----------
    recorder : Recorder
    settings : Settings
    left_s : callable
        Time left for the run [s].
    sleep : callable
        For tests.
    """

    def __init__(
        self,
        recorder: Recorder,
        settings: Settings,
        left_s: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
    ):
        self._dspy, self._recorder, self._settings = load_dspy(), recorder, settings
        self._left_s, self._sleep, self._draw = left_s, sleep, random.Random()

    def ask(
        self, predict: Any, model: str, iteration: int, purpose: str, candidate: int, inputs: Mapping[str, Any]
    ) -> Any:
        """Ask one question.

        Parameters
        ----------
        predict : dspy.Predict
        model : str
        iteration, purpose, candidate
            Of the `Position`.
        inputs : mapping
            Fields of the signature.

        Returns
        -------
        answer : dspy.Prediction

        Raises
        ------
        Failure
            The last one, after ``settings.tries`` tries or one that asking again cannot mend.
        """
        lm, adapter = self._lm(model, predict), self._adapter()
        for ask in range(self._settings.tries):
            self._recorder.position = Position(iteration, purpose, candidate, ask)
            self._recorder.retry_after_s = None
            try:
                with self._dspy.context(lm=lm, adapter=adapter, disable_history=True):
                    return predict(**inputs)
            except Exception as error:
                failure = _found_in(error, self._dspy)
                if failure is None:
                    raise
            if failure.code not in AGAIN or ask + 1 == self._settings.tries:
                raise failure
            if not self._recorder.looked_up:
                self._wait(ask)
        raise AssertionError("tries is at least 1")

    def _wait(self, ask: int) -> None:
        wanted = self._recorder.retry_after_s
        delay = wanted if wanted is not None else 2.0**ask * self._draw.uniform(0.5, 1.5)
        self._sleep(max(0.0, min(delay, LONGEST_WAIT_S, self._left_s())))

    def _lm(self, model: str, predict: Any) -> Any:
        options: dict[str, Any] = {"temperature": self._settings.temperature, "max_tokens": self._settings.reply_tokens}
        if self._settings.structured:
            options["response_format"] = _schema(predict.signature)
        return self._dspy.LM(
            model, cache=False, num_retries=0, engine=self._recorder, seed=self._settings.seed, **options
        )

    def _adapter(self) -> Any:
        if self._settings.structured:
            return self._dspy.JSONAdapter()
        return self._dspy.ChatAdapter(use_json_adapter_fallback=False)  # one question is one request


def _schema(signature: Any) -> Any:
    """Model of the outputs, for a server that constrains its answers."""
    import pydantic

    fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in signature.output_fields.items()}
    return pydantic.create_model("Answer", **fields)


def _found_in(error: BaseException, dspy: Any) -> Failure | None:
    """The failure behind an exception of DSPy; None if it is none of the model's doing."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Failure):
            return cause
        if isinstance(cause, RunError):
            raise cause
        cause = cause.__cause__
    if isinstance(error, dspy.utils.exceptions.AdapterParseError | ValueError):
        return Failure("malformed", "the answer lacks the fields asked for")
    return None


def candidate_text(field: str) -> str:
    """Text of a candidate without the fence that models like to put around it."""
    text = _MARKER.sub("", field)
    fenced = _FENCE.findall(text)
    return (fenced[-1] if fenced else text).strip("\n") + "\n"
