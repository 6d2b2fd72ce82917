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
from functools import cached_property
from pathlib import Path
from typing import Any

from swizzle_sim.search.candidates import LAUNCH_ORDER
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.ranking import uneven_of
from swizzle_sim.search.strategies.families import is_settled
from swizzle_sim.workload.kernels import Kernel, kernel
from xcd_model import Gpu
from xcd_model.errors import ModelError

from .cached_lm import CachedLM, Retry, candidate_text
from .endpoint import Endpoint
from .prompts import Briefing, memory_program, propose_program
from .providers import FOLDER, load_dspy, provider_of
from .settings import Prices, Settings
from .transcript import Position, Transcript
from .verifiable import Reward, answer_reward, scorer_for

PURPOSE = "tune"
FULL_MARKS = 0.999  # reward from which there is nothing to tune


def stem_of(one: Kernel) -> str:
    """Name of a kernel and those of its sizes that are not the default, for a file or a table."""
    usual = {} if one.file else kernel(one.name).problem
    return "-".join([one.name, *(f"{k}{v}" for k, v in one.problem.items() if usual.get(k) != v)])


@dataclass(frozen=True)
class Tuned:
    """Result of tuning."""

    program: Path  # saved program, for ``--program``
    # reward of each held-out kernel, by `stem_of`, under the instructions as shipped and as tuned
    before: dict[str, float]
    after: dict[str, float]
    instructions: str
    asks: int


class _NumberedLM:
    """Engine for DSPy's own loop: numbers its requests, which have no place in a run, and retries them."""

    def __init__(self, lm: CachedLM, retry: Retry):
        self._lm, self._retry, self.asks = lm, retry, 0

    def complete(self, request: Any) -> Any:
        number = self.asks
        self.asks += 1
        return self._lm.retried(Position(number, PURPOSE, 0, 0), lambda: self._lm.complete(request), self._retry)


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Kernels, model and limits of a tuning."""

    train: Sequence[Kernel]  # at least one each
    held_out: Sequence[Kernel]
    gpu: Gpu
    # takes the transcript, ``program.json`` and ``tuned.json``. Used again with the same arguments, its answers are
    # looked up.
    folder: Path
    settings: Settings  # the first model proposes, the last one reflects
    calls: int  # candidates that tuning may have judged
    prices: Prices
    replay: str = "timed"
    reward: Reward | None = None  # of an attempt, in place of `verifiable.reward_of`

    def __post_init__(self):
        if not self.train or not self.held_out:
            raise ModelError("tuning needs kernels to train on and others to hold out", code="tune")
        if FOLDER in map(provider_of, self.settings.models):
            raise ModelError(f"{FOLDER}/ answers file by file, tuning asks hundreds: name a served model", code="tune")


def tune_prompt(
    task: Tuning,
    *,
    endpoint_of: Callable[[str], Endpoint] | None = None,
    sleep: Callable[[float], None] = time.sleep,
    say: Callable[[str], None] = lambda line: None,
) -> Tuned:
    """Tune the instructions on some kernels and measure on others; ``say`` takes lines of progress."""
    dspy, settings = load_dspy(), task.settings
    task.folder.mkdir(parents=True, exist_ok=True)
    with Transcript(task.folder) as transcript:
        made = endpoint_of or (lambda m: Endpoint(m, settings.api_base, timeout_s=settings.timeout_s))
        lm = CachedLM(transcript, made, task.prices, settings.seed)
        engine = _NumberedLM(lm, Retry(settings.tries, sleep))
        options = {"cache": False, "num_retries": 0, "engine": engine, "temperature": settings.temperature}
        proposer, reflector = (dspy.LM(settings.models[i], **options) for i in (0, -1))
        training, testing = ([_Judge(one, task) for one in kernels] for kernels in (task.train, task.held_out))
        adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        with dspy.context(lm=proposer, adapter=adapter, disable_history=True):
            program = propose_program(image=False)
            before = _rewards(program, testing)
            training = _worth_tuning(program, training, say)
            tuned = _compiled(dspy, program, training, reflector, task, say) if training else program
            after = _rewards(tuned, testing) if training else before
    return _saved(tuned, before, after, engine.asks, task.folder)


def _worth_tuning(program: Any, judges: Sequence[_Judge], say: Callable[[str], None]) -> list[_Judge]:
    """Kernels on which there is something to gain that the program does not gain already."""
    left = []
    for judge in judges:
        if judge.settled or _rewards(program, [judge])[judge.name] >= FULL_MARKS:
            say(f"{judge.name}: left out, nothing is left to gain beyond the instructions as shipped")
        else:
            left.append(judge)
    return left


def _compiled(
    dspy: Any, program: Any, judges: Sequence[_Judge], reflector: Any, task: Tuning, say: Callable[[str], None]
) -> Any:
    """The program with the instructions that GEPA finds."""
    by_name = {judge.name: judge for judge in judges}
    terminal, judged = sys.stderr, itertools.count(1)

    def metric(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
        score, feedback = by_name[gold.kernel].judge(pred)
        with contextlib.redirect_stderr(terminal):
            say(f"candidate {next(judged)} of about {task.calls}, {gold.kernel}: reward {score:.3f}")
        return dspy.Prediction(score=score, feedback=feedback)

    examples = [judge.example(dspy) for judge in judges]
    gepa = dspy.GEPA(
        metric=metric,
        max_metric_calls=task.calls,
        reflection_lm=reflector,
        reflection_minibatch_size=min(3, len(examples)),
        num_threads=1,
        seed=task.settings.seed,
        use_merge=False,
    )
    bars = io.StringIO()  # GEPA has no way to leave out its progress bars
    with contextlib.redirect_stdout(bars), contextlib.redirect_stderr(bars):
        return gepa.compile(program, trainset=examples, valset=examples)


def _saved(tuned: Any, before: dict[str, float], after: dict[str, float], asks: int, where: Path) -> Tuned:
    """Write the program and its rewards."""
    tuned.lm = None
    path = where / "program.json"
    path.write_text(json.dumps(tuned.dump_state(), indent=1) + "\n", encoding="utf-8")
    found = Tuned(path, before, after, tuned.signature.instructions, asks)
    record = {"before": before, "after": after, "instructions": found.instructions, "asks": found.asks}
    (where / "tuned.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return found


def _rewards(program: Any, judges: Sequence[_Judge]) -> dict[str, float]:
    """Reward of a program on each kernel; an answer that cannot be read earns nothing."""
    found = {}
    for judge in judges:
        try:
            found[judge.name] = judge.judge(program(**judge.inputs))[0]
        except Exception as error:
            if isinstance(error, KeyboardInterrupt | MemoryError):
                raise
            found[judge.name] = 0.0
    return found


class _Judge:
    """One kernel: the inputs of its first question, and the reward of an answer."""

    def __init__(self, one: Kernel, task: Tuning):
        self.name, self._scorer, self._reward = stem_of(one), scorer_for(one, task.gpu, task.replay), task.reward
        self._settings, self.settled = task.settings, is_settled(self._scorer)

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """Inputs of the first question, as `optimize` puts it; of a kernel that says nothing the model is asked."""
        judge = Judge(self._scorer)
        with Transcript(None) as notes:
            briefing = Briefing(self._scorer, self._settings, notes, None, judge.ranking)
            said = briefing.analysis or str(memory_program()(**briefing.memory()).locality_analysis)
            return briefing.proposal([judge.judge(LAUNCH_ORDER, 0)], said)

    def example(self, dspy: Any) -> Any:
        """Example for GEPA."""
        return dspy.Example(kernel=self.name, **self.inputs).with_inputs(*self.inputs)

    def judge(self, answer: Any) -> tuple[float, str]:
        """Reward of an answer, and the reason for it."""
        paid, found = answer_reward(candidate_text(str(answer.swizzle)), self._scorer, self._reward)
        if found is None:
            return paid, "right: nothing is left to gain" if self.settled else "something is left to gain"
        text = f"{found.verdict['code']}. {found.critique}"
        if found.score is not None:
            score = found.score
            text = (
                f"{text} L2 hit rate {100 * score.l2_hit_rate:.2f} %, launch order "
                f"{100 * self._scorer.baseline.l2_hit_rate:.2f} %, bound {100 * score.bound_l2_hit_rate:.2f} %; "
                f"makespan over ideal {uneven_of(score):.2f}, launch order {uneven_of(self._scorer.baseline):.2f}."
            )
        return paid, text
