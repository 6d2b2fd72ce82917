"""`propose`: the loop of the paper as a strategy. A model proposes, the judge judges, the history goes to the model.

Everything that decides what happens next is on disk before it does: replies in the transcript, attempts in the
history. A run that was killed is gone through from its beginning, with every answer looked up; so resuming a run, and
repeating one with no model at all, are the same code.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import Bench
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.judge import Judge, as_candidate, left_of
from swizzle_sim.search.loop import Run, RunConfig, about_run, open_run, run
from swizzle_sim.search.ranking import UNEVEN, ranking_of, uneven_of
from swizzle_sim.search.recorded import recorded_gpu, recorded_kernel
from swizzle_sim.search.strategies.halving import is_evaluation, landscape, search_on
from swizzle_sim.search.templates import read_template
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import LanguageError, ModelError, SearchError

from .baselines import add_baselines
from .budget import Budget, Turns
from .cached_lm import CachedLM, Client, Retry, candidate_text
from .endpoint import FATAL, UNANSWERED, Endpoint, Failure
from .folder import FolderEndpoint
from .prompts import HARDWARE, Briefing, RemapWords, memory_program, propose_program
from .providers import ANSWERS, FOLDER, provider_of, take_keys
from .settings import Inputs, Settings, load_prices
from .transcript import END, INPUTS, MEMORY, PROPOSE, STEP, Position, Transcript
from .verifiable import DONE

LLM = "llm:"  # before the model's name in ``Attempt.proposer``
NO_ANALYSIS = "No analysis was made."
ANOTHER = {"result": "your own answer to this very question: now give another idea"}
OnStep = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class LoopConfig(RunConfig):
    """How the loop is run; the seed is that of its `Settings`."""

    inputs: Inputs | None = None
    repeat: Path | None = None  # A run to repeat, with no model and no network
    on_step: OnStep | None = None  # called with a summary after each iteration
    endpoint_of: Callable[[str], Any] | None = None  # makes the endpoint of a model
    sleep: Callable[[float], None] = time.sleep  # waits between tries
    # called as ``on_compared(done, total)`` while families and search are replayed at the end
    on_compared: Callable[[int, int], None] = lambda done, total: None


def propose(kernel: Kernel, gpu: Gpu, folder: str | Path, settings: Settings, **options: Any) -> Run:
    """Let models propose swizzles for a kernel, and judge each.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    folder : path
        Run folder to make; with ``resume`` one that an earlier call left.
    settings : Settings
    **options
        Fields of `LoopConfig`.

    Returns
    -------
    Run

    Raises
    ------
    RunError
        If the folder exists and ``resume`` is off, or the run in it has other settings.
    ModelError
        If every model was dropped; the attempts before are stored.
    """
    take_keys()
    how = LoopConfig(**options)
    scorer = Scorer(kernel, gpu, replay=how.replay, seed=settings.seed, jitter_ns=how.jitter_ns)
    objectives = how.objectives_on(scorer)
    about = {
        **about_run(scorer, how.command, objectives),
        "proposer": settings.prompts(),
        "settings": settings.as_dict(),
    }
    with (
        open_run(Path(folder), about, how.resume, ("proposer",)) as history,
        Transcript(history.folder) as transcript,
        contextlib.nullcontext() if how.repeat is None else Transcript(how.repeat) as recorded,
    ):
        with history.running():
            transcript.note(INPUTS, 0, (how.inputs or Inputs(prices=load_prices())).as_dict())
            _Loop(Judge(scorer, objectives, far_worse=True), settings, how, history, transcript, recorded).run()
        return Run(history.folder, tuple(history), ranking_of(about))


def repeat_run(run: str | Path, folder: str | Path, *, on_step: OnStep | None = None) -> Run:
    """Repeat a recorded run of the llm proposer into a new folder: same prompts, attempts and scores, to the byte.

    There is no model and no network.

    Raises
    ------
    RunError
        If there is no such run, or this version builds other prompts.
    ModelError
        With code ``not-llm`` if the run was made by another proposer.
    """
    with History(Path(run)) as history:
        about = history.about
    if "settings" not in about:
        raise ModelError(f"{run}: made by another proposer than llm: there are no replies to repeat", code="not-llm")
    with Transcript(Path(run)) as transcript:
        inputs = Inputs.from_dict(transcript.noted(INPUTS))
    return propose(
        recorded_kernel(about),
        recorded_gpu(about),
        folder,
        Settings.from_dict(about["settings"]),
        inputs=inputs,
        replay=about["replay"],
        objective=",".join(about["objectives"]) if "objectives" in about else None,
        jitter_ns=about["jitter_ns"],
        repeat=Path(run),
        command=about["command"],
        on_step=on_step,
    )


class _Loop:
    """One run; its state is that of history and transcript.

    ``recorded`` is the transcript of the run that is repeated, or None.
    """

    def __init__(
        self,
        judge: Judge,
        settings: Settings,
        how: LoopConfig,
        history: History,
        transcript: Transcript,
        recorded: Transcript | None,
    ):
        self.judge, self.settings, self.how, self.ranking = judge, settings, how, judge.ranking
        self.history, self.transcript, self.recorded = history, transcript, recorded
        inputs = Inputs.from_dict(transcript.noted(INPUTS))
        endpoint_of = how.endpoint_of
        if endpoint_of is None and recorded is None:
            endpoint_of = _endpoints(settings)
        self.budget = Budget(settings, inputs.prices, transcript)
        lm = CachedLM(transcript, endpoint_of, inputs.prices, settings.seed, recorded)
        self.client = Client(lm, settings, Retry(settings.tries, how.sleep, self.budget.left_s))
        if recorded is not None and (text := recorded.noted(HARDWARE)) is not None:
            transcript.note(HARDWARE, 0, text)
        words = RemapWords(judge.scorer, settings.compile, recorded)
        self.briefing = Briefing(judge.scorer, settings, transcript, inputs.docs, self.ranking, words)
        self.turns = Turns(settings.models)
        state = None if inputs.program is None else dict(inputs.program)
        self.program = propose_program(image=settings.image, template=settings.stage_two > 0, state=state)
        self.before = _attempts(how.repeat)
        self.earlier = [a for a in history if is_models(a)]  # of a resumed run
        self.attempts: list[Attempt] = []
        self.reason = ""

    def run(self) -> None:
        """All iterations, then the baselines."""
        self.transcript.forget(END)
        if self.recorded is None:
            self.transcript.take_back(_first_refused(self.transcript.notes(STEP)), STEP, FATAL)
        run(
            self._iterations(), self.judge, self.history,
            on_attempt=self.attempts.append, mine=is_models, amend=self._as_recorded,
        )  # fmt: skip
        ended = self.recorded.noted(END) if self.recorded else None
        self.transcript.note(END, 0, ended or {"reason": self.reason})
        judged = len(self.attempts) - 1
        if not judged and not self.turns.left and self.turns.code != DONE:
            raise ModelError(f"no model answered: {self.turns.why}", code=self.turns.code)
        if self.settings.no_compare:
            return
        options: dict[str, Any] = {"amend": self._as_recorded, "on_count": self.how.on_compared}
        add_baselines(self.judge, self.history, self.transcript, evaluations_of(self.attempts), **options)

    def _as_recorded(self, attempt: Attempt) -> Attempt:
        """Attempt with the time that it took in the run that is repeated."""
        return replace(attempt, cost_ms=self.before[attempt.number].cost_ms) if self.before else attempt

    def _iterations(self) -> Generator[Candidate, Attempt, None]:
        """The strategy: all iterations, and the reason for which they ended."""
        iterations = self.settings.iterations if self.recorded is None else len(self.recorded.notes(STEP))
        lost = 0  # by kills, each with a question under way: another iteration takes its place
        for iteration in count():
            if iteration == iterations + lost * (self.recorded is None):
                break
            if stop := self._stop(iteration):
                self.reason = stop
                return
            if not self.turns.left:
                why = "no model proposes any more" if self.turns.code == DONE else "models: every one was dropped"
                self.reason = f"{why} ({self.turns.why})"
                return
            step = yield from self._iteration(iteration)
            self.transcript.note(STEP, iteration, step)
            lost += [outcome["code"] for outcome in step["outcomes"]] == [UNANSWERED]
            if self.how.on_step:
                self.how.on_step(step)
        self.reason = f"iterations: {iterations}"

    def _stop(self, iteration: int) -> str:
        if self.recorded is not None or self.transcript.noted(STEP, iteration):
            return ""  # its answers are looked up, which costs nothing
        if self._at_bound():
            return "bound: no order has fewer misses than the best so far"
        return self.budget.spent(self.transcript)

    def _at_bound(self) -> bool:
        """Whether hits are sought, none are left that the ranking tells apart, and the work is spread evenly."""
        best, scorer = self._best(), self.judge.scorer
        if self.ranking.main.name != "l2_hit_rate" or left_of(scorer, best) > self.ranking.tolerance:
            return False
        return not scorer.work.uneven or uneven_of(best) <= UNEVEN

    def _iteration(self, iteration: int) -> Generator[Candidate, Attempt, dict[str, Any]]:
        """Candidates of one model, and what became of them."""
        model = self.turns.choose()
        outcomes: list[dict[str, Any]] = []
        try:
            analysis = self._analysis(model)
            given = self.briefing.proposal(self.attempts, analysis)  # one history for all candidates of an iteration
            for candidate in range(self.settings.candidates):
                if candidate and self._no_more(iteration, candidate):
                    break
                question = Position(iteration, PROPOSE, candidate, 0)
                answer = self.client.answer(self.program, model, question, given)
                given = {**given, "history": [*given["history"], {"answered": self._source(answer), **ANOTHER}]}
                if self._source(answer).strip().lower() == DONE:
                    raise Failure(DONE, "expects no better order")
                attempt = yield self._candidate(model, self._source(answer), question)
                self.briefing.report(attempt)
                outcomes.append({"attempt": attempt.number, "code": attempt.verdict["code"]})
        except Failure as failure:
            outcomes.append({"attempt": None, "code": failure.code, "message": failure.message[:500]})
            if failure.code in FATAL or failure.code == DONE:
                self.turns.drop(model, failure)
        exchanges = [e for e in self.transcript if e.iteration == iteration]
        tokens = sum((e.input_tokens or 0) + (e.output_tokens or 0) for e in exchanges)
        prices = [e.dollars for e in exchanges]
        dollars = None if None in prices else sum(p for p in prices if p is not None)
        return {
            "iteration": iteration,
            "model": model,
            "failed": all(outcome["attempt"] is None and outcome["code"] != DONE for outcome in outcomes),
            "outcomes": outcomes,
            "tokens": tokens,
            "dollars": dollars,
            "best_l2_hit_rate": self._best().l2_hit_rate,
            "best_time_us": self._best().time_us,
        }

    def _best(self) -> Score:
        return self.ranking.order(self.attempts)[0].score or self.judge.scorer.baseline

    def _no_more(self, iteration: int, candidate: int) -> bool:
        """Whether the budget ends an iteration between two candidates, now or when it was recorded."""
        position = Position(iteration, PROPOSE, candidate, 0)
        if self.recorded is not None:
            return self.recorded.find(position) is None
        return self.transcript.find(position) is None and bool(self.budget.spent(self.transcript))

    def _analysis(self, model: str) -> str:
        """How the kernel shares data: its own words, or a model's once a run; without an answer the run goes on."""
        if known := self.briefing.analysis or getattr(self, "_analysed", ""):
            return str(known)
        try:
            answer = self.client.answer(memory_program(), model, Position(0, MEMORY, 0, 0), self.briefing.memory())
            self._analysed = str(answer.locality_analysis)
        except Failure as failure:
            if failure.code in FATAL:
                raise
            self._analysed = NO_ANALYSIS
        return self._analysed

    def _source(self, answer: Any) -> str:
        return candidate_text(str(answer.template if self.settings.stage_two else answer.swizzle))

    def _candidate(self, model: str, source: str, question: Position) -> Candidate:
        """What a model answered; that of a template is searched for, unless it was before the run was stopped."""
        proposer, done = LLM + model, len(self.attempts) - 1
        if done < len(self.earlier):
            return Candidate(self.earlier[done].name, self.earlier[done].source, proposer)
        name = f"{model.rpartition('/')[2]} {question.iteration}.{question.candidate}"
        if self.settings.stage_two and source.lstrip().startswith("template"):
            return self._searched(source, name, proposer)
        return replace(as_candidate(source, proposer), name=name, proposer=proposer)

    def _searched(self, text: str, name: str, proposer: str) -> Candidate:
        """Best candidate of a template, with what its parameters do as a note; or a refusal with the reason."""
        try:
            template = read_template(text)
            found = search_on(
                Bench(self.judge.scorer), [template], evaluations=self.settings.stage_two, seed=self.settings.seed,
                objectives=self.judge.objectives,
            )  # fmt: skip
        except (LanguageError, SearchError) as error:
            refusal = f"template-{error.code}", str(error)
            return Candidate(name, text, proposer, {"template": text}, refusal=refusal)
        words, tried = landscape(template, found.attempts), found.attempts[1:]
        scored = [a for a in found.ranked if a.number]  # as the run ranks, not by the figure of the search alone
        told: dict[str, Any] = {"stage_two": {"looked_at": len(tried), "replays": len(scored)}, "template": text}
        if not scored:
            return Candidate(name, text, proposer, told, refusal=("template-nothing", words))
        told["parameters"] = scored[0].verdict["parameters"]
        return Candidate(f"{name} {scored[0].name}".strip(), scored[0].source, proposer, told, note=words)


def is_models(attempt: Attempt) -> bool:
    """Whether a model proposed it."""
    return attempt.proposer.startswith(LLM)


def evaluations_of(attempts: Iterable[Attempt]) -> int:
    """Full replays that models' attempts took, those of the searches of their templates among them."""
    return sum(a.verdict.get("stage_two", {"replays": is_evaluation(a)})["replays"] for a in attempts)


def _endpoints(settings: Settings) -> Callable[[str], Endpoint | FolderEndpoint]:
    if all(provider_of(model) == FOLDER for model in settings.models):
        return lambda model: FolderEndpoint(settings.api_base or ANSWERS)
    made = {model: Endpoint(model, settings.api_base, timeout_s=settings.timeout_s) for model in settings.models}
    return made.__getitem__


def _first_refused(steps: list[dict[str, Any]]) -> int:
    """First iteration of those at the end that failed for lack of a key or a model."""
    first = len(steps)
    while first and steps[first - 1]["failed"] and steps[first - 1]["outcomes"][-1]["code"] in FATAL:
        first -= 1
    return first


def _attempts(folder: Path | None) -> list[Attempt]:
    """Attempts of the run that is repeated; empty without one."""
    if folder is None:
        return []
    with History(folder) as history:
        return list(history)
