"""The cascade: from cheap checks to the full replay, each refusal with a stable code; templates; the reward.

| stage | codes |
| --- | --- |
| parse | ``parse-`` and the language's own code: syntax, node, call, name, limit, unassigned, result |
| grid | ``grid-`` and the counter-example's: collision, out-of-range, overflow, division-by-zero, signed-division, |
| | shift, step-limit; ``grid-undecided`` if the check ran out of steps |
| lattice | ``lattice-partial``: a bijection here but not on every other grid; scored all the same, with the condition |
| duplicate | ``duplicate`` |
| small replay | ``small-replay-worse``: in lockstep far fewer hits than the launch order, if hits are the objective |
| full replay | ``scored``, or ``scored-partial`` where the bijection holds on some grids only |
| bound | ``above-bound``: a defect of the simulator, never a win |
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from swizzle_sim.language import Swizzle
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.lattice import claim_of, unconditional
from swizzle_sim.language.verdict import Counterexample
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import permutation_digest
from swizzle_sim.search.evaluator import evaluator_like, lockstep_like
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Objective, default_objectives
from swizzle_sim.search.template_search import landscape, search_on
from swizzle_sim.search.templates import read_template
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu, Traffic
from xcd_model.errors import LanguageError, ReplayError, SearchError

# Of hit rate below the launch order, in the lockstep replay. Simulated: of 120 family members on two GEMM sizes on
# MI300X 38 were below by this, and none of them beat the launch order in the timed replay.
FAR_WORSE = 0.10
# Reward of a refused candidate by the stage that refused it; candidates that passed the proof get 0.2.
REFUSED = {"parse": 0.0, "grid": 0.1, "bound": 0.0}


@dataclass(frozen=True, eq=False)
class Judgement:
    """Verdict and score of one candidate.

    Parameters
    ----------
    code : str
        Stable, from the table of this module.
    stage : str
        Stage that decided.
    feedback : str
        For the next prompt.
    verdict : dict
        As `swizzle_sim.language.Verdict.as_dict`, with ``code`` and ``stage``.
    order : (n_workgroups,) int64 or None
        The permutation, where it is one.
    score : Score or None
    """

    code: str
    stage: str
    feedback: str
    verdict: dict[str, Any]
    order: np.ndarray | None = None
    score: Score | None = None


class MemoScorer(Scorer):
    """Scorer that remembers its latest replay, so that the report on a scored order needs no second one."""

    _latest: tuple[bytes, Traffic] | None = None

    @cached_property
    def quick(self) -> Scorer:
        """Scorer by the lockstep replay, which remembers too; this one if it is one."""
        if self.replay == "lockstep":
            return self
        made = MemoScorer(self.kernel, self.gpu, replay="lockstep")
        made.__dict__["plan"], made.__dict__["bound"] = self.plan, self.bound
        return made

    def traffic(self, order: np.ndarray, *, seed: int | None = None, threads: int = 1) -> Traffic:
        """Replay one permutation, or return the latest replay if it was the same; see `Scorer.traffic`."""
        if seed is not None:
            return super().traffic(order, seed=seed, threads=threads)
        digest = permutation_digest(order)
        if self._latest is None or self._latest[0] != digest:
            self._latest = digest, super().traffic(order, threads=threads)
        return self._latest[1]


def quick_of(scorer: Scorer) -> Scorer:
    """Scorer by the lockstep replay for the same kernel and GPU."""
    return scorer.quick if isinstance(scorer, MemoScorer) else lockstep_like(scorer)


class Cascade:
    """Judges candidates for one kernel on one GPU; a permutation judged before is refused as a duplicate.

    Parameters
    ----------
    scorer : Scorer
        Of the full replay.
    objectives : sequence of Objective
        Of the run; empty for the default of the GPU and the replay.
    """

    def __init__(self, scorer: Scorer, objectives: Sequence[Objective] = ()):
        self.scorer = scorer
        self.objectives = tuple(objectives) or default_objectives(scorer.gpu.name, scorer.replay)
        self._quick = quick_of(scorer)
        self._seen: MutableMapping[bytes, int] = {}
        self._figures: dict[int, str] = {}  # of the attempts seen, for the feedback on their duplicates

    def remember(self, attempt: Attempt) -> None:
        """Add the permutation of an earlier attempt with a score to those seen."""
        digest = permutation_digest(self.scorer.permutation(Swizzle.parse(attempt.source)))
        if self._seen.setdefault(digest, attempt.number) == attempt.number and attempt.score is not None:
            self._figures[attempt.number] = _figures(attempt.score)

    def judge(self, source: str, number: int) -> Judgement:
        """Judge one candidate.

        Parameters
        ----------
        source : str
            Text of the candidate.
        number : int
            Attempt that it will be.

        Returns
        -------
        Judgement
        """
        try:
            swizzle = Swizzle.parse(source)
        except LanguageError as error:
            return _refused("parse", f"parse-{error.code}", str(error))
        try:
            verdict = self.scorer.verify(swizzle)
        except LanguageError as error:  # a name that this grid does not define, or a limit of the check
            undecided = error.code == "limit"
            stage, code = ("grid", "grid-undecided") if undecided else ("parse", f"parse-{error.code}")
            return _refused(stage, code, str(error), None if undecided else False)
        plain = verdict.as_dict()
        if not verdict.bijective or verdict.counterexample:
            why = verdict.counterexample
            feedback = f"{why.message}{_coordinates(self.scorer.kernel.grid, why)}" if why else ""
            return _refused("grid", f"grid-{why.code if why else 'collision'}", feedback, plain=plain)
        order = self.scorer.permutation(swizzle)
        if (earlier := self._seen.setdefault(permutation_digest(order), number)) != number:
            name = f"attempt {earlier}" if earlier else "the launch order"
            feedback = f"the same permutation as {name}{self._figures.get(earlier, '')}"
            return _refused("duplicate", "duplicate", feedback, plain=plain)
        partial = ""
        if not unconditional(verdict.domain):
            where = verdict.lattice_counterexample
            partial = f"proved a bijection on this grid; of the others {claim_of(verdict)}." + (
                f" For example {where.message}" if where else ""
            )
        found = self._replay(order, plain, partial)
        self._figures[number] = f", which {found.feedback}" if found.score is None else _figures(found.score)
        return found

    def _replay(self, order: np.ndarray, plain: dict[str, Any], partial: str) -> Judgement:
        try:
            if self._quick is not self.scorer and self.objectives[0].name == "l2_hit_rate":
                quick, launched = self._quick.score_order(order, baseline_us=None), self._quick.baseline
                if quick.l2_hit_rate < launched.l2_hit_rate - FAR_WORSE:
                    feedback = (
                        f"had an L2 hit rate of {100 * quick.l2_hit_rate:.2f} % in a quick replay, far below the "
                        f"{100 * launched.l2_hit_rate:.2f} % of the launch order: not replayed in full"
                    )
                    return _refused("small replay", "small-replay-worse", feedback, plain=plain, order=order)
            score = self.scorer.score_order(order, baseline_us=self.scorer.baseline.time_us)
        except ReplayError as error:
            return _refused("bound", "above-bound", str(error), plain=plain, order=order)
        code = "scored-partial" if partial else "scored"
        stage = "full replay"
        return Judgement(code, stage, partial, {**plain, "code": code, "stage": stage}, order, score)


def _figures(score: Score) -> str:
    return f", which had {100 * score.l2_hit_rate:.2f} % in {score.time_us:.1f} us"


def _coordinates(grid: Grid, why: Counterexample) -> str:
    """Where the tiles of a counter-example lie, on a grid of more than one axis."""
    if len(grid.axes) < 2:
        return ""
    names = f"({', '.join(grid.axes)})"

    def at(tile: int) -> str:
        return f"({', '.join(str(tile // d.stride % d.extent) for d in grid.axes.values())})"

    parts = [f"tile {tile} is {at(tile)}" for tile in (why.tile, why.missing) if tile is not None]
    return f"; as {names}, {' and '.join(parts)}" if parts else ""


def _refused(
    stage: str,
    code: str,
    feedback: str,
    bijective: bool | None = False,
    *,
    plain: dict[str, Any] | None = None,
    order: np.ndarray | None = None,
) -> Judgement:
    domain = "undecided" if bijective is None else "nowhere"
    verdict = plain or {"bijective": bijective, "domain": domain}
    return Judgement(code, stage, feedback, {**verdict, "code": code, "stage": stage}, order)


@dataclass(frozen=True, eq=False)
class TemplateJudgement(Judgement):
    """Judgement of a template: that of its best candidate.

    Parameters
    ----------
    source, name : str
        Of that candidate; the text of the model where there is none.
    """

    source: str = ""
    name: str = ""


class TemplateCascade:
    """Judges templates: searches their parameters, and passes the best candidate to the cascade.

    Parameters
    ----------
    cascade : Cascade
    evaluations : int
        Full replays for each template.
    seed : int
    """

    def __init__(self, cascade: Cascade, evaluations: int, seed: int):
        self._cascade, self._evaluations, self._seed = cascade, evaluations, seed
        scorer = cascade.scorer
        self._evaluator = evaluator_like(scorer)  # with a scorer of its own: the cascade's remembers its latest replay

    @property
    def scorer(self) -> Scorer:
        """Scorer of the search."""
        return self._evaluator.main

    def judge(self, text: str, number: int) -> TemplateJudgement:
        """Judge one template, by the best of its candidates."""
        try:
            template = read_template(text)
            found = search_on(
                self._evaluator,
                [template],
                evaluations=self._evaluations,
                seed=self._seed,
                objectives=self._cascade.objectives,
            )
        except LanguageError as error:
            return self._refused(text, f"template-{error.code}", str(error))
        except SearchError as error:
            return self._refused(text, f"template-{error.code}", str(error))
        tried = found.run.attempts[1:]
        words = landscape(template, found.run.attempts)
        scored = sorted((a for a in tried if a.score is not None), key=lambda a: (a.verdict["costs"], a.number))
        counts = {"stage_two": {"tried": len(tried), "replays": len(scored)}, "template": text}
        if not scored:
            return self._refused(text, "template-nothing", words, **counts)
        best = scored[0]
        judged = self._cascade.judge(best.source, number)
        feedback = f"{judged.feedback} {words}".strip()
        verdict = {**judged.verdict, **counts, "parameters": best.verdict["parameters"]}
        return TemplateJudgement(
            judged.code, judged.stage, feedback, verdict, judged.order, judged.score, source=best.source, name=best.name
        )

    @staticmethod
    def _refused(text: str, code: str, why: str, **more: Any) -> TemplateJudgement:
        verdict = {"bijective": False, "domain": "nowhere", "code": code, "stage": "template", "template": text, **more}
        return TemplateJudgement(code, "template", why, verdict, source=text)


def left_of(scorer: Scorer, score: Score) -> float:
    """How far a hit rate is below what the fewest misses of any order would give it, in its own requests; 0 to 1."""
    return (score.l2_misses - scorer.bound.l2_misses) / score.l2_requests


def reward(kernel: Kernel, text: str, gpu: Gpu, *, replay: str = "timed") -> float:
    """Verifiable reward of one candidate, for training models to write swizzles.

    Parameters
    ----------
    kernel : Kernel
    text : str
        Candidate in the closed language; hostile text costs nothing but a refusal.
    gpu : Gpu
    replay : {"timed", "lockstep"}

    Returns
    -------
    reward : float
        0 for text outside the language, and for one that beats the proven bound (a defect, never a win); 0.1 for text
        of the language that is no bijection at the kernel's grid; 0.2 for a bijection no better than the launch
        order; above that up to 1 with the share that its L2 hit rate gains of the points between the launch order and
        the fewest misses of any order. A candidate that holds only on some grids of the lattice gets nine tenths of
        the part above 0.2.

    Notes
    -----
    The same candidate gets the same reward in every process. Nothing of the text is ever executed, every workgroup of
    the grid is checked before any score, and the score comes from a replay: there is nothing to game but the model.
    """
    return reward_of(Cascade(_scorer(kernel, gpu, replay)).judge(text, 0), _scorer(kernel, gpu, replay))


def reward_of(found: Judgement, scorer: Scorer) -> float:
    """Reward of a judgement of the cascade."""
    if found.score is None:
        return REFUSED.get(found.stage, 0.2)
    gain = found.score.l2_hit_rate - scorer.baseline.l2_hit_rate
    room = gain + max(0.0, left_of(scorer, found.score))
    part = min(1.0, max(0.0, gain / room)) if room > 0 else 0.0
    return 0.2 + 0.8 * part * (1.0 if found.code == "scored" else 0.9)


@lru_cache(maxsize=4)
def _scorer(kernel: Kernel, gpu: Gpu, replay: str) -> Scorer:
    return Scorer(kernel, gpu, replay=replay)
