"""`prove`: a candidate is a bijection of every launch of a domain, or nothing is said.

A candidate is cut where a single value that differs between workgroups is carried on, and each piece is shown to be a
bijection of its own: every result in range, and equal results only for equal workgroups (`injective`). A map of a
finite set into itself that merges no two elements is a bijection, and so is one such map behind another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from swizzle_sim.language.emit import emit_condition, emit_text
from swizzle_sim.language.ir import AXES, COORDINATES, Assign, Cond, Form, Name, Stmt
from swizzle_sim.language.rules import INT32_MAX
from swizzle_sim.language.variables import live_before
from swizzle_sim.proof.certificate import Shown, document
from swizzle_sim.proof.execute import Path, paths
from swizzle_sim.proof.injective import same_workgroup
from swizzle_sim.proof.knowledge import MOST_STEPS, Budget, Unproved
from swizzle_sim.proof.launches import LARGEST_LITERAL, LARGEST_SIZE, MOST_XCDS, ROOT, Launches
from swizzle_sim.proof.pieces import cuts, largest_literal, same_for_all
from swizzle_sim.proof.polynomial import Poly, TooLarge

_KEPT: ContextVar[list[dict[str, Any]]] = ContextVar("_KEPT")


@contextmanager
def certificates() -> Iterator[list[dict[str, Any]]]:
    """The certificates, as `checker` reads them, of what is proved meanwhile."""
    token = _KEPT.set([])
    try:
        yield _KEPT.get()
    finally:
        _KEPT.reset(token)


@dataclass(frozen=True)
class Proof:
    """What was shown, or why not."""

    holds: bool  # false says nothing about the candidate
    why: str = ""  # why not; empty where it holds
    max_workgroups: int = 0  # largest launch for which no value leaves 32 bits
    max_xcds: int = 0  # largest count of XCDs
    certificates: int = 0  # steps found and checked

    @property
    def range_text(self) -> str:
        """Sizes that the proof covers."""
        top = "2**31 - 1" if self.max_workgroups == INT32_MAX else str(self.max_workgroups)
        return f"up to {top} workgroups and {self.max_xcds} XCDs"

    def with_all(self, others: Sequence[Proof]) -> Proof:
        """What this proof and all others show together."""
        every = (self, *others)
        most, xcds = (min(getattr(one, name) for one in every) for name in ("max_workgroups", "max_xcds"))
        return replace(self, holds=all(one.holds for one in every), max_workgroups=most, max_xcds=xcds)


def prove(
    form: Form,
    kind: str,
    sizes: Mapping[str, int] | None = None,
    where: Cond | None = None,
    num_xcds: int | None = None,
    steps: int = MOST_STEPS,
) -> Proof:
    """Try to show that a candidate is a bijection of every launch."""
    found = _by_facts(form, kind, sizes, where, num_xcds, steps)
    return found if found.holds or where is None else _by_bits(form, kind, sizes, where, num_xcds) or found


def _by_bits(form: Form, kind: str, sizes: Mapping[str, int] | None, where: Cond, num_xcds: int | None) -> Proof | None:
    """A proof bit by bit where a condition leaves launches whose sides are powers of two; None where there is none."""
    from swizzle_sim.proof.checker import Refused, reach  # noqa: PLC0415 - so that it can be run by its own name

    given = _given(form, kind, sizes, where, num_xcds)
    certificate = document(given, [])
    try:
        workgroups, _ = reach(certificate)
    except (Refused, LookupError, ValueError, RecursionError):
        return None
    if workgroups < LARGEST_SIZE:
        return None
    xcds = num_xcds or MOST_XCDS
    _KEPT.get([]).append({**certificate, "max_workgroups": workgroups, "max_xcds": xcds})
    return Proof(True, "", workgroups, xcds, 1)


def _given(
    form: Form, kind: str, sizes: Mapping[str, int] | None, where: Cond | None, num_xcds: int | None
) -> dict[str, Any]:
    """What a certificate speaks of."""
    given = {"text": emit_text(form), "kind": kind, "where": emit_condition(where) if where else ""}
    return {**given, "sizes": dict(sizes or {}), "num_xcds": num_xcds}


def _by_facts(
    form: Form, kind: str, sizes: Mapping[str, int] | None, where: Cond | None, num_xcds: int | None, steps: int
) -> Proof:
    """A proof by facts of polynomials, or why there is none."""
    small = [value for value in (sizes or {}).values() if value <= LARGEST_LITERAL]
    of_text = max(largest_literal(form.body), 1, *small)  # a size with a value is as a literal
    literal = max(of_text, largest_literal((where,)) if where else 1)
    launches, budget = Launches(kind, sizes or {}, where, num_xcds, literal), Budget(steps)
    if of_text > LARGEST_LITERAL:
        return Proof(False, f"a literal above {LARGEST_LITERAL}")
    try:
        pieces = _pieces(form, launches, budget)
    except (Unproved, TooLarge) as unproved:
        return Proof(False, str(unproved), certificates=budget.certificates)
    workgroups = INT32_MAX // max(one.factor for one in pieces)
    xcds = min(num_xcds or MOST_XCDS, workgroups // (literal if not form.reads_sizes else max(literal, LARGEST_SIZE)))
    if num_xcds and num_xcds > xcds:
        return Proof(False, f"{num_xcds} XCDs times the largest literal", certificates=budget.certificates)
    given = _given(form, kind, sizes, where, num_xcds) | {"max_workgroups": workgroups, "max_xcds": xcds}
    from swizzle_sim.proof.checker import Refused, check  # noqa: PLC0415 - so that it can be run by its own name

    certificate = document(given, pieces)
    try:
        check(certificate)
    except Refused as refused:
        return Proof(False, f"the certificate is refused: {refused}", certificates=budget.certificates)
    _KEPT.get([]).append(certificate)
    return Proof(True, "", workgroups, xcds, budget.certificates)


def _pieces(form: Form, launches: Launches, budget: Budget) -> list[Shown]:
    """Prove piece after piece."""
    results = _all_results(form.results, launches)
    read = live_before(form.body, results) & COORDINATES
    body, linear, found = form.body, read <= {"pid"}, list[Shown]()
    places, kept = list(range(len(body))), tuple[int, ...]()  # of the statements of `body` in the text; -1 for none
    cut: tuple[tuple[Stmt, ...], int] | None = body, 0
    while cut:
        body, done = cut
        cut = None
        for k, carried in cuts(body, results, done):
            try:
                piece = _piece(body[:k], (carried,), launches, budget, linear)
            except Unproved:
                continue
            found.append(replace(piece, end=places[k], result=carried, kept=kept))
            same = same_for_all(body[:k])
            kept = tuple(place for place, one in zip(places, body[:k], strict=False) if any(one is two for two in same))
            cut, linear = ((*same, Assign(carried, Name(ROOT)), *body[k:]), len(same) + 1), True
            places = [*kept, -1, *places[k:]]
            break
    last = _piece(body, results, launches, budget, linear)
    return [*found, replace(last, end=len(form.body), kept=kept)]


def _piece(body: tuple[Stmt, ...], results: tuple[str, ...], launches: Launches, budget: Budget, linear: bool) -> Shown:
    """Prove one piece, by the number of workgroups alone where it reads no more of the launch."""
    if len(results) == 1 and launches.kind in ("tiles", "plane") and linear:
        try:
            by_number = replace(launches, by_number=True)
            return replace(_bijective(body, results, by_number, budget, True), by_number=True)
        except (Unproved, TooLarge):  # where it reads one side, or a condition on the sides helps
            pass
    return _bijective(body, results, launches, budget, linear)


def _all_results(results: tuple[str, ...], launches: Launches) -> tuple[str, ...]:
    """Coordinates of the tile, also those that the candidate leaves as the hardware gives them."""
    if results == ("pid",):
        return results
    if results[0] in ("pid_m", "pid_n"):
        return ("pid_m", "pid_n") if launches.kind in ("tiles", "plane") else ("pid_m",)
    count = {"line": 1, "tiles": 1, "plane": 2, "box": 3}[launches.kind]
    return tuple(f"pid_{axis}" if results[0].startswith("pid") else axis for axis in AXES[:count])


def _bijective(
    body: tuple[Stmt, ...], results: tuple[str, ...], launches: Launches, budget: Budget, linear: bool
) -> Shown:
    """Prove one piece."""
    every, found = paths(budget, lambda path: launches.setup(path, linear=linear), body, results)
    if not found:
        raise Unproved("no launch is left to prove")
    for path, values in found:
        path.known.sharpen(path.named_bounds())
        for name, value in zip(results, values, strict=True):
            path.require(value, f"{name} is at least 0")
            path.require(_extent(name, path, launches) - 1 - value, f"{name} is within the grid")
    place, pairs = {id(path): k for k, path in enumerate(every)}, []
    for i, first in enumerate(found):
        for second in found[i:]:
            steps = same_workgroup(budget, first, second, launches.roots(first[0]))
            if steps is None:
                raise Unproved("not shown: two workgroups never compute the same tile")
            pairs.append((place[id(first[0])], place[id(second[0])], steps))
    factor, steps_of = max(path.factor for path, _ in found), tuple(path.known.steps for path in every)
    return Shown(factor, steps_of, tuple(pairs), False, linear or launches.kind in ("line", "tiles"))


def _extent(name: str, path: Path, launches: Launches) -> Poly:
    """How many values a coordinate of the tile has; of a name of the text, as many as there are workgroups."""
    if name in ("pid_m", "pid_n") and launches.kind in ("tiles", "plane"):
        return launches.read_count(path, f"num_{name}")
    axis = name.removeprefix("pid_")
    return launches.extent(path, AXES.index(axis)) if axis in AXES else launches.total
