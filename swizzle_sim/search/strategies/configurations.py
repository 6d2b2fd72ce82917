"""`tune`: an autotuner's configurations together with swizzles, which pair is fastest in a bounded number of replays.

Every configuration is replayed in launch order and with the first of the shortlist; then the better half of them goes
on with more, and so on (successive halving, as in the search of templates). All figures are of the same replay.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from swizzle_sim.capture.configurations import Configuration
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import LAUNCH_ORDER, Candidate, distinct_shortlist
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Budget, Points, run
from swizzle_sim.search.ranking import default_objectives
from swizzle_sim.search.strategies.halving import rounds_of

FEWEST = 24  # replays, however few configurations there are
A_CONFIGURATION = 6  # replays that a search without a budget spends, on average
OnReplay = Callable[[int, int, "Tuned"], None]


@dataclass(eq=False)
class Tuned:
    """A configuration and the scores of the swizzles that were replayed on it, the launch order first.

    ``scorer`` is None where the configuration is refused.
    """

    configuration: Configuration
    scorer: Scorer | None
    scores: dict[str, Score] = field(default_factory=dict)
    _left: Iterator[Candidate] | None = field(default=None, repr=False)

    @property
    def launch_order(self) -> Score | None:
        """Score without a swizzle; None where nothing was replayed."""
        return self.scores.get(LAUNCH_ORDER.name)

    @property
    def best(self) -> tuple[str, Score] | None:
        """Best swizzle by what ranks orders of one grid on the GPU, of equal ones the fastest."""
        if not self.scores or not self.scorer:
            return None
        (objective,) = default_objectives(self.scorer.gpu.name, self.scorer.replay, self.scorer.work_class)
        tied = min(map(objective.cost, self.scores.values())) + objective.tolerance(self.scorer.gpu.name)
        return min(
            (one for one in self.scores.items() if objective.cost(one[1]) <= tied), key=lambda one: one[1].time_us
        )

    @property
    def time_us(self) -> float:
        """Of the best; infinite without any."""
        return self.best[1].time_us if self.best else float("inf")

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        about = {"config": self.configuration.place, "chosen": dict(self.configuration.chosen)}
        if self.scorer is None:
            return {**about, "refused": self.configuration.refused}
        base, best = self.launch_order, self.best
        return {
            **about,
            "resources": asdict(self.scorer.kernel.resources),
            "workgroups_per_cu": self.scorer.occupancy,
            "tried": len(self.scores),
            "launch_order": base.as_dict() if base else None,
            "best": {"swizzle": best[0], "score": best[1].as_dict()} if best else None,
        }

    def take(self, place: int) -> list[Candidate]:
        """Next swizzle to replay, marked with the place of the configuration; none where there is none left."""
        if self.scorer is None:
            return []
        if self._left is None:
            self._left = (one for one, _ in distinct_shortlist(self.scorer))
            found: Candidate | None = LAUNCH_ORDER
        else:
            found = next(self._left, None)
        return [Candidate(found.name, found.source, found.proposer, {"place": place})] if found else []


def tune(
    every: Sequence[Tuned],
    store: PointStore,
    *,
    replays: int | None = None,
    threads: int = 1,
    end_s: float = float("inf"),
    on_replay: OnReplay = lambda done, budget, one: None,
) -> None:
    """Replay configurations with swizzles; whoever interrupts it finds in ``every`` what was replayed so far.

    ``replays`` are by default `A_CONFIGURATION` times as many as configurations, and at least `FEWEST`; those that the
    store holds are not repeated.
    """
    arms = [i for i, one in enumerate(every) if one.scorer]
    judges = {i: Judge(scorer) for i, one in enumerate(every) if (scorer := one.scorer)}
    budget = replays or max(FEWEST, A_CONFIGURATION * len(arms))

    def propose() -> Generator[list[Candidate], list[Attempt], None]:
        left, going = budget, arms
        for n_arms, quota in rounds_of(len(arms), budget):
            going = sorted(going, key=lambda i: every[i].time_us)[:n_arms]
            for _ in range(quota):  # each a step further, so that a stop leaves none behind
                taken = [one for i in going[:left] for one in every[i].take(i)]
                left -= len(taken)
                yield taken

    def point_of(name: str, told: Mapping[str, Any]) -> dict[str, Any]:
        scorer = judges[told["place"]].scorer
        about = {"kernel": scorer.kernel.digest, "resources": asdict(scorer.kernel.resources), "gpu": scorer.gpu.name}
        return about | {"replay": scorer.replay, "seed": scorer.seed, "swizzle": name}

    def told(attempt: Attempt) -> None:
        if attempt.score is not None:
            one = every[attempt.verdict["place"]]
            one.scores[attempt.name] = attempt.score
            if attempt.name == LAUNCH_ORDER.name:  # stored, it need not be replayed for the speedups of the others
                vars(one.scorer).setdefault("baseline", attempt.score)
            on_replay(sum(len(each.scores) for each in every), budget, one)

    history = Points(store, point_of, lambda one: {"score": one.score and one.score.as_dict()})
    budgeted = Budget(threads=threads, end_s=end_s)
    run(propose(), lambda candidate: judges[candidate.told["place"]], history, budgeted, on_attempt=told)
