"""`run`: the one loop over candidates. A strategy proposes, the judge judges, the history stores, the strategy is told.

A strategy is a generator: it yields one candidate or several, and what it gets back is the attempt, or the list of
them. It is told what is stored, so a run that was stopped is gone through from its beginning with the stored attempts
looked up, and ends as one that never stopped, for any number of threads. See docs/howto/search-strategy.md.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from swizzle_sim.base.release import version
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import Attempt, History, as_stored, storable
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.judge import FULL_REPLAY, Judge, Look, as_candidate
from swizzle_sim.search.ranking import Objective, Ranking, chosen_objectives, default_objectives
from swizzle_sim.search.recorded import of_another_model
from xcd_model.cache.replacement import POLICY
from xcd_model.errors import RunError

Asked = Candidate | str | Iterable[Candidate | str]
Strategy = Generator[Any, Any, None]  # yields `Asked`, gets an attempt or a list of them
OnAttempt = Callable[[Attempt, int, int], None]
Judges = Callable[[Candidate], Judge]  # of several kernels, such as one kernel in several configurations
SAVED_EVERY_S = 0.5  # of short replays: many cores judge faster than a disk takes one after another
COUNTED_AS = {FULL_REPLAY: "replay", "replay": "replay", "parse": "refused", "grid": "refused"}  # by stage, old and new


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a run may take: replays at a time, until when one may begin, and whether it is enough, after each attempt.

    ``end_s`` is a point of ``time.monotonic``.
    """

    threads: int = 1
    end_s: float = float("inf")
    enough: Callable[[], bool] = lambda: False


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How a run is made, whatever proposes its candidates."""

    replay: str = "timed"
    # what attempts are ranked by: time, l2_hit_rate, hbm_bytes or energy, or two with a comma; None for time where the
    # times of the replay rank orders of the GPU, else the hit rate
    objective: str | None = None
    seed: int = 0  # of the timed replay and of samplers
    jitter_ns: float = 0.0  # [ns]: see `Scorer`
    threads: int | None = None  # none for one a core; the result does not depend on it
    resume: bool = False  # go on where the run in the folder stopped; its attempts are not repeated
    command: str = ""  # noted as the command that made the run
    on_attempt: OnAttempt | None = None  # called as ``on_attempt(attempt, done, total)`` after each attempt is stored
    max_minutes: float | None = None  # no candidate is begun after that long; the run can be resumed

    @property
    def budget(self) -> Budget:
        """What the run may take, where it begins now."""
        end_s = time.monotonic() + 60 * (self.max_minutes if self.max_minutes is not None else float("inf"))
        return Budget(threads=self.threads or os.cpu_count() or 1, end_s=end_s)

    def objectives_on(self, scorer: Scorer) -> tuple[Objective, ...]:
        """Objectives of a kernel on its GPU; raises as `swizzle_sim.search.ranking.read_objectives`."""
        return chosen_objectives(self.objective, scorer.gpu.name, self.replay, scorer.work_class)

    @property
    def of_scorer(self) -> dict[str, Any]:
        """Keyword arguments of a `Scorer`."""
        return {"replay": self.replay, "seed": self.seed, "jitter_ns": self.jitter_ns}


@dataclass(frozen=True, eq=False)
class Run:
    """A finished or interrupted search."""

    folder: Path
    attempts: tuple[Attempt, ...]  # all of them; the first is the baseline
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

    @property
    def front(self) -> list[Attempt]:
        """The Pareto front of two objectives, rising by the first; of one objective the best attempt."""
        return self.ranking.front(self.attempts)

    @property
    def counts(self) -> dict[str, int]:
        """Candidates by where they ended: replay, sampled, screen, bound, duplicate, refused."""
        found: dict[str, int] = {}
        for one in self.attempts[1:]:
            stage = str(one.verdict.get("stage", FULL_REPLAY))
            found[COUNTED_AS.get(stage, stage)] = found.get(COUNTED_AS.get(stage, stage), 0) + 1
        return found


class InMemory(list):
    """Attempts in memory, in place of a history."""

    folder = Path(".")


@dataclass
class Points:
    """Scores in a `PointStore` in place of a history, found by what was replayed and not by when.

    ``point_of(name, told)`` is what a replay is stored by, ``row_of(attempt)`` what is stored.
    """

    store: PointStore
    point_of: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    row_of: Callable[[Attempt], dict[str, Any]]
    folder = Path(".")

    def __iter__(self) -> Iterator[Attempt]:
        return iter(())

    def find(self, candidate: Candidate, number: int) -> Attempt | None:
        """Attempt of a candidate that an earlier command replayed."""
        row = self.store.find(self.point_of(candidate.name, candidate.told))
        return Look(candidate, number).made(dict(candidate.told), Score.from_dict(row["score"]), "") if row else None

    def append(self, attempt: Attempt) -> None:
        """Store an attempt with a score."""
        if attempt.score is not None:
            self.store.add(self.point_of(attempt.name, attempt.verdict), self.row_of(attempt))


def run(
    strategy: Strategy,
    judge: Judge | Judges,
    history: History | InMemory | Points,
    budget: Budget = Budget(),
    *,
    proposer: str = "given",
    on_attempt: Callable[[Attempt], None] = lambda attempt: None,
    mine: Callable[[Attempt], bool] = lambda attempt: True,
    amend: Callable[[Attempt], Attempt] = lambda attempt: attempt,
) -> list[Attempt]:
    """Run a strategy to its end or that of its budget; what the judge has first, the launch order, is attempt 0.

    ``mine`` chooses the stored attempts that are this strategy's, where several share a history; ``amend`` changes an
    attempt before it is stored; ``proposer`` is that of candidates given as texts.
    """
    with ThreadPoolExecutor(budget.threads) as pool:
        loop = _Loop(judge, history, budget, pool, proposer, on_attempt, amend)
        loop.know(mine)
        try:
            loop.begin()
            asked = next(strategy)
            while not (loop.is_over or loop.is_late()):
                one = isinstance(asked, Candidate | str) or not isinstance(asked, Iterable)
                told = loop.try_all([asked] if one else asked)
                if not (loop.is_over or loop.timed_out):
                    asked = strategy.send(told[0] if one else told)
        except StopIteration:
            pass
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            loop.save()
            if isinstance(judge, Judge):
                judge.map = map
            strategy.close()
    return loop.made


@dataclass
class _Loop:
    """One run: what is stored, and what is under way."""

    judge: Judge | Judges
    history: History | InMemory | Points
    budget: Budget
    pool: ThreadPoolExecutor
    proposer: str
    on_attempt: Callable[[Attempt], None]
    amend: Callable[[Attempt], Attempt]
    made: list[Attempt] = field(default_factory=list)
    stored: deque[Attempt] = field(default_factory=deque)
    unsaved: list[Attempt] = field(default_factory=list)
    saved_s: float = 0.0
    next_number: int = 0
    timed_out: bool = False
    is_over: bool = False

    def know(self, mine: Callable[[Attempt], bool]) -> None:
        """Take what earlier commands stored."""
        known = [one.judged for one in self.history]
        self.next_number = len(known)
        self.stored.extend(one for one in known if one.number == 0 or mine(one))

    def is_late(self) -> bool:
        """Whether the time is over; the launch order is judged in any case."""
        self.timed_out = self.timed_out or (bool(self.made) and time.monotonic() > self.budget.end_s)
        return self.timed_out

    def begin(self) -> None:
        """Judge what the judge of one kernel has first."""
        if isinstance(self.judge, Judge):
            self.judge.map, bench = self.pool.map, self.judge.bench
            for scorer in (*bench.scorers, *(bench.lockstep if self.judge.screens == "screen" else ())):
                _ = scorer.baseline  # trace, bound and launch order before the threads need them
            self.try_all(self.judge.first)

    def try_all(self, asked: Iterable[Candidate | str]) -> list[Attempt]:
        """Attempts of candidates, in their order; fewer where the run is over before."""
        looked: Iterable[tuple[Judge, Look, Attempt | None]] = self._looked(asked)
        if isinstance(self.judge, Judge) and self.judge.prunes:
            looked = list(looked)  # by what was told before the batch, whatever the threads are at
            self.judge.screen([look for _, look, _ in looked])
        waiting: deque[tuple[Judge, Attempt | Future[Attempt]]] = deque()
        first = len(self.made)
        for judge, look, known in looked:
            waiting.append((judge, known or self.pool.submit(judge.replay, look)))
            if len(waiting) > 2 * self.budget.threads:
                self._store(*waiting.popleft())
            if self.is_over:
                return self.made[first:]
        while waiting and not self.is_over:
            self._store(*waiting.popleft())
        self.save()
        return self.made[first:]

    def save(self) -> None:
        """Put on disk what was judged since: in one go, since a disk takes as long for one as for all."""
        self.saved_s = time.monotonic()
        unsaved, self.unsaved = self.unsaved, []  # first: after a Ctrl-C in the middle nothing is stored twice
        if unsaved and isinstance(self.history, History):
            self.history.append(*unsaved)

    def _looked(self, asked: Iterable[Candidate | str]) -> Iterator[tuple[Judge, Look, Attempt | None]]:
        for place in asked:
            if self.is_late():
                return
            known = self.stored.popleft() if self.stored else None
            number = known.number if known else self.next_number
            self.next_number += known is None
            candidate = as_candidate(place, self.proposer, number)
            if known and known.source != (source := storable(candidate.source)):
                now, was = (candidate.name, known.name) if candidate.name != known.name else (source, known.source)
                why = f"it was {was.strip()}: a strategy must yield the same again, and draw from judge.scorer.seed"
                raise RunError(f"{self.history.folder}: cannot resume: attempt {number} is not {now.strip()}, {why}")
            judge = self.judge if isinstance(self.judge, Judge) else self.judge(candidate)
            look = judge.look(candidate, number)
            look.screened = tuple(known.verdict.get("screened", ())) if known else ()
            if known is None and isinstance(self.history, Points):
                known = self.history.find(candidate, number)
            yield judge, look, known

    def _store(self, judge: Judge, found: Attempt | Future[Attempt]) -> None:
        """Store the next attempt, unless it is stored, and learn from it."""
        if isinstance(found, Future) and not found.done() and time.monotonic() > self.saved_s + SAVED_EVERY_S:
            self.save()  # rather than wait
        attempt = found if isinstance(found, Attempt) else self.amend(judge.worded(found.result()))
        if attempt is not found and isinstance(self.history, History):
            attempt = as_stored(attempt)  # what a strategy is told is what it would be told after a stop
            self.unsaved.append(attempt)
        elif attempt is not found:
            self.history.append(attempt)
        judge.learn(attempt)
        self.made.append(attempt)
        self.on_attempt(attempt)
        self.is_over = self.is_over or self.budget.enough()


def one_after_another(candidates: Iterable[Candidate]) -> Strategy:
    """Strategy that learns nothing: all of a list."""
    yield candidates


def counting(on_attempt: OnAttempt | None, total: int, counts: Callable[[Attempt], bool]) -> Callable[[Attempt], None]:
    """Callback of `run` that calls ``on_attempt(attempt, done, total)``, done being attempts that count."""
    done = 0

    def told(attempt: Attempt) -> None:
        nonlocal done
        done += counts(attempt)
        if on_attempt:
            on_attempt(attempt, done, total)

    return told


def about_run(scorer: Scorer, command: str = "", objectives: Sequence[Objective] = ()) -> dict[str, Any]:
    """Record of a run folder: enough to score its candidates another time, and to rank them."""
    objectives = objectives or default_objectives(scorer.gpu.name, scorer.replay, scorer.work_class)
    return {
        "kernel": scorer.kernel.name,
        "kernel_file": scorer.kernel.file,
        "kernel_digest": scorer.kernel.digest,
        "problem": dict(scorer.kernel.problem),
        "gpu": scorer.gpu.name,
        "gpu_description": scorer.gpu.as_dict(),
        "replacement": POLICY,
        "resources": asdict(scorer.kernel.resources),
        "replay": scorer.replay,
        "objectives": [one.name for one in objectives],
        "seed": scorer.seed,
        "jitter_ns": scorer.jitter_ns,
        "version": version(),
        "command": command,
        **({"cluster": scorer.kernel.clusters.size} if scorer.kernel.clusters else {}),
    }


def open_run(folder: Path, about: dict[str, Any], resume: bool, more_keys: Sequence[str] = ()) -> History:
    """Create a run, or open one with the same settings; ``more_keys`` of ``about`` must agree too."""
    if not resume:
        return History.create(folder, about)
    history = History(folder)
    was = history.about
    same = ("kernel", "kernel_file", "kernel_digest", "problem", "gpu", "gpu_description", "replacement")
    for key in (*same, "replay", "seed", "objectives", "jitter_ns", "version", *more_keys):
        if was.get(key, "") != json.loads(json.dumps(about[key])):
            history.close()
            if key == "gpu_description":
                raise RunError(f"{folder}: cannot resume: it {of_another_model(was)}")
            now = "none" if about[key] == "" else about[key]
            changed = f": the kernel in {about['kernel_file']} changed" if key == "kernel_digest" else ""
            raise RunError(f"{folder}: cannot resume{changed}: its {key} is {was.get(key)}, this command's is {now}")
    return history
