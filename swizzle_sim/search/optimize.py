"""`optimize`: score candidates into a run folder, and `RunConfig`, `open_run` and `about_run` of every run.

Each candidate goes parse → permutation at the grid → duplicate? → replay → lattice of other grids, and stops at the
first refusal. Replays run in threads (the compiled code holds no lock); attempts are stored in the order proposed, so
a run is the same for any number of threads. The search of templates is `swizzle_sim.search.template_search`.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.release import version
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.pricing.sharing import shared_lines
from swizzle_sim.search.candidates import (
    Candidate,
    distinct_shortlist,
    family_candidates,
    family_specs,
    permutation_digest,
    shortlist,
)
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.ranking import Objective, Ranking, chosen_objectives, default_objectives, ranking_of
from swizzle_sim.search.ranking.objectives import HIT_RATE
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import LanguageError, RunError

LOOKUPS = 3.6e9  # of a run of families without a limit of time, as `Scorer.lookups`: half a minute on two cores
FEWEST = 12  # candidates that are tried, however long that takes
NOTHING_TO_GAIN = 1e-3  # of the requests: the launch order is at the bound but for that
SHARE_NOTHING = 2e-3  # of the lines: what is left is a line in which many rows have a number each, and is tried
CORNER = 1 / 16  # of an L2: lines that all workgroups share and that fit there stay in any order
SETTLED = 2  # candidates that are tried then: the launch order, and the first of the shortlist, for its time
OnAttempt = Callable[[Attempt, int, int], None]


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How a run is made, whatever proposes its candidates.

    Parameters
    ----------
    replay : {"timed", "lockstep"}
    objective : str or None
        What attempts are ranked by: time, l2_hit_rate, hbm_bytes or energy, or two with a comma; None for time where
        the times of the replay rank orders of the GPU, else the hit rate.
    seed : int
        Of the timed replay and of samplers.
    jitter_ns : float [ns]
        See `Scorer`.
    threads : int or None
        None for one a core; the result does not depend on it.
    resume : bool
        Go on where the run in the folder stopped; its attempts are not repeated.
    command : str
        Noted as the command that made the run.
    on_attempt : callable or None
        Called as ``on_attempt(attempt, done, total)`` after each attempt is stored.
    max_minutes : float or None
        No candidate is begun after that long; the run can be resumed. Without it, where the replays of all families
        would need more than `LOOKUPS`, as many are tried as that allows. Either way the first of
        `swizzle_sim.search.candidates.shortlist`.
    """

    replay: str = "timed"
    objective: str | None = None
    seed: int = 0
    jitter_ns: float = 0.0
    threads: int | None = None
    resume: bool = False
    command: str = ""
    on_attempt: OnAttempt | None = None
    max_minutes: float | None = None

    @property
    def n_threads(self) -> int:
        """Replays at a time."""
        return self.threads or os.cpu_count() or 1

    def objectives_on(self, gpu: Gpu) -> tuple[Objective, ...]:
        """Objectives on a GPU; raises as `swizzle_sim.search.ranking.read_objectives`."""
        return chosen_objectives(self.objective, gpu.name, self.replay)

    @property
    def of_scorer(self) -> dict[str, Any]:
        """Keyword arguments of a `Scorer`."""
        return {"replay": self.replay, "seed": self.seed, "jitter_ns": self.jitter_ns}


@dataclass(frozen=True, eq=False)
class Run:
    """A finished or interrupted search.

    Parameters
    ----------
    folder : Path
    attempts : tuple of Attempt
        All of them; the first is the baseline.
    ranking : Ranking
    """

    folder: Path
    attempts: tuple[Attempt, ...]
    ranking: Ranking = field(default_factory=Ranking)

    @property
    def baseline(self) -> Attempt:
        """The launch order."""
        return self.attempts[0]

    @property
    def ranked(self) -> list[Attempt]:
        """Attempts with a score, best first."""
        return self.ranking.order(self.attempts)

    @property
    def best(self) -> Attempt:
        """The best attempt; the baseline if nothing beats it."""
        return self.ranked[0]


def about_run(scorer: Scorer, command: str = "", objectives: Sequence[Objective] = ()) -> dict[str, Any]:
    """Record of a run folder: enough to score its candidates another time, and to rank them."""
    objectives = objectives or default_objectives(scorer.gpu.name, scorer.replay)
    return {
        "kernel": scorer.kernel.name,
        "kernel_file": scorer.kernel.file,
        "kernel_digest": scorer.kernel.digest,
        "problem": dict(scorer.kernel.problem),
        "gpu": scorer.gpu.name,
        "gpu_description": scorer.gpu.as_dict(),
        "resources": asdict(scorer.kernel.resources),
        "replay": scorer.replay,
        "objectives": [one.name for one in objectives],
        "seed": scorer.seed,
        "jitter_ns": scorer.jitter_ns,
        "version": version(),
        "command": command,
        **({"cluster": scorer.kernel.clusters.size} if scorer.kernel.clusters else {}),
    }


def optimize(
    kernel: Kernel,
    gpu: Gpu,
    folder: str | Path,
    *,
    candidates: Sequence[Candidate] | None = None,
    scorer: Scorer | None = None,
    **options: Any,
) -> Run:
    """Try candidates on a kernel and rank them by time, or by L2 hit rate where times do not rank orders of the GPU.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    folder : path
        Run folder to make; with ``resume`` one that an earlier call left.
    candidates : sequence of Candidate, optional
        By default the published families over their parameters.
    scorer : Scorer, optional
        Of the kernel on the GPU, where the caller has use for it afterwards: the trace, the bound and the launch
        order's replay are in it. Its replay, seed and jitter are those of the run.
    **options
        Fields of `RunConfig`.

    Returns
    -------
    Run

    Raises
    ------
    RunError
        If the folder exists and ``resume`` is off, or the run in it has other settings.

    Source: the loop and its objective are those of SwizzlePerf (arXiv 2508.20258), with a simulator for the GPU.
    """
    if scorer is not None:
        options |= {"replay": scorer.replay, "seed": scorer.seed, "jitter_ns": scorer.jitter_ns}
    how = RunConfig(**options)
    scorer = scorer or Scorer(kernel, gpu, **how.of_scorer)
    objectives = how.objectives_on(gpu)
    about = about_run(scorer, how.command, objectives)
    if candidates is None and not how.resume and (most := most_candidates(scorer, objectives, how.max_minutes)):
        about["most_candidates"] = most
    with open_run(Path(folder), about, how.resume) as history:
        planned = [Candidate("identity", family("identity"), "baseline")]
        planned += _families(scorer, history.about.get("most_candidates")) if candidates is None else candidates
        with history.running():
            _try_all(scorer, planned, history, how)
        return Run(history.folder, tuple(history), ranking_of(history.about))


def most_candidates(scorer: Scorer, objectives: Sequence[Objective], max_minutes: float | None = None) -> int | None:
    """Candidates of a run of families, the launch order among them, as `shortlist` has them.

    Parameters
    ----------
    scorer : Scorer
    objectives : sequence of Objective
    max_minutes : float or None

    Returns
    -------
    most : int or None
        None for all of them, in the order of their families: there is time enough.
    """
    if tuple(objectives) == (HIT_RATE,) and is_settled(scorer):
        return SETTLED
    every = 1 + sum(1 for _ in family_specs(scorer.kernel, scorer.gpu))
    most = every if max_minutes is not None else max(FEWEST, int(LOOKUPS / scorer.lookups))
    return None if max_minutes is None and most >= every else most


def is_settled(scorer: Scorer) -> bool:
    """Whether no order can raise the hit rate, and the work is even.

    The launch order is at the bound, or workgroups share next to no lines, and these fit a corner of each L2.
    """
    if scorer.baseline.launch > 1 or scorer.work.uneven:
        return False
    if scorer.baseline.distance_to_bound < NOTHING_TO_GAIN:
        return True
    shared, lines = shared_lines(scorer.trace)
    return shared < SHARE_NOTHING * lines and shared * scorer.gpu.l2.line_bytes < CORNER * scorer.gpu.l2.size_bytes


def _families(scorer: Scorer, most: int | None) -> list[Candidate]:
    if most is None:
        return family_candidates(scorer.kernel, scorer.gpu)
    listed = list(shortlist(scorer.kernel, scorer.gpu))
    new = [] if len(listed) < most else [one for one, _ in islice(distinct_shortlist(scorer), most - 1)]
    return new if len(new) == most - 1 else listed  # those that repeat another cost no replay


def open_run(folder: Path, about: dict[str, Any], resume: bool, more_keys: Sequence[str] = ()) -> History:
    """Create a run, or open one with the same settings; ``more_keys`` of ``about`` must agree too.

    Raises
    ------
    RunError
        If the folder exists and ``resume`` is off, or the run in it has other settings.
    """
    if not resume:
        return History.create(folder, about)
    history = History(folder)
    was = history.about
    same = ("kernel", "kernel_file", "kernel_digest", "problem", "gpu", "gpu_description", "replay", "seed")
    for key in (*same, "objectives", "jitter_ns", "version", *more_keys):
        if was.get(key, "") != json.loads(json.dumps(about[key])):
            history.close()
            now = "none" if about[key] == "" else about[key]
            changed = f": the kernel in {about['kernel_file']} changed" if key == "kernel_digest" else ""
            raise RunError(f"{folder}: cannot resume{changed}: its {key} is {was.get(key)}, this command's is {now}")
    return history


def _try_all(scorer: Scorer, planned: Sequence[Candidate], history: History, how: RunConfig) -> None:
    """Try the candidates that the history lacks.

    Verdicts are cheap and are found here, in order, so that which of two equal permutations counts as the first does
    not depend on threads; only replays run in parallel.
    """
    done = list(history)
    for attempt, candidate in zip(done, planned, strict=False):
        if attempt.source != candidate.source:
            raise RunError(f"{history.folder}: cannot resume: attempt {attempt.number} is not {candidate.name}")
    seen = {
        permutation_digest(scorer.permutation(Swizzle.parse(a.source))): a.number for a in done if a.score is not None
    }
    _ = scorer.baseline  # trace, bound and baseline before the threads need them
    end_s = time.monotonic() + 60 * (how.max_minutes if how.max_minutes is not None else float("inf"))
    with ThreadPoolExecutor(how.n_threads) as pool:
        waiting: deque[Callable[[], Attempt]] = deque()
        try:
            for number in range(len(done), len(planned)):
                if number and time.monotonic() > end_s:
                    break
                waiting.append(_begin(scorer, pool, number, planned[number], seen))
                if len(waiting) > 2 * how.n_threads:
                    _store(waiting.popleft()(), history, len(planned), how.on_attempt)
            while waiting:
                _store(waiting.popleft()(), history, len(planned), how.on_attempt)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _store(attempt: Attempt, history: History, total: int, on_attempt: OnAttempt | None) -> None:
    history.append(attempt)
    if on_attempt:
        on_attempt(attempt, attempt.number + 1, total)


def verdict_without_check(code: str) -> dict[str, Any]:
    """Verdict of a candidate whose check ended with an error; one that ran into a limit of the check is undecided."""
    undecided = code == "limit"
    return {"bijective": None if undecided else False, "domain": "undecided" if undecided else "nowhere", "code": code}


def _begin(
    scorer: Scorer, pool: ThreadPoolExecutor, number: int, candidate: Candidate, seen: dict[bytes, int]
) -> Callable[[], Attempt]:
    """Judge a candidate and, if it is a new bijection, start its replay; the callable returned gives the attempt."""
    began = time.perf_counter()
    verdict, order, critique = _judge(scorer, candidate)
    if order is not None:
        earlier = seen.setdefault(permutation_digest(order), number)
        if earlier != number:
            order, critique = None, f"the same permutation as attempt {earlier}"
    judged_ms = (time.perf_counter() - began) * 1e3
    future = None if order is None else pool.submit(_score, scorer, order)

    def finish() -> Attempt:
        score, replay_ms = future.result() if future else (None, 0.0)
        return Attempt(
            number=number,
            name=candidate.name,
            source=candidate.source,
            proposer=candidate.proposer,
            verdict=verdict,
            score=score,
            critique=critique,
            cost_ms=judged_ms + replay_ms,
        )

    return finish


def _judge(scorer: Scorer, candidate: Candidate) -> tuple[dict[str, Any], np.ndarray | None, str]:
    """Verdict, permutation if there is one, and the reason if there is none."""
    try:
        swizzle = Swizzle.parse(candidate.source, name=candidate.name)
        verdict = scorer.verify(swizzle)
    except LanguageError as error:
        return verdict_without_check(error.code), None, str(error)
    if not verdict.bijective:
        return verdict.as_dict(), None, verdict.counterexample.message if verdict.counterexample else ""
    return verdict.as_dict(), scorer.permutation(swizzle), ""


def _score(scorer: Scorer, order: np.ndarray) -> tuple[Score, float]:
    began = time.perf_counter()
    if np.array_equal(order, np.arange(order.size)):
        return scorer.baseline, 0.0
    return scorer.score_order(order, baseline_us=scorer.baseline.time_us), (time.perf_counter() - began) * 1e3
