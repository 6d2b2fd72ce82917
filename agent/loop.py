"""`propose`: the loop of the paper. A model proposes, the cascade judges, and the history goes back to the model.

Everything that decides what happens next is on disk before it does: replies in the transcript, attempts in the
history. A run that was killed is gone through again from its beginning, with every answer looked up; so going on with
a run, and repeating one with no model at all, are the same code.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from agent.asker import Asker, candidate_text
from agent.bandit import Bandit
from agent.beside import add_beside
from agent.briefing import Briefing
from agent.cascade import Cascade, RecallingScorer
from agent.endpoint import Endpoint
from agent.failures import FATAL, Failure
from agent.inputs import Inputs
from agent.keys import take_keys
from agent.prices import load_prices
from agent.program import memory_program, propose_program
from agent.recorder import Recorder
from agent.settings import Budget, Settings
from agent.transcript import Position, Transcript
from swizzle_sim.history import Attempt, History, rank
from swizzle_sim.kernels import Kernel
from swizzle_sim.scoring import Scorer
from swizzle_sim.search import Run, about_run, open_run
from swizzle_sim.swizzle import family
from xcd_model import Gpu
from xcd_model.errors import ModelError

LLM = "llm:"  # before the model's name in ``Attempt.proposer``
STEP, END, INPUTS = "step", "end", "inputs"
PROPOSE, MEMORY = "propose", "memory-analysis"
NO_ANALYSIS = "No analysis was made."
OnStep = Callable[[Mapping[str, Any]], None]


def propose(
    kernel: Kernel,
    gpu: Gpu,
    folder: str | Path,
    settings: Settings,
    *,
    inputs: Inputs | None = None,
    replay: str = "timed",
    jitter_ns: float = 0.0,
    resume: bool = False,
    repeat: Path | None = None,
    command: str = "",
    on_step: OnStep | None = None,
    endpoint_of: Callable[[str], Endpoint] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Run:
    """Let models propose swizzles for a kernel, and judge each.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    folder : path
        Run folder to make; with ``resume`` one that an earlier call left.
    settings : Settings
    inputs : Inputs, optional
    replay : {"timed", "lockstep"}
        Of the full replay.
    jitter_ns : float [ns]
    resume : bool
        Go on where the run in ``folder`` stopped; nothing that was answered is asked again.
    repeat : Path, optional
        A run to repeat into ``folder``, with no model and no network.
    command : str
    on_step : callable, optional
        Called after each iteration with what it came to.
    endpoint_of : callable, optional
        Makes the endpoint of a model.
    sleep : callable
        Waits between tries.

    Returns
    -------
    Run

    Raises
    ------
    RunError
        If the folder exists and ``resume`` is off, or the run in it asked for something else.
    ModelError
        If no model can be asked any more; what came before is kept.
    """
    take_keys()
    scorer = RecallingScorer(kernel, gpu, replay=replay, seed=settings.seed, jitter_ns=jitter_ns)
    about = {**about_run(scorer, command), "proposer": settings.prompts(), "settings": settings.as_dict()}
    with (
        open_run(Path(folder), about, resume, ("proposer",)) as history,
        Transcript(history.folder) as transcript,
        _recorded(repeat) as source,
    ):
        transcript.note(INPUTS, 0, (inputs or Inputs(prices=load_prices())).as_dict())
        loop = _Loop(scorer, settings, history, transcript, source, repeat, endpoint_of, sleep)
        with _state_of(history):
            loop.run(on_step)
        return Run(history.folder, tuple(history))


@contextlib.contextmanager
def _state_of(history: History) -> Iterator[None]:
    """Record how far a run came."""
    try:
        history.set_state("running")
        yield
    except BaseException:
        history.set_state("interrupted")
        raise
    history.set_state("finished")


class _recorded:
    """The transcript of a run to repeat, or nothing."""

    def __init__(self, folder: Path | None):
        self._folder = folder

    def __enter__(self) -> Transcript | None:
        self._transcript = None if self._folder is None else Transcript(self._folder)
        return self._transcript

    def __exit__(self, *exc_info) -> None:
        if self._transcript is not None:
            self._transcript.__exit__(*exc_info)


def _endpoints(settings: Settings) -> Callable[[str], Endpoint]:
    made = {
        model: Endpoint(model, settings.api_base, timeout_s=settings.timeout_s, stream=settings.stream)
        for model in settings.models
    }
    return made.__getitem__


class _Loop:
    """One run; its state is what history and transcript say."""

    def __init__(
        self,
        scorer: Scorer,
        settings: Settings,
        history: History,
        transcript: Transcript,
        source: Transcript | None,
        repeat: Path | None,
        endpoint_of: Callable[[str], Endpoint] | None,
        sleep: Callable[[float], None],
    ):
        self.scorer, self.settings, self.history, self.transcript = scorer, settings, history, transcript
        self.source = source
        inputs = Inputs.from_dict(transcript.noted(INPUTS))
        if endpoint_of is None and source is None:
            endpoint_of = _endpoints(settings)
        recorder = Recorder(transcript, endpoint_of, inputs.prices, settings.seed, source)
        self.cost_of = _costs(repeat)
        self.budget = Budget(settings, inputs.prices)
        self.budget.began_before(transcript)
        self.asker = Asker(recorder, settings, self.budget.left_s, sleep)
        self.cascade = Cascade(scorer)
        self.briefing = Briefing(scorer, settings, transcript, inputs.docs)
        self.bandit = Bandit(settings.models)
        state = None if inputs.program is None else dict(inputs.program)
        self.program = propose_program(image=settings.image, template=settings.stage_two > 0, state=state)
        self.earlier = [a for a in history if a.proposer.startswith(LLM)]  # of a run that goes on
        self.attempts: list[Attempt] = []

    def run(self, on_step: OnStep | None) -> None:
        """All iterations, then what stands beside them."""
        self._baseline()
        self.transcript.forget(END)
        if self.source is None:
            self.transcript.take_back(_first_refused(self.transcript.notes(STEP)), STEP)
        iterations = self.settings.iterations if self.source is None else len(self.source.notes(STEP))
        reason = f"iterations: {iterations}"
        for iteration in range(iterations):
            if stop := self._stop(iteration):
                reason = stop
                break
            if not self.bandit.left:
                reason = f"models: none is left to ask ({self.bandit.why})"
                break
            step = self._iteration(iteration)
            self.transcript.note(STEP, iteration, step)
            if on_step:
                on_step(step)
        ended = self.source.noted(END) if self.source else None
        self.transcript.note(END, 0, ended or {"reason": reason})
        judged = len(self.attempts) - 1
        spent = sum(a.verdict.get("stage_two", {}).get("replays", 0) for a in self.attempts) or judged
        if not judged and not self.bandit.left:
            raise ModelError(f"no model answered: {self.bandit.why}", code=self.bandit.code)
        add_beside(self.scorer, self.history, evaluations=max(1, spent), seed=self.settings.seed, cost_of=self.cost_of)

    @cached_property
    def stage_two(self) -> Any:
        """What searches the parameters of templates; None where formulas are asked for."""
        if not self.settings.stage_two:
            return None
        from agent.template import StageTwo

        return StageTwo(self.cascade, self.settings.stage_two, self.settings.seed)

    def _stop(self, iteration: int) -> str:
        if self.source is not None or self.transcript.noted(STEP, iteration):
            return ""  # done before: looking it up costs nothing
        return self.budget.spent(self.transcript)

    def _baseline(self) -> None:
        there = next(iter(self.history), None)
        if there is None:
            began = time.perf_counter()
            found = self.cascade.judge(family("identity"), 0)
            there = self._append("identity", family("identity"), "baseline", found, began)
        else:
            self.cascade.remember(there.source, there.number)
        self.attempts.append(there)

    def _iteration(self, iteration: int) -> dict[str, Any]:
        """Ask one model for its candidates and judge them."""
        model = self.bandit.choose()
        before = _best_rate(self.attempts)
        outcomes: list[dict[str, Any]] = []
        try:
            analysis = self._analysis(model)
            given = self.briefing.proposal(self.attempts, analysis)  # one history for all candidates of an iteration
            for candidate in range(self.settings.candidates):
                if candidate and self._no_more(iteration, candidate):
                    break
                answer = self.asker.ask(self.program, model, iteration, PROPOSE, candidate, given)
                attempt = self._judge(model, answer, iteration, candidate)
                outcomes.append({"attempt": attempt.number, "code": attempt.verdict["code"]})
        except Failure as failure:
            outcomes.append({"attempt": None, "code": failure.code, "message": failure.message[:500]})
            if failure.code in FATAL:
                self.bandit.drop(model, failure)
        asked = [e for e in self.transcript if e.iteration == iteration]
        tokens = sum((e.input_tokens or 0) + (e.output_tokens or 0) for e in asked)
        prices = [e.dollars for e in asked]
        dollars = None if None in prices else sum(p for p in prices if p is not None)
        self.bandit.pay(model, _best_rate(self.attempts) - before, dollars, tokens)
        failed = all(outcome["attempt"] is None for outcome in outcomes)
        return {
            "iteration": iteration,
            "model": model,
            "failed": failed,
            "outcomes": outcomes,
            "tokens": tokens,
            "dollars": dollars,
            "best_l2_hit_rate": _best_rate(self.attempts),
        }

    def _no_more(self, iteration: int, candidate: int) -> bool:
        """Whether the budget ends an iteration between two candidates, now or when it was recorded."""
        position = Position(iteration, PROPOSE, candidate, 0)
        if self.source is not None:
            return self.source.find(position) is None
        return self.transcript.find(position) is None and bool(self.budget.spent(self.transcript))

    def _analysis(self, model: str) -> str:
        """Memory analysis: asked of the first model, once a run; a run goes on without one."""
        if (kept := getattr(self, "_analysed", None)) is not None:
            return kept
        try:
            answer = self.asker.ask(memory_program(), model, 0, MEMORY, 0, self.briefing.memory())
            self._analysed = str(answer.locality_analysis)
        except Failure as failure:
            if failure.code in FATAL:
                raise
            self._analysed = NO_ANALYSIS
        return self._analysed

    def _judge(self, model: str, answer: Any, iteration: int, candidate: int) -> Attempt:
        stage_two = self.stage_two
        source = candidate_text(str(answer.template if stage_two else answer.swizzle))
        index = len(self.attempts) - 1
        if index < len(self.earlier):  # judged before the run was interrupted
            attempt = self.earlier[index]
            if attempt.score is not None:
                self.cascade.remember(attempt.source, attempt.number)
        else:
            began, number = time.perf_counter(), len(self.history)
            name = f"{model.rpartition('/')[2]} {iteration}.{candidate}"
            if stage_two:
                found = stage_two.judge(source, number)
                name, source = f"{name} {found.name}".strip(), found.source
            else:
                found = self.cascade.judge(source, number)
            attempt = self._append(name, source, LLM + model, found, began)
        self.attempts.append(attempt)
        self.briefing.report(attempt)
        return attempt

    def _append(self, name: str, source: str, proposer: str, found: Any, began: float) -> Attempt:
        number = len(self.history)
        attempt = Attempt(
            number=number,
            name=name,
            source=source,
            proposer=proposer,
            verdict=found.verdict,
            score=found.score,
            critique=found.feedback,
            cost_ms=self.cost_of.get(number, (time.perf_counter() - began) * 1e3),
        )
        self.history.append(attempt)
        return list(self.history)[-1]  # as it will be read back


def _best_rate(attempts: list[Attempt]) -> float:
    best = rank(attempts)[0]
    return best.score.l2_hit_rate if best.score else 0.0


def _first_refused(steps: list[dict[str, Any]]) -> int:
    """First iteration of those at the end that failed for want of a key or a model."""
    first = len(steps)
    while first and steps[first - 1]["failed"] and steps[first - 1]["outcomes"][-1]["code"] in FATAL:
        first -= 1
    return first


def _costs(folder: Path | None) -> dict[int, float]:
    if folder is None:
        return {}
    with History(folder) as history:
        return {a.number: a.cost_ms for a in history}
