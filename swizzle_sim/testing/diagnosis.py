"""What to say of a remap that fails: its own defaults first, and a condition under which it is right.

A condition is one of the language, so that it can be given back as ``where``. Those of the literals of the text come
first, and the first that is proved is taken. One that only the launches tried suggest has to hold on more of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from swizzle_sim.language.ir import Form
from swizzle_sim.language.lattice import Trial, named
from swizzle_sim.language.rules import CHECK_STEPS
from swizzle_sim.language.verdict import NOWHERE, UNNAMED, Budget
from swizzle_sim.testing.candidate import Candidate
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.grids_to_try import Holds, as_grid, condition, each_size, kind_of
from swizzle_sim.testing.refuting import periods
from swizzle_sim.testing.trials import Outcome, points_of, try_points
from xcd_model.errors import LanguageError

USUAL_XCDS = 8  # of the MI300X, for which remaps by XCD are written
_LEAST = 3  # launches that a condition has to hold on
_MOST_DIVISORS = 12
_FURTHER = 2_000_000  # workgroups on which a condition that is not proved is tried again
_BOUND = re.compile(r"(num_\w+) ([<>])= (\w+)")


def at_own_values(candidate: Candidate, outcome: Outcome, options: Options) -> tuple[Outcome, Options]:
    """Outcome of the candidate's own defaults and the usual XCDs, where these fail, and the options that it is of."""
    several = {name: value for name, value in options.own.items() if name in options.several}
    count = (USUAL_XCDS,) if candidate.form.reads_num_xcds and not options.xcds else options.xcds
    own = replace(options, sizes={**options.sizes, **several}, xcds=count)
    if own == options or outcome.point is None:
        return outcome, options
    points = list(points_of(candidate, own))
    if not points:
        return outcome, options
    first = try_points(candidate, points)
    values = ", ".join([*(f"{name}={value}" for name, value in several.items()), *(f"{one} XCDs" for one in count)])
    if first.point is None:
        tried = f"{first.tried} launch{'es' * (first.tried != 1)}"
        return replace(outcome, also=f"right at {values}, as far as tried: {tried}"), options
    if not several:  # of another count of XCDs the smallest launch says no more
        return replace(outcome, point=first.point, counterexample=first.counterexample), options
    smaller = outcome.point.rank < first.point.rank
    also = f"also at {outcome.failure.partition(';')[0]}" if smaller else ""
    return replace(first, also=also, within=values), own


def candidates_of(form: Form, outcome: Outcome, options: Options) -> Iterator[str]:
    """Conditions that no launch tried contradicts, those of the literals of the text first."""
    of_literals = [*_of_literals(form, options)]
    wider = [text for text in of_literals if " == " not in text or "%" in text]  # than one count of a side
    for text in dict.fromkeys([*wider, outcome.domain, *of_literals]):
        # what divides or is equal is proved or not; a bound that few launches meet says little though it is true
        least = _LEAST if _BOUND.search(text) else 1
        if named(text) and fits(text, outcome.trials, least):
            yield text


def unproved(candidate: Candidate, outcome: Outcome, options: Options) -> str:
    """Domain of an outcome that nothing proves, where further launches bear it out; else that there is none."""
    if outcome.domain == NOWHERE or not named(outcome.domain):
        return outcome.domain
    # what sizes decide, the grid's shape does not tell
    if options.several or (outcome.point and outcome.point.sizes) or not fits(outcome.domain, outcome.trials):
        return UNNAMED
    return outcome.domain if _holds_further(candidate, condition(outcome.domain)) else UNNAMED


def _of_literals(form: Form, options: Options) -> Iterator[str]:
    sides = {"line": (), "tiles": ("num_pid_m", "num_pid_n"), "plane": ("num_pid_x", "num_pid_y")}
    counts = ("num_pids", *sides.get(kind_of(form), ("num_pid_x", "num_pid_y", "num_pid_z")))
    sizes = tuple({value for choice in each_size(options) for value in choice.values()})
    by_xcds = ["num_xcds"] if form.reads_num_xcds else []
    divisors = [*by_xcds, *(str(one) for one in periods(form, sizes)[:_MOST_DIVISORS])]
    for divisor in divisors:
        yield from (f"{count} % {divisor} == 0" for count in counts)
    for divisor in [*by_xcds, *divisors[len(by_xcds) :][::-1]]:
        ends = (divisor,) if divisor == "num_xcds" else (divisor, int(divisor) - 1, int(divisor) + 1)
        for count in counts:
            yield from (*(f"{count} <= {end}" for end in ends), f"{count} >= {divisor}")
    for divisor in divisors[len(by_xcds) :]:  # a count that the file fixes
        yield from (f"{count} == {divisor}" for count in counts)


def fits(text: str, trials: Sequence[Trial], least: int = _LEAST) -> bool:
    """Whether no trial contradicts a condition, some bear it out, and its bounds are where trials begin to fail."""
    holds = condition(text)
    met = [trial for trial in trials if holds(trial.grid, trial.num_xcds)]
    if len({trial.grid for trial in met}) < least or not all(trial.passed for trial in met):
        return False
    failing = [trial for trial in trials if not trial.passed]
    for count, sign, bound in _BOUND.findall(text):
        past = condition(f"{count} == {bound} {'-' if sign == '>' else '+'} 1")
        if not any(past(trial.grid, trial.num_xcds) for trial in failing):
            return False
    return True


def _holds_further(candidate: Candidate, holds: Holds) -> bool:
    """Whether a candidate is right on larger launches of a condition: sides of powers of two, and past each period."""
    sides = sorted({2**k for k in range(13)} | {k * one for one in periods(candidate.form)[:6] for k in (1, 3, 5)})
    kind, left, budget = kind_of(candidate.form), _FURTHER, Budget(CHECK_STEPS)
    sides = sides[::3] if kind == "box" else sides
    for chosen in product(sides, repeat={"line": 1, "box": 3}.get(kind, 2)):
        grid = as_grid(chosen, kind)
        if grid.num_pids > left or not holds(grid, USUAL_XCDS):
            continue
        left -= grid.num_pids
        try:
            if candidate.counterexample(grid, USUAL_XCDS, {}, budget):
                return False
        except LanguageError:  # too much work, or nothing that C says
            return False
    return True
