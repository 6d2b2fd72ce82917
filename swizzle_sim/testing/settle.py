"""What is known of a candidate beyond the launches tried: a proof for all of them, or for those of a condition.

Of a remap that fails its own defaults are tried first. A condition under which it is right is one of the language, so
that it can be given back as ``where``. Those of the literals of the text come first, and the first that is proved is
taken. One that only the launches tried suggest has to hold on more of them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from swizzle_sim.language.grid import Grid
from swizzle_sim.language.ir import Form
from swizzle_sim.language.lattice import Trial, kind_of_grid, name_domain, named, unconditional
from swizzle_sim.language.parse import parse_condition
from swizzle_sim.language.rules import CHECK_STEPS
from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.language.verdict import EVERY_GRID, NOWHERE, PROVED, UNNAMED, Budget, Verdict
from swizzle_sim.testing.candidate import Candidate, TextCandidate
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.grids_to_try import Holds, Where, as_grid, condition, each_size, kind_of, xcd_counts
from swizzle_sim.testing.refuting import grids, periods, with_xcds
from swizzle_sim.testing.trials import Outcome, points_of, try_points
from swizzle_sim.triton_source.prologue import Premise
from xcd_model.errors import LanguageError, OptionError

if TYPE_CHECKING:
    from swizzle_sim.proof import Proof

MOST_CHOICES = 64  # of values that are each proved
MOST_REFUTED = 8  # of values, and
MOST_CONDITIONS = 8  # of a refuted remap
STEPS_REFUTED = 300  # linear programs of the proof of the condition under which a refuted remap may be right


def settle(candidate: Candidate, outcome: Outcome, options: Options, where: Where = None) -> Outcome:
    """Prove what the launches tried support, where a proof is found; of a refuted one, diagnose it."""
    stated = where or options.where
    if not outcome.holds and options.unsure:
        raise OptionError(options.unsure, code="unsure")
    if not outcome.holds:
        return diagnosed(candidate, outcome, options, stated)
    twice = candidate.stored_twice(points_of(candidate, options)) if isinstance(candidate, TextCandidate) else ""
    if twice:
        said = f"{candidate.name}: {twice}: say which names hold the tile that is stored (answer=)"
        raise OptionError(said, code="unsure")
    form = provable_form(candidate, options)
    if form is None or callable(stated):
        return outcome
    xcds = _fixed(options)[1]
    covers = proof_of_options(form, options, stated)
    domain = (f"{stated}" if stated else EVERY_GRID) + (f", {xcds} XCDs" if covers and xcds else "")
    return replace(outcome, status=PROVED, domain=domain, covers=covers) if covers else outcome


def diagnosed(candidate: Candidate, outcome: Outcome, options: Options, where: Where = None) -> Outcome:
    """A refuted outcome at the candidate's own defaults, with a condition under which it is right, proved if it can."""
    if callable(where):
        return outcome
    outcome, options = at_own_values(candidate, outcome, replace(options, where=where or ""))
    for domain, covers in proved_conditions(candidate, outcome, options):
        return replace(outcome, domain=domain, covers=covers)
    domain = unproved(candidate, outcome, options)
    return replace(outcome, domain=both(options.where, domain) if named(domain) else domain)


def proved_conditions(candidate: Candidate, outcome: Outcome, options: Options) -> Iterator[tuple[str, str]]:
    """Conditions, with that of the options, under which a refuted candidate is proved, and the sizes that it covers."""
    form = provable_form(candidate, options)
    if form is None:
        return
    for text in itertools.islice(candidates_of(form, outcome, options), MOST_CONDITIONS):
        covers = proof_of_options(form, options, both(options.where, text), MOST_REFUTED, STEPS_REFUTED)
        if covers:
            yield both(options.where, text), covers


def proof_of_options(form: Form, options: Options, where: str, most: int = MOST_CHOICES, steps: int = 0) -> str:
    """Sizes that a proof under a condition covers, for the sizes and XCDs of options; empty where none is found."""
    sizes, xcds = _fixed(options)
    several = {name: values for name, values in options.several.items() if name in form.inputs}
    for names in _subsets(several, most):
        covers = _proof_of_each(form, {name: several[name] for name in names}, sizes, where, xcds, steps)
        if covers:
            return covers
    return ""


def _fixed(options: Options) -> tuple[dict[str, int], int | None]:
    """Sizes that have one value, and the one count of XCDs, of options."""
    sizes = {name: value for name, value in options.single.items() if isinstance(value, int)}
    return sizes, options.xcds[0] if options.xcds and len(options.xcds) == 1 else None


def settle_verdict(verdict: Verdict, swizzle: Swizzle, grid: Grid, num_xcds: int) -> Verdict:
    """Prove the domain of a verdict at one grid, or try launches that can refute it.

    A swizzle that reads a kernel's sizes stays as it is: its lattice is the kernel's own.
    """
    form = swizzle.form
    if form.reads_sizes or verdict.status == PROVED:
        return verdict
    kind, candidate = kind_of_grid(grid), TextCandidate.of(swizzle)
    stated = verdict.domain if named(verdict.domain) else ""
    if verdict.bijective and (stated or unconditional(verdict.domain)):
        found = _found(form, kind, {}, stated, None)
        if found:
            sampled = verdict.sampled and found.max_workgroups < grid.num_pids
            domain = stated or EVERY_GRID
            return replace(verdict, status=PROVED, domain=domain, covers=found.range_text, sampled=sampled)
    if not verdict.bijective and kind == kind_of(form):
        tried = settle(candidate, try_points(candidate, points_of(candidate, Options())), Options())
        # where smaller launches all hold, what they suggest is an accident
        return replace(verdict, domain=UNNAMED if tried.holds else tried.domain, covers=tried.covers)
    return _tried_further(verdict, candidate, kind, [Trial(grid, num_xcds, verdict.bijective)], stated)


def _tried_further(verdict: Verdict, candidate: TextCandidate, kind: str, trials: list[Trial], stated: str) -> Verdict:
    """Verdict after launches that can refute: more of them passed, or its domain corrected."""
    holds, left, failing = condition(stated), candidate.most_workgroups, verdict.lattice_counterexample
    budget = Budget(CHECK_STEPS)
    counts = xcd_counts(candidate.form, None)
    for grid, count in with_xcds(grids(candidate.form, kind), counts):
        left -= grid.num_pids
        if left < 0:
            break
        if holds(grid, count):
            try:
                found = candidate.counterexample(grid, count, {}, budget)
            except LanguageError as error:
                if error.code == "limit":
                    break
                raise
            trials.append(Trial(grid, count, found is None))
            failing = failing or found
    passed = sum(trial.passed for trial in trials)
    domain = verdict.domain
    if passed < len(trials):
        domain = name_domain(trials, candidate.form)
        domain = both(stated, domain) if named(domain) else domain  # none was tried where what was stated does not hold
        domain = UNNAMED if not verdict.bijective and named(domain) and not fits(domain, trials) else domain
    return replace(
        verdict,
        domain=domain,
        tested=verdict.tested + len(trials) - 1,
        passed=verdict.passed + passed - 1,
        largest=max(verdict.largest, *(trial.grid.num_pids for trial in trials)),
        lattice_counterexample=failing,
    )


def provable_form(candidate: Candidate, options: Options) -> Form | None:
    """Form of a candidate that a proof can speak of: a text, on all launches of its kind."""
    if not isinstance(candidate, TextCandidate) or candidate.tiles or options.grids:
        return None
    if not all(isinstance(one, Premise) for one in candidate.assumed):
        return None
    if options.launch and candidate.form.reads_sizes:  # sizes and grid depend on each other, but for counts of tiles
        launch, form = candidate.counted or ("", None)
        return form if launch == options.launch else None
    return candidate.form


def _subsets(several: Mapping[str, tuple[int, ...]], most: int = MOST_CHOICES) -> list[tuple[str, ...]]:
    """Sizes whose values are proved one by one, the others being any number: the fewest choices first."""
    found = [names for k in range(len(several) + 1) for names in itertools.combinations(several, k)]
    choices = {names: math.prod(len(several[name]) for name in names) for names in found}
    return sorted((names for names in found if choices[names] <= most), key=lambda names: choices[names])


def _proof_of_each(
    form: Form, several: Mapping[str, tuple[int, ...]], sizes: dict[str, int], where: str, xcds: int | None, steps: int
) -> str:
    """Sizes that the proofs of all choices cover together; empty where one is not found."""
    each: list[Proof] = []
    for choice in itertools.product(*several.values()):
        chosen = sizes | dict(zip(several, choice, strict=True))
        found = _found(form, kind_of(form), chosen, where, xcds, steps)
        if found is None:
            return ""
        each.append(found)
    return each[0].with_all(each).range_text


def _found(form: Form, kind: str, sizes: dict | None, where: str, xcds: int | None, steps: int = 0) -> Proof | None:
    from swizzle_sim.proof import prove  # noqa: PLC0415 - a check of files that fail never proves

    condition = parse_condition(where) if where else None
    found = prove(form, kind, sizes, condition, xcds, **({"steps": steps} if steps else {}))
    return found if found.holds else None


def both(one: str, other: str) -> str:
    """Two conditions together."""
    return f"({one}) and ({other})" if one and other else one or other


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
        if math.prod(chosen) > left or not holds(grid := as_grid(chosen, kind), USUAL_XCDS):
            continue
        left -= grid.num_pids
        try:
            if candidate.counterexample(grid, USUAL_XCDS, {}, budget):
                return False
        except LanguageError:  # too much work, or nothing that C says
            return False
    return True
