"""`tune_prompt`: GEPA rewrites the instructions of the propose question, with the simulator as its metric.

Source: Agrawal et al., arXiv 2507.19457 (GEPA), as it comes with DSPy.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.asker import candidate_text
from agent.briefing import Briefing
from agent.cascade import Cascade
from agent.endpoint import Endpoint
from agent.extra import load_dspy
from agent.failures import AGAIN, Failure
from agent.loop import NO_ANALYSIS
from agent.prices import Prices
from agent.program import propose_program
from agent.recorder import Recorder
from agent.settings import Settings
from agent.study import stem_of
from agent.transcript import Position, Transcript
from agent.verifiable import reward_of
from swizzle_sim.history import Attempt
from swizzle_sim.kernels import Kernel
from swizzle_sim.scoring import Scorer
from swizzle_sim.swizzle import family
from xcd_model import Gpu
from xcd_model.errors import ModelError

PURPOSE = "tune"


@dataclass(frozen=True)
class Tuned:
    """What tuning came to.

    Parameters
    ----------
    program : Path
        Saved program, for ``--program``.
    before, after : dict of str to float
        Reward of each held-out kernel, by `stem_of`, under the instructions as shipped and as tuned.
    instructions : str
    asks : int
    """

    program: Path
    before: dict[str, float]
    after: dict[str, float]
    instructions: str
    asks: int


class _Patient:
    """A recorder that numbers its questions and asks again where that can help."""

    def __init__(self, recorder: Recorder, tries: int, sleep: Callable[[float], None]):
        self._recorder, self._tries, self._sleep, self.asks = recorder, tries, sleep, 0

    def complete(self, request: Any) -> Any:
        number = self.asks
        self.asks += 1
        for ask in range(self._tries):
            self._recorder.position = Position(number, PURPOSE, 0, ask)
            try:
                return self._recorder.complete(request)
            except Failure as failure:
                if failure.code not in AGAIN or ask + 1 == self._tries:
                    raise
                if not self._recorder.looked_up:
                    self._sleep(failure.retry_after_s or 2.0**ask)
        raise AssertionError("tries is at least 1")


def tune_prompt(
    train: Sequence[Kernel],
    held_out: Sequence[Kernel],
    gpu: Gpu,
    folder: str | Path,
    settings: Settings,
    *,
    calls: int,
    prices: Prices,
    replay: str = "lockstep",
    endpoint_of: Callable[[str], Endpoint] | None = None,
    sleep: Callable[[float], None] = time.sleep,
    say: Callable[[str], None] = lambda line: None,
) -> Tuned:
    """Tune the instructions on some kernels and measure on others.

    Parameters
    ----------
    train, held_out : sequence of Kernel
        At least one each.
    gpu : Gpu
    folder : path
        Takes the transcript, ``program.json`` and ``tuned.json``. Called again with the same arguments, nothing that
        was answered is asked again.
    settings : Settings
        The first model proposes, the last one reflects.
    calls : int
        Candidates that tuning may have judged.
    prices : Prices
    replay : {"lockstep", "timed"}
    endpoint_of, sleep : callable, optional
    say : callable
        Called with a line of progress.

    Returns
    -------
    Tuned

    Raises
    ------
    ModelError
        If a list of kernels is empty.
    """
    if not train or not held_out:
        raise ModelError("tuning needs kernels to train on and others to hold out", code="tune")
    dspy = load_dspy()
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    with Transcript(where) as transcript:
        made = endpoint_of or (lambda m: Endpoint(m, settings.api_base, timeout_s=settings.timeout_s, stream=False))
        engine = _Patient(Recorder(transcript, made, prices, settings.seed), settings.tries, sleep)
        options = {"cache": False, "num_retries": 0, "engine": engine, "temperature": settings.temperature}
        lm, reflector = (dspy.LM(settings.models[i], **options) for i in (0, -1))
        training, held = ([_Bench(one, gpu, settings, replay) for one in kernels] for kernels in (train, held_out))
        adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        with dspy.context(lm=lm, adapter=adapter, disable_history=True):
            program = propose_program(image=False)
            before = _rewards(program, held)
            tuned = _compiled(dspy, program, training, reflector, calls, settings.seed, say)
            after = _rewards(tuned, held)
    return _saved(tuned, before, after, engine.asks, where)


def _compiled(
    dspy: Any,
    program: Any,
    benches: Sequence[_Bench],
    reflector: Any,
    calls: int,
    seed: int,
    say: Callable[[str], None],
) -> Any:
    """The program with the instructions that GEPA comes to."""
    judges = {bench.name: bench for bench in benches}
    terminal, judged = sys.stderr, itertools.count(1)

    def metric(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
        score, feedback = judges[gold.kernel].judge(pred)
        with contextlib.redirect_stderr(terminal):
            say(f"candidate {next(judged)} of about {calls}, {gold.kernel}: reward {score:.3f}")
        return dspy.Prediction(score=score, feedback=feedback)

    examples = [bench.example(dspy) for bench in benches]
    gepa = dspy.GEPA(
        metric=metric,
        max_metric_calls=calls,
        reflection_lm=reflector,
        reflection_minibatch_size=min(3, len(examples)),
        num_threads=1,
        seed=seed,
        use_merge=False,
    )
    bars = io.StringIO()  # GEPA has no way to leave out its progress bars
    with contextlib.redirect_stdout(bars), contextlib.redirect_stderr(bars):
        return gepa.compile(program, trainset=examples, valset=examples)


def _saved(tuned: Any, before: dict[str, float], after: dict[str, float], asks: int, where: Path) -> Tuned:
    """Write the program and what it came to."""
    tuned.lm = None
    path = where / "program.json"
    path.write_text(json.dumps(tuned.dump_state(), indent=1) + "\n", encoding="utf-8")
    found = Tuned(path, before, after, tuned.signature.instructions, asks)
    record = {"before": before, "after": after, "instructions": found.instructions, "asks": found.asks}
    (where / "tuned.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return found


def _rewards(program: Any, benches: Sequence[_Bench]) -> dict[str, float]:
    """Reward of a program on each kernel; an answer that cannot be read earns nothing."""
    found = {}
    for bench in benches:
        try:
            found[bench.name] = bench.judge(program(**bench.inputs))[0]
        except Exception as error:
            if isinstance(error, KeyboardInterrupt | MemoryError):
                raise
            found[bench.name] = 0.0
    return found


class _Bench:
    """One kernel to propose for: the inputs of the first question, and the judge of its answer."""

    def __init__(self, one: Kernel, gpu: Gpu, settings: Settings, replay: str):
        self.name, self._scorer = stem_of(one), Scorer(one, gpu, replay=replay)
        text = family("identity")
        launched = Attempt(
            number=0, name="identity", source=text, proposer="baseline", verdict={}, score=self._scorer.baseline
        )
        briefing = Briefing(self._scorer, settings, _Notes(), None)
        self.inputs = briefing.proposal([launched], NO_ANALYSIS)

    def example(self, dspy: Any) -> Any:
        """Example for GEPA."""
        return dspy.Example(kernel=self.name, **self.inputs).with_inputs(*self.inputs)

    def judge(self, answer: Any) -> tuple[float, str]:
        """Reward of an answer, and why."""
        found = Cascade(self._scorer).judge(candidate_text(str(answer.swizzle)), 1)
        text = f"{found.code}. {found.feedback}"
        if found.score is not None:
            score = found.score
            text = (
                f"{text} L2 hit rate {100 * score.l2_hit_rate:.2f} %, as launched "
                f"{100 * self._scorer.baseline.l2_hit_rate:.2f} %, bound {100 * score.bound_l2_hit_rate:.2f} %."
            )
        return reward_of(found, self._scorer), text


class _Notes:
    """Notes in memory, for a briefing outside a run."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], Any] = {}

    def note(self, kind: str, number: int, value: Any) -> None:
        self._kept.setdefault((kind, number), value)

    def noted(self, kind: str, number: int = 0) -> Any:
        return self._kept.get((kind, number))
