"""A candidate tried on launch after launch, the smallest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from swizzle_sim.language.ir import GRID_NAMES
from swizzle_sim.language.lattice import KINDS, Trial, claim, name_domain, named
from swizzle_sim.language.rules import CHECK_STEPS
from swizzle_sim.language.verdict import EVERY_GRID_TRIED, NOWHERE, REFUTED, TESTED, Budget, Counterexample, where_text
from swizzle_sim.testing.candidate import Candidate
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.grids_to_try import (
    Holds,
    Point,
    Where,
    as_grid,
    condition,
    each_size,
    kind_of,
    need_launch,
    sized_launches,
    xcd_counts,
)
from swizzle_sim.testing.padded import wasted
from swizzle_sim.testing.refuting import Sides, launches_of_choices, sized, sizes_of_quotients, with_xcds
from swizzle_sim.testing.refuting import grids as refuting_grids
from xcd_model.errors import LanguageError, OptionError

_MOST_WORKGROUPS = 2_000_000  # tried after the first failure, to say where it holds


@dataclass(frozen=True)
class Outcome:
    """What trying a candidate gave.

    Parameters
    ----------
    name : str
    tried : int
        Launches, each with one XCD count.
    point : Point or None
        The smallest launch that fails.
    counterexample : Counterexample or None
        Of that launch.
    domain : str
        Where it does hold, of the launches tried, in the words of a `Verdict`.
    largest : int
        Workgroups of the largest launch tried.
    status : {"proved", "tested", "refuted"}
        What ``domain`` rests on; ``refuted`` where a launch fails.
    covers : str
        Sizes for which ``domain`` is proved, where it is.
    of : str
        Launches and names that it speaks of, and what it supposes.
    also : str
        Of a function with defaults: another launch that fails, or that none of the defaults does.
    within : str
        Values of sizes, and XCDs, that ``domain`` is of, where it is not of all.
    trials : tuple of Trial
        Launches tried, of one that fails.
    wasted : str
        Of a padded launch: how many workgroups have no tile.
    """

    name: str
    tried: int
    point: Point | None
    counterexample: Counterexample | None
    domain: str
    largest: int = 0
    status: str = TESTED
    covers: str = ""
    of: str = ""
    also: str = ""
    within: str = ""
    trials: tuple[Trial, ...] = ()
    wasted: str = ""

    @property
    def holds(self) -> bool:
        """Whether no launch failed."""
        return self.counterexample is None

    @property
    def message(self) -> str:
        """One line, two where other launches fail too: where it is right, and the counter-example if there is one."""
        if self.counterexample is None:
            known = claim(self.status, self.domain, self.tried, self.largest, self.covers, self.of)
            return f"{self.name}: a bijection, {known}{self.wasted and '; '}{self.wasted}"
        right = ""
        if self.domain == NOWHERE:
            right = f"right nowhere ({self.tried} launch{'es' * (self.tried != 1)} tried); "
        elif named(self.domain):
            right = f"{self.domain}{f' ({self.within})' if self.within else ''}"
            right = f"proved where {right}; " if self.covers else f"right where {right}, as far as tried; "
        also = f"\n  {self.also}" if self.also else ""
        return f"{self.name}: {right}NOT a bijection at {self.failure}{also}"

    @property
    def failure(self) -> str:
        """The launch that fails, its sizes, and how."""
        if self.counterexample is None or self.point is None:
            return ""
        grid, xcds = self.point.grid, self.point.num_xcds
        said = self.counterexample.message.replace(f" {where_text(grid, xcds)}", "", 1)
        sizes = "".join(f", {name}={value}" for name, value in self.point.sizes.items())
        return f"{where_text(grid, xcds)[1:-1]}{sizes}: {said}"


def try_points(candidate: Candidate, points: Iterable[Point]) -> Outcome:
    """Try launches in the order of their size, and stop at the first that fails.

    Raises
    ------
    OptionError
        If there is no launch to try.
    LanguageError
        If a grid lacks a name that the candidate reads, or with code ``limit`` if the launches are too much work.
    """
    ordered = sorted(points, key=lambda point: point.rank)
    if not ordered:
        raise OptionError(f"{candidate.name}: no launch to try: the condition, or the list of grids, leaves none")
    largest, budget = ordered[-1].grid.num_pids, Budget(CHECK_STEPS)
    for k, point in enumerate(ordered):
        found = candidate.counterexample(point.grid, point.num_xcds, point.sizes, budget)
        if found and found.code == "step-limit" and k:  # too much to try says nothing of what it computes
            ordered, largest = ordered[:k], ordered[k - 1].grid.num_pids
            break
        if found:
            trials = _trials(candidate, ordered, k, budget)
            domain, most = name_domain(trials, candidate.form), max(trial.grid.num_pids for trial in trials)
            outcome = Outcome(candidate.name, len(trials), point, found, domain, most, REFUTED)
            return replace(outcome, of=spoken_of(candidate), trials=tuple(trials))
    held = Outcome(candidate.name, len(ordered), None, None, EVERY_GRID_TRIED, largest, of=spoken_of(candidate))
    return replace(held, wasted=wasted(candidate.tiles, ordered, candidate.sizes)) if candidate.tiles else held


def spoken_of(candidate: Candidate) -> str:
    """Launches and names that a verdict of a candidate speaks of, and what it supposes."""
    names = _listed([name for name in candidate.names if not name.startswith(("returned_", "guarded_"))])
    strides = _listed(candidate.strides)
    apart = f"where {strides} keep{'s' * (len(candidate.strides) == 1)} tiles apart" if strides else ""
    supposed = f"supposing that {', that '.join(candidate.assumed)}" if candidate.assumed else ""
    return ", ".join(
        part for part in (KINDS[kind_of(candidate.form)], names and f"of {names}", apart, supposed) if part
    )


def _listed(names: Sequence[str]) -> str:
    """Names as they stand in a sentence."""
    return " and ".join([", ".join(names[:-1]), *names[-1:]][len(names) < 2 :])


def points_of(
    candidate: Candidate, options: Options, grids: Iterable[Any] | None = None, where: Where = None
) -> Iterator[Point]:
    """Yield the launches that options ask for, or small ones of every shape."""
    form = candidate.form
    counts, holds = xcd_counts(form, options.xcds), condition(where or options.where)
    given = options.grids if grids is None else tuple(grids)
    need_launch(form, options.sizes, options.launch, candidate.name)
    if given and form.reads_sizes:
        loose = [name for name in form.inputs if name not in {*GRID_NAMES, *options.sizes}]
        if loose:
            raise OptionError(
                f"{candidate.name} reads {', '.join(loose)}: give values of these, such as {loose[0]}=1000,4096, in "
                "place of grids"
            )
    by_size = options.launch and form.reads_sizes and not given
    if not by_size and not given:
        yield from _without_hint(candidate, options, counts, holds)
        return
    if by_size and candidate.counted and candidate.counted[0] == options.launch:
        sides = sizes_of_quotients(options.launch, options)
        if sides:
            yield from _by_counts(candidate, options, counts, holds, sides)
            return
    kind = kind_of(form)
    launches = [(as_grid(one, kind), sizes) for one in given for sizes in each_size(options)]
    for count in counts:
        if by_size and (count == counts[0] or "num_xcds" in options.launch.lower()):
            launches = list(sized_launches(form, options.launch, options.sizes, count))
        for grid, sizes in launches:
            if holds(grid, count):
                yield Point(grid, count, sizes)


def _without_hint(candidate: Candidate, options: Options, counts: tuple[int, ...], holds: Holds) -> Iterator[Point]:
    """Launches that can refute, as many as the candidate is quick enough for."""
    sizes, left = each_size(options), candidate.most_workgroups
    if len(sizes) > 1:
        found = launches_of_choices(candidate.form, kind_of(candidate.form), sizes, counts, left, holds)
        yield from (Point(*one) for one in found)
        return
    values = tuple(sizes[0].values())
    for grid, count in with_xcds(refuting_grids(candidate.form, kind_of(candidate.form), values), counts):
        left -= grid.num_pids * len(sizes)
        if left < 0:
            return
        if holds(grid, count):
            yield from (Point(grid, count, one) for one in sizes)


def _by_counts(
    candidate: Candidate, options: Options, counts: tuple[int, ...], holds: Holds, sides: Sides
) -> Iterator[Point]:
    """Launches of a kernel that reads its sizes for counts of tiles only: past every period of these counts."""
    assert candidate.counted is not None
    most, names = candidate.most_workgroups, candidate.form.inputs
    for one in launches_of_choices(candidate.counted[1], "tiles", each_size(options), counts, most, holds):
        yield Point(*sized(one, sides, names))


def _trials(candidate: Candidate, points: list[Point], first: int, budget: Budget) -> list[Trial]:
    """Launches tried around the first that fails, which is the first of them: those before, and some behind it."""
    trials = [Trial(points[first].grid, points[first].num_xcds, False)]
    trials += [Trial(point.grid, point.num_xcds, True) for point in points[:first]]
    left = _MOST_WORKGROUPS
    for point in points[first + 1 :]:
        left -= point.grid.num_pids
        if left < 0:
            break
        try:
            passed = candidate.counterexample(point.grid, point.num_xcds, point.sizes, budget) is None
        except LanguageError as error:
            if error.code == "limit":
                break
            raise
        trials.append(Trial(point.grid, point.num_xcds, passed))
    return trials
