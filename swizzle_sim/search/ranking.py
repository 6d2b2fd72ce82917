"""`Ranking`: the order of a run's attempts by its objectives, with ties and how they are broken.

An `Objective` is the figure of a score that a run optimizes: named, or the one that decides for the kernel's class
(`class_of`) on the GPU. `Evidence` says how often a predicted figure ranked measured orders correctly. Its table is
data with its sources, ``ranked_pairs.toml``; `swizzle_benchmarks.validation.ranked_pairs` writes it from measured rows.

    even enough -> the deciding figure -> of ties: even ends, HBM bytes, L2 misses, predicted time, shorter text

Where time does not decide, an order goes behind whose remap is costly, or whose CUs end `UNEVEN` times less evenly than
those of the most even one; a predicted time has both in it. Orders tie whose figures differ by no more than the model
tells apart. Among them a tenth of the bytes or misses, or a hundredth of the time, is a difference; the launch order
has no text, so it goes first where there is none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from swizzle_sim.pricing.scores import Score
from swizzle_sim.search.history import Attempt
from xcd_model.errors import SearchError, UnknownName
from xcd_model.spec.load import tomllib

FEWEST = 30  # pairs, below which nothing is said to rank
COVERS = (0.85, 0.95)  # share of measured gains that an interval must hold to be told
RIGHT = 0.95  # share of the orders to use that must have been faster
RANKS = 0.9  # share of them that must come the right way round
LESS_MOVED = "reads_less_in_a_tie"  # entry: pairs that times tie, right where what reads less from HBM was faster
APART = 1.1  # ratio of bytes or misses from which one order moves less
ALIKE = 5e-4  # relative gap, or of a rate 0 to 1 its tenth: figures that print alike are ties everywhere
DRAWS = "uncertainty.json"  # in the run folder: its finalists under other plausible constants
EMPTY = 2.0  # makespan over ideal of the most even order from which most CUs are idle, and balance says nothing
UNEVEN = 1.15  # makespan over ideal, or over that of the most even order, from which uneven work limits the time
STEPS = (APART, APART, 1.01)  # ratios from which HBM bytes, L2 misses and times of orders that tie differ
SLOWER = 5e-4  # speedup below 1 from which an order is said to be predicted slower


@dataclass(frozen=True)
class Evidence:
    """What measured rows say of one objective on one GPU."""

    gpu: str
    objective: str
    work_class: str = ""  # of the kernels whose measured times these are, as of a `Scorer`; empty for all kernels
    pairs: int = 0  # pairs of orders of one workload that were measured over 3 % (rates: one point) apart
    # of these, how many the timed replay puts the right way round; of times as the tool ranks them, ties by reads
    right: float = 0  # ties are half
    # predicted gap up to which its sign was no better than a coin's; relative, of a rate 0 to 1
    tells_apart: float = 0.0
    source: str = ""  # of the measurements; empty where there are none
    alone: int | None = None  # right by the figure alone, where another one breaks its ties
    launches: int = 0  # whose orders were all measured
    # measured time over that of each launch's best order, less 1, in the mean: of the order that is chosen, ties broken
    # as the tool breaks them, and of the launch order
    lost: float = 0.0
    launched: float = 0.0

    @property
    def ranks(self) -> bool:
        """Whether the figure may decide between orders: its pairs say so, or what is lost by choosing by it."""
        gains = self.launches >= FEWEST and self.lost < self.launched
        return self.pairs >= FEWEST and (self.right >= RANKS * self.pairs or gains)

    def sentence(self) -> str:
        """What the evidence is."""
        if not self.pairs:
            return f"no measured pair of orders on {self.gpu}"
        return f"{self.right} of {self.pairs} measured pairs of orders come the right way round on {self.gpu}"


@dataclass(frozen=True)
class Gain:
    """How far measured gains lie from predicted ones: of orders of a class on a GPU that are predicted faster."""

    launches: int
    orders: int
    # logarithm of the measured over the predicted time, relative to the launch order's: ends of the interval, middle
    low: float
    middle: float
    high: float
    inside: float  # share of gains in the interval, of launches that it did not see
    used: float  # of these the orders whose whole interval is faster, and those that were
    right: float

    def percent(self, speedup: float) -> tuple[float, float] | None:
        """Interval of the change of time [%] of a predicted speedup; None where its coverage is not 85 to 95 %."""
        low, high = (100 * math.expm1(end - math.log(speedup)) for end in (self.low, self.high))
        return (low, high) if COVERS[0] <= self.inside <= COVERS[1] else None

    @property
    def proven(self) -> bool:
        """Whether an order whose whole interval is faster may be used unmeasured."""
        return self.used >= 1 and self.right >= RIGHT * self.used


def gain_of(gpu: str, work_class: str) -> Gain | None:
    """Evidence on gains of a class of kernels on a GPU; None where too few were measured."""
    found = _table().get(gpu, {}).get(work_class, {}).get("gain")
    return Gain(**found) if found else None


@cache
def _table() -> dict[str, dict[str, dict[str, Any]]]:
    table = resources.files("swizzle_sim.search").joinpath("ranked_pairs.toml")
    return tomllib.loads(table.read_text(encoding="utf-8"))


def times_note(gpu: str, replay: str, work_class: str = "") -> str:
    """The figure that decides between orders of a class of kernels on a GPU, and its evidence: the foot of a table."""
    if replay != "timed":
        return "The times of the lockstep replay rank no orders: it screens, by hits."
    main, time = default_objectives(gpu, replay, work_class)[0], evidence_of(gpu, "time", work_class)
    said = f"{main.spoken[0].upper()}{main.spoken[1:]} decides"
    if work_class and not times_rank(gpu, replay, work_class):
        said += f" for {WORK_CLASSES[work_class]}, of orders that end about as evenly as the most even"
    if main is not TIME and time.work_class:
        return f"{said}: {evidence_of(gpu, main.name, work_class).sentence()}, {time.right} by predicted time."
    if main is not TIME:
        return f"{said}. Times do not rank orders here: {time.sentence()}."
    if time.lost < time.launched:
        lost, launched = (f"{100 * one:.1f} %" for one in (time.lost, time.launched))
        said += f": it loses {lost} of the best measured time of {time.launches} launches, the launch order {launched}"
    return f"{said}; {time.sentence()}."


def times_rank(gpu: str, replay: str, work_class: str = "") -> bool:
    """Whether the times of a replay decide between orders of a class of kernels on a GPU."""
    return default_objectives(gpu, replay, work_class) == (TIME,)


def steps_more(value: float, least: float, step: float) -> int:
    """By how many steps, ratios such as `APART`, a figure is above the least of those that tie."""
    return int(math.log((value + 1) / (least + 1), step))


def evidence_of(gpu: str, objective: str, work_class: str = "") -> Evidence:
    """Evidence on an objective for a class of kernels, else for all; of an unmeasured GPU the widest tolerance."""
    of = _table().get(gpu, {})
    if known := of.get(work_class, {}).get(objective):
        return Evidence(gpu, objective, work_class=work_class, **known)
    if known := of.get(objective):
        return Evidence(gpu, objective, **known)
    widest = max((of[objective]["tells_apart"] for of in _table().values() if objective in of), default=0.0)
    return Evidence(gpu, objective, tells_apart=widest)


@dataclass(frozen=True)
class Objective:
    """One figure of a score."""

    name: str  # ``spoken`` is the name in a sentence
    spoken: str
    unit: str
    of: Callable[[Score], float]  # ``of(score) -> float``
    largest: bool = False  # whether more is better: of a rate, 0 to 1

    def cost(self, score: Score) -> float:
        """Minus a rate, or the logarithm of anything else: less is better; infinite where there is no such figure."""
        value = self.of(score)
        if self.largest:
            return math.inf if math.isnan(value) else -value
        return math.log(value) if value > 0 else math.inf

    def gain(self, score: Score, baseline: Score) -> float:
        """Gain over the launch order, comparable between sizes.

        Of a rate the difference, of anything else the logarithm of the ratio.
        """
        mine, launch_order = self.cost(score), self.cost(baseline)
        return launch_order - mine if math.isfinite(mine) and math.isfinite(launch_order) else -math.inf

    def tolerance(self, gpu: str) -> float:
        """Gap of two costs up to which the model does not tell them apart on a GPU."""
        return max(evidence_of(gpu, self.name).tells_apart, ALIKE / 10 if self.largest else ALIKE)


class BestSoFar:
    """Best figure of the scores seen so far, for a line of progress."""

    def __init__(self, objective: Objective):
        self._objective = objective
        self._best: Score | None = None

    def __call__(self, score: Score | None) -> str:
        """Take one more score, None of an attempt without; the best in words."""
        cost = self._objective.cost
        if score is not None and (self._best is None or cost(score) < cost(self._best)):
            self._best = score
        if self._best is None:
            return ""
        value, unit = self._objective.of(self._best), self._objective.unit
        figure = f"{100 * value:.2f} %" if self._objective.largest else f"{value:.4g} {unit}"
        return f"best {self._objective.spoken} {figure}"


def uneven_of(score: Score) -> float:
    """Makespan over the ideal of evenly shared CU time; 1 where it was not counted."""
    return 1.0 if score.balance is None else score.balance.over_ideal


OBJECTIVES = {
    one.name: one
    for one in (
        Objective("time", "predicted time", "us", lambda score: score.time_us),
        Objective("l2_hit_rate", "L2 hit rate", "", lambda score: score.l2_hit_rate, largest=True),
        Objective("hbm_bytes", "HBM bytes", "B", lambda score: score.hbm_bytes),
        Objective("energy", "energy", "J", lambda score: score.energy_j),
        Objective("balance", "makespan over ideal", "times", uneven_of),
    )
}
TIME, HIT_RATE = OBJECTIVES["time"], OBJECTIVES["l2_hit_rate"]
WORK_CLASSES = {
    "uneven": "uneven work",
    "compute": "arithmetic with reuse",
    "memory": "streaming",
}  # as `Scorer.work_class`


def read_objectives(text: str) -> tuple[Objective, ...]:
    """Objectives by name, one or two separated by a comma."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in OBJECTIVES:
            raise UnknownName("objective", name, OBJECTIVES)
    if len(names) > 2 or len(set(names)) < len(names):
        raise SearchError(f"objective {text!r}: one, or two different ones for a Pareto front", code="objective")
    return tuple(OBJECTIVES[name] for name in names)


def default_objectives(gpu: str, replay: str, work_class: str = "") -> tuple[Objective, ...]:
    """Figure that decides for a class of kernels: of time and L2 hit rate what ranked its measured orders better.

    If both did equally it is time where work is uneven, since when each CU ends is counted, else hits. Where no order
    of the class was measured it is time if that ranked the GPU's, else hits.
    """
    time, hits = (evidence_of(gpu, one.name, work_class) for one in (TIME, HIT_RATE))
    if time.work_class and hits.work_class:
        ranks = time.right > hits.right or (time.right == hits.right and work_class == "uneven")
    else:
        ranks = time.ranks
    return (TIME,) if replay == "timed" and ranks else (HIT_RATE,)


def chosen_objectives(text: str | None, gpu: str, replay: str, work_class: str = "") -> tuple[Objective, ...]:
    """Objectives that were named, or else the default; raises as `read_objectives`."""
    return read_objectives(text) if text else default_objectives(gpu, replay, work_class)


def pareto_front(costs: Sequence[Sequence[float]]) -> list[int]:
    """Indices of the points that no other dominates."""
    front: list[int] = []
    lowest: tuple[float, ...] | None = None
    for i in sorted(range(len(costs)), key=lambda i: (*costs[i], i)):
        # sorted by the first cost, so no earlier point is worse there
        if all(map(math.isfinite, costs[i])) and (lowest is None or costs[i][-1] < lowest[-1]):
            front.append(i)
            lowest = tuple(costs[i])
    return front


@dataclass(frozen=True)
class Ranking:
    """How a run ranks its attempts."""

    objectives: tuple[Objective, ...] = (HIT_RATE,)  # one, or two for a Pareto front
    sizes: int = 1  # problem sizes whose mean gain counts
    gpu: str = ""  # whose evidence gives the tolerance
    # numbers of attempts that other plausible constants do not tell from the best one
    inseparable: Collection[int] = frozenset()

    @property
    def main(self) -> Objective:
        """The first objective."""
        return self.objectives[0]

    @property
    def tolerance(self) -> float:
        """Gap of costs up to which two attempts are ties."""
        return self.main.tolerance(self.gpu)

    def cost(self, attempt: Attempt) -> tuple[float, ...]:
        """What the run minimises, of an attempt with a score."""
        if attempt.score is None:
            raise ValueError(f"attempt {attempt.number} has no score")
        found = attempt.verdict.get("costs")  # at several sizes only the search has them
        return tuple(found) if found else tuple(one.cost(attempt.score) for one in self.objectives)

    def groups(self, attempts: Iterable[Attempt]) -> list[list[Attempt]]:
        """Attempts with a score, best first, ties together; of two objectives the Pareto front is the first group."""
        known = [a for a in attempts if a.score is not None]
        evenest = min((uneven_of(_score(one)) for one in known), default=1.0)
        scored = sorted(known, key=lambda one: self._by_cost(one, evenest))
        if len(self.objectives) > 1:
            front = pareto_front([self.cost(one) for one in scored])
            rest = [[one] for i, one in enumerate(scored) if i not in set(front)]
            return [[scored[i] for i in front], *rest] if front else rest
        found: list[list[Attempt]] = []
        left = [(one, self.is_behind(_score(one), evenest), self.cost(one)[0]) for one in scored]
        tolerance = self.tolerance
        while left:
            best, behind, cost = left[0]
            near = [
                one is best
                or (
                    is_behind == behind
                    and (abs(other - cost) <= tolerance or (not found and one.number in self.inseparable))
                )
                for one, is_behind, other in left
            ]
            tied = [one for (one, *_), ties in zip(left, near, strict=True) if ties]
            least = [min(figures) for figures in zip(*(_moved(_score(one)) for one in tied), strict=True)]
            even = min(uneven_of(_score(one)) for one in tied)
            found.append(sorted(tied, key=partial(self._breaks_tie, least=least, even=even)))
            left = [one for one, ties in zip(left, near, strict=True) if not ties]
        return found

    def order(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Attempts with a score, best first; of two objectives the Pareto front comes first."""
        return [one for group in self.groups(attempts) for one in group]

    def front(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """The Pareto front of two objectives, rising by the cost of the first; the best alone of one."""
        first = next(iter(self.groups(attempts)), [])
        return first if len(self.objectives) > 1 else first[:1]

    def places(self, attempts: Iterable[Attempt], *, with_launch_order: bool = False) -> dict[int, str]:
        """Place by number of an attempt; ties share one, with an equals sign; the launch order has one on request."""
        found: dict[int, str] = {}
        groups = [[one for one in group if one.number or with_launch_order] for group in self.groups(attempts)]
        for group in groups:
            place = str(len(found) + 1)
            tied = len(group) > 1 and len(self.objectives) == 1
            for i, one in enumerate(group):
                found[one.number] = f"={place}" if tied else str(int(place) + i)
        return found

    def is_behind(self, score: Score, evenest: float) -> bool:
        """Whether an order goes behind the others whatever its figure, by the most even makespan over ideal of all."""
        less_even = evenest < EMPTY and uneven_of(score) > UNEVEN * evenest
        return self.main.name != "time" and (is_costly(score) or less_even)

    def _by_cost(self, one: Attempt, evenest: float) -> tuple[Any, ...]:
        score = _score(one)
        behind = self.is_behind(score, evenest)
        return (behind, *self.cost(one), score.time_us, score.hbm_bytes, len(one.source), one.number)

    def _breaks_tie(self, one: Attempt, least: Sequence[float], even: float) -> tuple[Any, ...]:
        less_even = even < EMPTY and uneven_of(_score(one)) > UNEVEN * even
        steps = [steps_more(*three) for three in zip(_moved(_score(one)), least, STEPS, strict=True)]
        return (less_even, *steps, one.number != 0, len(one.source), self.cost(one), _score(one).l2_misses, one.number)

    def slower(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Attempts ranked above the launch order although they are predicted slower."""
        ordered = self.order(attempts)
        at = next((i for i, one in enumerate(ordered) if one.number == 0), 0)
        least = max(SLOWER, self.tolerance) if self.main.name == "time" else SLOWER
        return [one for one in ordered[:at] if _score(one).speedup < 1 - least]

    def sentence(self) -> str:
        """How attempts are ranked, for the foot of a table."""
        names = " and ".join(one.spoken for one in self.objectives)
        at = f", the mean gain over {self.sizes} problem sizes" if self.sizes > 1 else ""
        if len(self.objectives) > 1:
            return f"Objectives: {names}{at}. The Pareto front comes first, rising by {self.main.spoken}."
        gap = f"{100 * self.tolerance:.3g} {'points' if self.main.largest else '%'}"
        drawn = ", and those whose lead other plausible constants undo," if self.inseparable else ""
        timed = self.main.name == "time"  # which has uneven ends in it: there they lose a tie, and no more
        first = "even ends break, then fewer HBM bytes" if timed else "fewer HBM bytes break"
        last = "" if timed else f" Orders {UNEVEN} times less even than the most even come last."
        return (
            f"Ranked by {names}{at}. Orders within {gap} of each other{drawn} are ties (=), which {first}, "
            f"then fewer L2 misses, then a shorter predicted time, then the shorter text.{last}"
        )


def _moved(score: Score) -> tuple[float, float, float]:
    """Figures that break ties: bytes to and from HBM, L2 misses, predicted time [ns]."""
    return score.hbm_bytes, score.l2_misses, 1e3 * score.time_us


def _score(one: Attempt) -> Score:
    if one.score is None:
        raise ValueError(f"attempt {one.number} has no score")
    return one.score


def is_costly(score: Score) -> bool:
    """Whether the rewritten kernel loses workgroups a CU or its software pipeline, or spills more registers."""
    return score.price is not None and score.price.is_costly


def ranking_of(about: Mapping[str, Any], folder: Path | None = None) -> Ranking:
    """Ranking of a run, by its record; the L2 hit rate where the record of an older version says nothing."""
    settings = about.get("search") or {}
    names = about.get("objectives") or settings.get("objectives") or ()
    found = tuple(OBJECTIVES[name] for name in names if name in OBJECTIVES)
    sizes = 1 + len(settings.get("sizes", ()))
    return Ranking(
        found or (HIT_RATE,), sizes, str(about.get("gpu", "")), _inseparable(folder) if folder else frozenset()
    )


def _inseparable(folder: Path) -> frozenset[int]:
    """Attempts that the draws of a run do not tell from its best; none where none were made or can be read."""
    try:
        pairs = json.loads((folder / DRAWS).read_text(encoding="utf-8"))["pairs"]
        return frozenset(int(pair["number"]) for pair in pairs if not pair["apart"])
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()
