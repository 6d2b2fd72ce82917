"""`Judge`: from a candidate to its `Attempt`, by rungs of rising cost; each refusal has a stage and a stable code.

| stage | codes |
| --- | --- |
| parse | ``parse-`` and the language's own code: syntax, node, call, name, limit, unassigned, result |
| grid | ``grid-`` and the counter-example's: collision, out-of-range, overflow, division-by-zero, signed-division, |
| | shift, step-limit, deadlock; ``grid-undecided`` if the check ran out of steps |
| duplicate | ``duplicate`` |
| bound | ``bound``: no cache lets it beat the best so far; ``above-bound``: a defect of the simulator, never a win |
| sampled, screen | the same words: in the worse half of its batch on a few XCDs, or in lockstep |
| small replay | ``small-replay-worse``: in lockstep far fewer hits than the launch order |
| full replay | ``scored``, or ``scored-partial`` where the bijection holds on some grids of the lattice only |

Which rungs there are is the strategy's choice: a search of thousands prunes by bound and screens, a model's candidate
is spared a full replay if it is far worse, and families are all replayed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from swizzle_sim.language import Swizzle, Verdict, family, is_spec
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.lattice import claim_of, unconditional
from swizzle_sim.language.verdict import Counterexample
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.bench import Bench, costs_of, score_alone, score_on
from swizzle_sim.search.candidates import LAUNCH_ORDER, Candidate, permutation_digest
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import OBJECTIVES, Objective, Ranking, default_objectives
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import LanguageError, NotBijective, ReplayError, SearchError, UnknownName

FULL_REPLAY = "full replay"
BY_BOUND = (OBJECTIVES["l2_hit_rate"],)  # objectives that the bound of an assignment bounds
COUNTED = (*BY_BOUND, OBJECTIVES["hbm_bytes"])  # that the lockstep replay screens for: its times rank no orders
SCREENS = {
    "sampled": "in the worse half of its batch on a sample of XCDs",
    "screen": "in the worse half of its batch in the lockstep replay",
}
# Of hit rate below the launch order, in the lockstep replay. Simulated: of 120 family members on two GEMM sizes on
# MI300X 38 were below by this, and none of them beat the launch order in the timed replay.
FAR_WORSE = 0.10


@dataclass(eq=False)
class Look:
    """A candidate before any replay: its permutation at each size, or the attempt that it already is."""

    candidate: Candidate
    number: int
    attempt: Attempt | None = None
    swizzle: Swizzle | None = None
    orders: tuple[np.ndarray, ...] = ()
    screened: tuple[float, ...] = ()
    took_ms: float = 0.0

    def refused(self, stage: str, code: str, why: str, **known: Any) -> Look:
        """The same look, at an attempt without a score."""
        bijective = known.pop("bijective", True)
        domain = "this grid" if bijective else "undecided" if bijective is None else "nowhere"
        verdict = {"bijective": bijective, "domain": domain, **known, **self.candidate.told}
        self.attempt = self.made({**verdict, "code": code, "stage": stage}, None, why)
        return self

    def made(self, verdict: dict[str, Any], score: Score | None, critique: str) -> Attempt:
        """Attempt of the candidate."""
        more = {"screened": list(self.screened)} if self.screened else {}
        return Attempt(
            number=self.number,
            name=self.candidate.name,
            source=self.candidate.source,
            proposer=self.candidate.proposer,
            verdict={**verdict, **more},
            score=score,
            critique=critique,
            cost_ms=self.took_ms,
        )


class Judge:
    """Judges the candidates of one run; a permutation that was judged before is refused as a duplicate.

    ``bench`` is a scorer, or scorers at several sizes: then a candidate must be a bijection at each, and the mean gain
    counts. ``prunes`` adds the rungs of a search, ``far_worse`` the small replay where hits are the objective;
    ``alone`` leaves out the launch order, whose replay the speedup takes.
    """

    first: tuple[Candidate, ...] = (LAUNCH_ORDER,)  # judged before what a strategy proposes

    def __init__(
        self,
        bench: Bench | Scorer,
        objectives: Sequence[Objective] = (),
        *,
        prunes: bool = False,
        far_worse: bool = False,
        alone: bool = False,
    ):
        self.bench = bench if isinstance(bench, Bench) else Bench(bench)
        self.scorer = scorer = self.bench.main
        self.objectives = tuple(objectives) or default_objectives(scorer.gpu.name, scorer.replay, scorer.work_class)
        self.prunes, self._score = prunes, score_alone if alone else score_on
        quick = scorer.quick if far_worse and self.objectives[0].name == "l2_hit_rate" else scorer
        self._quick = None if quick is scorer else quick
        self.map: Callable[..., Iterable[Any]] = map  # that of the loop's threads, while there is one
        self.best = self._best_screened = math.inf
        self._seen: dict[bytes, int] = {}
        self._words: dict[int, str] = {}  # of the attempts seen, for the critique of their duplicates
        self._costs: dict[int, tuple[float, ...]] = {}
        self._repeats: dict[int, int] = {}
        self._notes: dict[int, str] = {}

    @property
    def kernel(self) -> Kernel:
        """The kernel, at its main size."""
        return self.scorer.kernel

    @property
    def gpu(self) -> Gpu:
        """The GPU."""
        return self.scorer.gpu

    @property
    def ranking(self) -> Ranking:
        """Ranking of the run."""
        return Ranking(self.objectives, len(self.bench.scorers), self.scorer.gpu.name)

    @cached_property
    def by_bound(self) -> bool:
        """Whether the bound rules candidates out; uneven work breaks the ties at the bound, so there it does not."""
        if not self.prunes or self.objectives != BY_BOUND or not self.bench.is_cold:
            return False
        return not any(scorer.work.uneven for scorer in self.bench.scorers)

    @cached_property
    def screens(self) -> str:
        """What the worse half of a batch is found by: a sample of XCDs, the lockstep replay, or nothing."""
        if not self.prunes or self.by_bound:
            return "sampled" if self.by_bound else ""
        return "screen" if all(one in COUNTED for one in self.objectives) and self.bench.lockstep else ""

    @property
    def at_bound(self) -> bool:
        """Whether the bound on the hit rate is reached, where that decides."""
        return self.by_bound and -self.best >= self.bench.room - 1e-12

    def judge(self, candidate: Candidate | str, number: int = 1) -> Attempt:
        """Attempt of one candidate, for which the launch order is replayed if it was not yet."""
        found = self.worded(self.replay(self.look(as_candidate(candidate), number)))
        self.learn(found)
        return found

    def orders(self, source: str) -> tuple[np.ndarray, ...]:
        """Permutation of a text at each size; raises NotBijective or LanguageError."""
        swizzle = as_candidate(source).swizzle
        return tuple(scorer.permutation(swizzle) for scorer in self.bench.scorers)

    def look(self, candidate: Candidate, number: int) -> Look:
        """All rungs that cost next to nothing; in the order of the numbers, as the first of two equals counts."""
        began, self._notes[number] = time.perf_counter(), candidate.note
        look = self._bounded(self._ordered(Look(candidate, number)))
        look.took_ms = (time.perf_counter() - began) * 1e3
        if look.attempt is not None:
            look.attempt = replace(look.attempt, cost_ms=look.took_ms)
        return look

    def _ordered(self, look: Look) -> Look:
        candidate = look.candidate
        if candidate.refusal:
            stage = "parse" if candidate.refusal[0].startswith("parse-") else "template"
            return look.refused(stage, *candidate.refusal, bijective=False)
        if candidate.order is not None:
            look.orders = (candidate.order,)
            return look
        try:
            look.swizzle = candidate.swizzle
        except LanguageError as error:
            return look.refused("parse", f"parse-{error.code}", str(error), bijective=False)
        found = []
        for scorer in self.bench.scorers:
            try:
                found.append(scorer.permutation(look.swizzle))
            except LanguageError as error:  # a name that this grid does not define, or a limit of the check
                undecided = error.code == "limit"
                stage, code = ("grid", "grid-undecided") if undecided else ("parse", f"parse-{error.code}")
                return look.refused(stage, code, str(error), bijective=None if undecided else False)
            except NotBijective as error:
                return self._not_bijective(look, scorer, error)
        look.orders = tuple(found)
        return look

    def _not_bijective(self, look: Look, scorer: Scorer, error: NotBijective) -> Look:
        assert look.swizzle
        verdict = scorer.verify(look.swizzle, lattice=not self.prunes)
        why = verdict.counterexample
        message = f"{why.message}{_coordinates(scorer.kernel.grid, why)}" if why else str(error)
        plain = {**verdict.as_dict(), "bijective": False}
        return look.refused("grid", f"grid-{why.code if why else 'collision'}", message, **plain)

    def _bounded(self, look: Look) -> Look:
        if look.attempt is not None:
            return look
        earlier = self._seen.setdefault(permutation_digest(*look.orders), look.number)
        if earlier != look.number:
            self._repeats[look.number] = earlier
            name = f"attempt {earlier}" if earlier else "the launch order"
            return look.refused("duplicate", "duplicate", f"the same permutation as {name}")
        if look.number and self.by_bound and (gain := self.bench.bound_gain(look.orders)) <= -self.best:
            points = f"{100 * gain:.2f} points with any cache, the best so far {-100 * self.best:.2f}"
            return look.refused("bound", "bound", f"gains at most {points}")
        return look

    def sample(self, candidate: Candidate) -> float:
        """Cost of a candidate on a sample of XCDs; infinite for what is no bijection here."""
        try:
            return self.bench.sample(self.orders(candidate.source))
        except (LanguageError, NotBijective):
            return math.inf

    def screen(self, looks: Sequence[Look]) -> None:
        """Refuse the worse half of a batch, except candidates better than all that were screened before."""
        if not self.screens:
            return
        doubtful = [one for one in looks if one.attempt is None and not one.candidate.sure and not one.screened]
        for look, costs in zip(doubtful, self.map(self._screened, doubtful), strict=True):
            look.screened = costs
        costs_by = {look.number: sum(look.screened) for look in looks if look.screened}
        half = sorted(costs_by.values())[(len(costs_by) - 1) // 2] if costs_by else 0.0
        for look in looks:
            cost = costs_by.get(look.number, -math.inf)
            if cost > half and cost > self._best_screened:
                look.refused(self.screens, self.screens, SCREENS[self.screens])
        self._best_screened = min([self._best_screened, *costs_by.values()])

    def _screened(self, look: Look) -> tuple[float, ...]:
        if self.screens == "sampled":
            return (self.bench.sample(look.orders),)
        return self.bench.screen(look.orders, self.objectives)

    def replay(self, look: Look) -> Attempt:
        """Attempt of a candidate that was looked at; in any thread, and in any order."""
        if look.attempt is not None:
            return look.attempt
        began = time.perf_counter()
        found = self._replayed(look)
        return replace(found, cost_ms=look.took_ms + (time.perf_counter() - began) * 1e3)

    def _replayed(self, look: Look) -> Attempt:
        try:
            if look.number and self._quick is not None and (why := self._far_worse(self._quick, look.orders[0])):
                return _attempt(look.refused("small replay", "small-replay-worse", why))
            scores = [self._score(*pair) for pair in zip(self.bench.scorers, look.orders, strict=True)]
        except ReplayError as error:
            return _attempt(look.refused("bound", "above-bound", str(error)))
        plain, partial = {"bijective": True, "domain": "this grid"}, ""
        if look.swizzle is not None:
            try:
                found = self.scorer.verify(look.swizzle)
            except LanguageError as error:
                return _attempt(look.refused("parse", f"parse-{error.code}", str(error), bijective=False))
            if not found.bijective:  # the permutation said otherwise: a defect, and never a score
                return _attempt(look.refused("grid", "grid-collision", "no bijection", **found.as_dict()))
            plain, partial = found.as_dict(), _partly(found)
        code = "scored-partial" if partial else "scored"
        verdict = {**plain, **look.candidate.told, "code": code, "stage": FULL_REPLAY}
        return look.made(verdict | self._of_search(look, scores), scores[0], partial)

    def _far_worse(self, quick: Scorer, order: np.ndarray) -> str:
        found, launched = score_on(quick, order).l2_hit_rate, quick.baseline.l2_hit_rate
        if found >= launched - FAR_WORSE:
            return ""
        return (
            f"had an L2 hit rate of {100 * found:.2f} % in a quick replay, far below the {100 * launched:.2f} % of the "
            "launch order: not replayed in full"
        )

    def _of_search(self, look: Look, scores: Sequence[Score]) -> dict[str, Any]:
        """Costs that a search goes by, and the figures at each size of several."""
        if not self.prunes:
            return {}
        costs = costs_of(self.bench.scorers, scores, self.objectives) if look.number else (0.0,) * len(self.objectives)
        sizes = [
            {"problem": dict(scorer.kernel.problem), "l2_hit_rate": score.l2_hit_rate, "time_us": score.time_us}
            for scorer, score in zip(self.bench.scorers, scores, strict=True)
        ]
        return {"costs": list(costs), "sizes": sizes if len(sizes) > 1 else []}

    def worded(self, attempt: Attempt) -> Attempt:
        """Attempt whose critique has the figures of the one that it repeats, and what its strategy says of it."""
        words = self._words.get(self._repeats.get(attempt.number, -1), "")
        return replace(attempt, critique=f"{attempt.critique}{words} {self._notes[attempt.number]}".strip())

    def learn(self, attempt: Attempt) -> None:
        """Take an attempt that is stored into what later candidates are judged by."""
        score, stage = attempt.score, attempt.verdict.get("stage")
        if score is not None:
            self._costs[attempt.number] = self.ranking.cost(attempt)
            self.best = min(self.best, self._costs[attempt.number][0])
            time = f" in {score.time_us:.1f} us" if self.ranking.main.name == "time" else ""
            self._words[attempt.number] = f", which had {100 * score.l2_hit_rate:.2f} %{time}"
        elif stage == "small replay":
            self._words[attempt.number] = f", which {attempt.critique}"

    def cost(self, attempt: Attempt) -> float:
        """What the run minimises; infinite without a score, of a duplicate that of the first."""
        costs = self.costs(attempt)
        return costs[0] if costs else math.inf

    def costs(self, attempt: Attempt) -> tuple[float, ...] | None:
        """Costs that a sampler learns from: those of the replay, of the sample, or of the attempt that is repeated."""
        if attempt.verdict.get("stage") == "sampled":
            return tuple(attempt.verdict["screened"])  # an estimate of the same figure: better than none
        return self._costs.get(self._repeats.get(attempt.number, attempt.number))


def _attempt(look: Look) -> Attempt:
    assert look.attempt
    return look.attempt


def as_candidate(given: Candidate | str, proposer: str = "given", number: int = 1) -> Candidate:
    """Candidate of a family's specification, or of a text of the language."""
    if isinstance(given, Candidate):
        return given
    if not isinstance(given, str):
        raise SearchError(f"a strategy yields texts or candidates, or lists of them, not {given!r}", code="strategy")
    name = f"{proposer} {number}"
    if not is_spec(given):
        return Candidate(name, given, proposer)
    try:
        return Candidate(given.strip(), family(given), proposer)
    except LanguageError as error:
        return Candidate(name, given, proposer, refusal=(f"parse-{error.code}", str(error)))
    except UnknownName as error:
        return Candidate(name, given, proposer, refusal=("parse-name", str(error)))


def _partly(verdict: Verdict) -> str:
    """Of a bijection that does not hold everywhere, where it does."""
    if unconditional(verdict.domain):
        return ""
    where = verdict.lattice_counterexample
    example = f" For example {where.message}" if where else ""
    return f"proved a bijection on this grid; of the others {claim_of(verdict)}.{example}"


def _coordinates(grid: Grid, why: Counterexample) -> str:
    """Where the tiles of a counter-example lie, on a grid of more than one axis."""
    if len(grid.axes) < 2:
        return ""
    names = f"({', '.join(grid.axes)})"

    def at(tile: int) -> str:
        return f"({', '.join(str(tile // d.stride % d.extent) for d in grid.axes.values())})"

    parts = [f"tile {tile} is {at(tile)}" for tile in (why.tile, why.missing) if tile is not None]
    return f"; as {names}, {' and '.join(parts)}" if parts else ""


def left_of(scorer: Scorer, score: Score) -> float:
    """How far a hit rate is below what the fewest misses of any order would give it, in its own requests; 0 to 1."""
    return (score.l2_misses - scorer.bound.l2_misses) / score.l2_requests
