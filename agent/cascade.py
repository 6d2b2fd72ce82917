"""The cascade: cheap checks first, and a verdict with a stable code from whichever stage says no.

| stage | codes |
| --- | --- |
| parse | ``parse-`` and the language's own code: syntax, node, call, name, limit, unassigned, result |
| grid | ``grid-`` and the counter-example's: collision, out-of-range, overflow, division-by-zero, signed-division, |
| | shift, step-limit; ``grid-undecided`` if the check ran out of steps |
| lattice | ``lattice-partial``: a bijection here but not on every other grid. It goes on, with the condition named |
| duplicate | ``duplicate`` |
| small replay | ``small-replay-worse``: the lockstep replay is far below the order as launched |
| full replay | ``scored``, or ``scored-partial`` where the lattice stage had something to say |
| bound | ``above-bound``: a defect of the simulator, never a win |
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from swizzle_sim.scoring import Score, Scorer
from swizzle_sim.swizzle import Swizzle
from xcd_model import Traffic
from xcd_model.errors import LanguageError, ReplayError

# Of hit rate below the order as launched, in lockstep. Simulated: of 120 family members on two GEMM sizes on MI300X 38
# were below by this, and none of them beat the order as launched in the timed replay.
FAR_WORSE = 0.10


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the cascade found.

    Parameters
    ----------
    code : str
        Stable, from the table of this module.
    stage : str
        Stage that decided.
    feedback : str
        For the next prompt.
    verdict : dict
        As `swizzle_sim.swizzle.Verdict.as_dict`, with ``code`` and ``stage``.
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


class RecallingScorer(Scorer):
    """A scorer that keeps its latest replay: what was just scored is reported on without another."""

    _latest: tuple[bytes, Traffic] | None = None

    def traffic(self, order: np.ndarray, *, seed: int | None = None, threads: int = 1) -> Traffic:
        """Replay one permutation, or recall it; see `Scorer.traffic`."""
        if seed is not None:
            return super().traffic(order, seed=seed, threads=threads)
        digest = _digest(order)
        if self._latest is None or self._latest[0] != digest:
            self._latest = digest, super().traffic(order, threads=threads)
        return self._latest[1]


class Cascade:
    """Judges candidates for one kernel on one GPU, and remembers which permutations it has seen.

    Parameters
    ----------
    scorer : Scorer
        Of the full replay.
    """

    def __init__(self, scorer: Scorer):
        self.scorer = scorer
        same = scorer.replay == "lockstep"
        self._small = scorer if same else Scorer(scorer.kernel, scorer.gpu, replay="lockstep")
        if not same:
            self._small.__dict__["plan"] = scorer.plan  # one trace serves both
        self._seen: MutableMapping[bytes, int] = {}

    def remember(self, source: str, number: int) -> None:
        """Note the permutation of an attempt that was judged earlier."""
        self._seen.setdefault(_digest(self.scorer.permutation(Swizzle.parse(source))), number)

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
        except LanguageError as error:  # a name that this grid has not, or a cap of ours
            undecided = error.code == "limit"
            stage, code = ("grid", "grid-undecided") if undecided else ("parse", f"parse-{error.code}")
            return _refused(stage, code, str(error), None if undecided else False)
        plain = verdict.as_dict()
        if not verdict.bijective or verdict.counterexample:
            why = verdict.counterexample
            return _refused("grid", f"grid-{why.code if why else 'collision'}", why.message if why else "", plain=plain)
        order = self.scorer.permutation(swizzle)
        if (earlier := self._seen.setdefault(_digest(order), number)) != number:
            return _refused("duplicate", "duplicate", f"the same permutation as attempt {earlier}", plain=plain)
        partial = ""
        if verdict.domain != "everywhere":
            where = verdict.lattice_counterexample
            partial = f"a bijection on this grid, but elsewhere only where: {verdict.domain}." + (
                f" For example {where.message}" if where else ""
            )
        return self._replay(order, plain, partial)

    def _replay(self, order: np.ndarray, plain: dict[str, Any], partial: str) -> Judgement:
        try:
            if self._small is not self.scorer:
                quick, launched = self._small.score_order(order, baseline_us=None), self._small.baseline
                if quick.l2_hit_rate < launched.l2_hit_rate - FAR_WORSE:
                    feedback = (
                        f"L2 hit rate {100 * quick.l2_hit_rate:.2f} % in a quick replay, far below the "
                        f"{100 * launched.l2_hit_rate:.2f} % of the order as launched: not replayed in full"
                    )
                    return _refused("small replay", "small-replay-worse", feedback, plain=plain, order=order)
            score = self.scorer.score_order(order, baseline_us=self.scorer.baseline.time_us)
        except ReplayError as error:
            return _refused("bound", "above-bound", str(error), plain=plain, order=order)
        code = "scored-partial" if partial else "scored"
        stage = "full replay"
        return Judgement(code, stage, partial, {**plain, "code": code, "stage": stage}, order, score)


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


def _digest(order: np.ndarray) -> bytes:
    return blake2b(order.tobytes(), digest_size=16).digest()
