"""Two workgroups with one tile are one workgroup: shown digit by digit.

The results of two runs, of the same path or of two, are set equal. Then one variable after another, a quotient or a
remainder that both runs have, is shown to be the same in both: ``mine <= theirs - 1`` is refuted, and so is the
reverse. A pair of paths is settled when it is contradictory or the workgroups' own ids are the same.
"""

from __future__ import annotations

from swizzle_sim.proof.execute import Path
from swizzle_sim.proof.knowledge import Budget, Knowledge
from swizzle_sim.proof.polynomial import Poly, variable

_OTHER = "'"


def same_workgroup(
    budget: Budget, first: tuple[Path, list[Poly]], second: tuple[Path, list[Poly]], root: tuple[str, ...]
) -> list[tuple] | None:
    """Steps that show that equal results of two runs imply the same workgroup; None where it is not shown.

    ``first`` and ``second`` are the same object for two runs of one path.
    """
    (path, results), (other, others) = first, second
    both, theirs = _together(budget, path.known, other.known)
    for a, b in zip(results, others, strict=True):
        both.know_zero(path.known.current(a) - theirs(other.known.current(b)))
    symmetric = first is second
    if not symmetric and both.contradictory(2):
        return both.steps
    pending = [name for name in path.known.order if name in path.known.varying and name in other.known.varying]
    while True:
        if all(both.current(variable(name) - variable(name + _OTHER)).constant == 0 for name in root):
            return both.steps
        # all with little effort first: a certificate that is not there is looked for longest
        settled = next((name for effort in (2, 3) for name in pending if _same(both, name, symmetric, effort)), None)
        if settled is None:
            shown = all(_same(both, name, symmetric, 3) for name in root) or both.contradictory(3)
            return both.steps if shown else None
        pending.remove(settled)
        both.know_zero(variable(settled) - variable(settled + _OTHER))
        if not symmetric and both.contradictory(1):
            return both.steps


def _same(both: Knowledge, name: str, symmetric: bool, effort: int) -> bool:
    """Whether a variable is shown to be the same in both runs."""
    apart = both.current(variable(name) - variable(name + _OTHER))
    if apart.constant is not None:
        return apart.constant == 0
    shown = both.shows(apart, effort) and (symmetric or both.shows(-apart, effort))
    if shown:
        both.steps.append(("same", name))
    return shown


def _together(budget: Budget, mine: Knowledge, other: Knowledge):
    """Knowledge of both runs; the second's variables that differ between workgroups get another name."""
    names = {name: name + _OTHER for name in other.varying}
    both = Knowledge(budget)
    both.order = [
        *mine.order,
        *(names.get(name, name) for name in other.order if names.get(name) or name not in mine.order),
    ]
    both.varying = {*mine.varying, *names.values()}
    both.facts, both.equalities = dict(mine.facts), list(mine.equalities)
    both.definitions = dict(mine.definitions)

    def theirs(value: Poly) -> Poly:
        return both.current(value.renamed(names))

    for name, meaning in other.definitions.items():
        if name not in names and mine.definitions.get(name) == meaning:
            continue
        both.know_zero(variable(names.get(name, name)) - meaning.renamed(names))
    both.know(*(fact.renamed(names) for fact in other.facts))
    for one in other.equalities:
        both.know_zero(one.renamed(names))
    return both, theirs
