"""What is known on one path through a candidate: facts, definitions, quotients; and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from swizzle_sim.proof.farkas import Certificate, find, holds
from swizzle_sim.proof.polynomial import Monomial, Poly, poly, variable
from swizzle_sim.proof.samples import Samples

_SHORT = 3  # terms of a bound: of a quotient by another, of two parts
OBVIOUS = Certificate((), ())  # of what has no coefficient below 0
MOST_STEPS = 4000  # linear programs of one proof: most take a hundred, three nested clipped blocks 3000


class Unproved(Exception):
    """The proof does not go on from here; the one argument says why. It says nothing about the candidate."""


@dataclass
class Budget:
    """Steps left, shared by all paths of a proof, and what was shown or not before."""

    left: int = MOST_STEPS
    known: dict[tuple, Certificate | None] = field(default_factory=dict)
    certificates: int = 0


class Knowledge:
    """Facts (polynomials that are at least 0), equalities (that are 0) and definitions of variables.

    Every variable is at least 0. A definition takes its variable out of everything else.
    """

    def __init__(self, budget: Budget):
        self.budget = budget
        self.facts: dict[Poly, None] = {}
        self.equalities: list[Poly] = []
        self.definitions: dict[str, Poly] = {}
        self.order: list[str] = []  # variables, oldest first
        self.divisions: dict[tuple[Poly, Poly], tuple[Poly, Poly]] = {}
        self.varying: set[str] = set()  # variables that differ between workgroups
        self.samples = Samples()
        self.folded: tuple[str, ...] = ()  # sides whose product is the number of workgroups
        self.steps: list[tuple] = []  # of a certificate: how all of this follows

    def new(self, name: str, varies: bool, values: np.ndarray | None = None) -> Poly:
        """Make a variable of at least 0, with its values at the samples."""
        self.order.append(name)
        if values is not None:
            self.samples.give(name, values)
        if varies:
            self.varying.add(name)
        self.facts[variable(name)] = None
        return variable(name)

    def current(self, value: Poly) -> Poly:
        """A polynomial without the variables that have a definition, the product of the sides as one."""
        if self.folded:
            value = value.folded(self.folded, "num_pids")
        for name, meaning in self.definitions.items():
            value = value.with_value(name, meaning)
        return value

    def know(self, *facts: Poly) -> None:
        """Note facts."""
        for one in facts:
            fact = _tightened(self.current(one))
            if fact.constant is None or fact.constant < 0:
                self.facts[fact] = None

    def know_zero(self, value: Poly, keep: frozenset[str] = frozenset()) -> None:
        """Note that something is 0: as a definition of its youngest variable where it has one."""
        value = self.current(value)
        if value.constant == 0:
            return
        varies = self.varies(value)  # what is the same for all workgroups is not defined by what is not
        found = value.solved(
            name for name in reversed(self.order) if name not in keep and (name in self.varying) == varies
        )
        if found:
            self.define(*found)
        else:
            self.steps.append(("zero", value))
            self.equalities.append(value)

    def define(self, name: str, meaning: Poly) -> None:
        """Put a polynomial in the place of a variable, everywhere."""
        self.steps.append(("rule", name, meaning))
        self.definitions = {key: value.with_value(name, meaning) for key, value in self.definitions.items()}
        self.definitions[name] = meaning
        facts = [_tightened(fact.with_value(name, meaning)) for fact in self.facts]
        self.facts = {fact: None for fact in facts if fact.constant is None or fact.constant < 0}
        changed = [one.with_value(name, meaning) for one in self.equalities]
        self.equalities = [one for one in changed if one.constant != 0]
        self.divisions = {
            (a.with_value(name, meaning), b.with_value(name, meaning)): (
                q.with_value(name, meaning),
                r.with_value(name, meaning),
            )
            for (a, b), (q, r) in self.divisions.items()
        }

    def shows(self, goal: Poly, effort: int = 3) -> bool:
        """Whether ``goal >= 0`` follows, by a checked certificate."""
        goal = self.current(goal)
        if goal.constant is not None:
            return goal.constant >= 0 or self.contradictory(effort)
        if _tightened(goal) in self.facts:
            return True
        if all(value >= 0 for value in goal.terms.values()):
            self.steps.append(("show", goal, OBVIOUS))  # now; no longer where a variable gets a definition
            return True
        if self.samples.below_zero(goal):
            return False
        key = (goal, frozenset(self.facts), tuple(self.equalities), effort)
        return self._ask(key, lambda: holds(goal, list(self.facts), self.equalities, effort))

    def contradictory(self, effort: int = 2) -> bool:
        """Whether no workgroup takes this path, by a checked certificate."""
        if self.samples.count:
            return False
        facts = list(self.facts)
        if any(fact.constant is not None and fact.constant < 0 for fact in facts):
            return True
        facts.reverse()  # the latest decision is the one to multiply with
        return self._ask(
            (None, frozenset(facts), tuple(self.equalities), effort), lambda: find(facts, self.equalities, effort)
        )

    def _ask(self, key, search) -> bool:
        known = self.budget.known
        if key not in known:
            self.budget.left -= 1
            if self.budget.left < 0:
                raise Unproved("more steps than are allowed")
            known[key] = search()
            self.budget.certificates += known[key] is not None
        found = known[key]
        if found is not None:
            self.steps.append(("false", found) if key[0] is None else ("show", key[0], found))
        return found is not None

    def varies(self, value: Poly) -> bool:
        """Whether a polynomial can differ between workgroups."""
        return not value.names.isdisjoint(self.varying)

    def divided(self, a: Poly, b: Poly) -> tuple[Poly, Poly]:
        """Quotient and remainder of ``a >= 0`` by ``b >= 1``, both of which have been shown."""
        a, by = self.current(a), self.current(b)
        b = self._named(by)
        whole, rest = _split(a, b)
        try:
            q, r = self._small(rest, b)
        except Unproved:  # the part that the divisor does not divide may be below 0, the dividend is not
            if not whole.terms:
                raise
            whole, (q, r) = poly(0), self._fresh(a, b)
        whole, q, r = self.current(whole), self.current(q), self.current(r)
        self.steps.append(("divided", a, by, b, whole + q, r))
        return whole + q, r

    def _named(self, b: Poly) -> Poly:
        """A variable for a divisor of several terms, so that products with it stay short."""
        if len(b.terms) == 1:
            return b
        name = f"d({b!r})".replace(" ", "")
        if name not in self.order:
            self.new(name, self.varies(b), self.samples.at(b))
            self.steps.append(("named", name, b))
            self.equalities.append(variable(name) - b)
            self.know(variable(name) - 1)
        return variable(name)

    def _small(self, a: Poly, b: Poly) -> tuple[Poly, Poly]:  # noqa: PLR0911 - one a case
        if a.constant is not None and b.constant is not None:
            return poly(a.constant // b.constant), poly(a.constant % b.constant)
        if a.constant == 0:
            return poly(0), poly(0)
        if a == b:
            return poly(1), poly(0)
        if (a, b) in self.divisions:
            return self.divisions[a, b]
        if self.shows(b - 1 - a, 2):
            if self.shows(a, 2):
                return poly(0), a
            if self.shows(a + b, 2):
                raise Fork(a)  # -b <= a < b: which side of 0 decides
        without = a - a.terms.get((), 0)
        if without != a and all(value > 0 for value in without.terms.values()):
            self.divided(without, b)  # so that n + b - 1 is seen beside n
            if self.current(a) != a:
                return self.divided(a, b)
        by_factor = self._by_factor(a, b)
        return by_factor if by_factor else self._fresh(a, b)

    def _by_factor(self, a: Poly, b: Poly) -> tuple[Poly, Poly] | None:
        """Divide by one factor of a product after the other, where ``a`` has parts that the first divides."""
        if len(b.terms) != 1:
            return None
        ((names, coefficient),) = b.terms.items()
        factors = [variable(name) for name in dict.fromkeys(names)] + ([poly(coefficient)] if coefficient > 1 else [])
        if len(factors) + (len(names) > len(set(names))) < 2 or len(a.terms) == 1:
            return None
        for factor in factors:
            if _split(a, factor)[0].terms and self.shows(a, 2):
                q1, r1 = self.divided(a, factor)
                rest = _split(self.current(b), self.current(factor))
                if rest[1].terms:
                    return None
                q2, r2 = self.divided(self.current(q1), rest[0])
                self.steps.append(("factor", a, factor, rest[0]))
                return q2, self.current(r2) * self.current(factor) + self.current(r1)
        return None

    def _fresh(self, a: Poly, b: Poly) -> tuple[Poly, Poly]:
        """Name quotient and remainder; the same names for the same division, in whatever path."""
        if not (self.shows(a) and self.shows(b - 1)):
            raise Unproved("a part of a dividend may be below 0")
        varies = self.varies(a) or self.varies(b)
        key = f"({a!r})/({b!r})".replace(" ", "")
        divisor = np.maximum(self.samples.at(b), 1)
        whole = np.floor(self.samples.at(a) / divisor)
        q = self.new(f"q{key}", varies, whole)
        r = self.new(f"r{key}", varies, self.samples.at(a) - whole * divisor)
        self.steps.append(("let", *q.names, *r.names, a, b))
        self.know(b - 1 - r)
        self.divisions[a, b] = q, r
        self.know_zero(a - b * q - r, frozenset({*b.names, *q.names, *r.names}))
        self._bound(q, b)
        for fact in list(self.facts):
            parts = _split(fact, b)[0].names if len(b.terms) == 1 else ()
            if len(parts) > (not b.names):  # by a literal: only what compares two variables
                self.reduce(fact)
        return self.current(q), self.current(r)

    def _bound(self, q: Poly, b: Poly) -> None:
        """Learn which variables a new quotient does not exceed: products of these facts are what proofs need."""
        (name,) = q.names
        for other in self.order:
            if other != name and other not in self.definitions and not other.startswith("r("):
                self._learn(q, variable(other))
        for (_, divisor), (earlier, _) in list(self.divisions.items()):
            if divisor == b and earlier != q and len(earlier.terms) <= 2:
                self._learn(earlier, q)
                if len(earlier.terms) == 2:  # a quotient that was divided itself
                    self._learn(q, earlier)

    def _learn(self, lower: Poly, upper: Poly) -> None:
        difference = self.current(upper - lower)
        if self.shows(difference - 1, 2):
            self.know(difference - 1)
        elif self.shows(difference, 2):
            self.know(difference)

    def reduce(self, fact: Poly) -> None:
        """Learn what a fact ``b * s + t >= 0`` says of s, for the divisors met: the remainder t is less than b."""
        todo = [self.current(fact)]
        while todo:
            fact = todo.pop()
            for divisor in {b: None for _, b in self.divisions if len(b.terms) == 1}:
                part, rest = _split(fact, divisor)
                if part.constant is not None or not rest.terms:
                    continue
                for goal in (part - 1, part):
                    if goal in self.facts:
                        break
                    if self.shows(goal, 2):
                        self.know(goal)
                        todo.append(goal)
                        break

    def _open(self, name: str) -> bool:
        return name in self.varying and name not in self.definitions

    def close_bounds(self) -> list[Poly]:
        """Differences of a bound and a quotient that differs between workgroups, where they may be 0."""
        quotients = {name for name in self.varying if name.startswith("q(")}
        found = []
        for fact in self.facts:
            below = [key for key, value in fact.terms.items() if value == -1 and len(key) == 1 and key[0] in quotients]
            if len(fact.terms) == 2 and below and all(len(key) == 1 for key in fact.terms):
                found.append(fact)
        return found

    def sharpen(self, bounds: Iterable[Poly]) -> None:
        """Learn which quotients are now below their bounds, and below others, after the decisions of a path."""
        quotients = [name for name in self.order if name[:2] == "q(" and self._open(name)]
        for bound, name in product(bounds, quotients):
            room = self.current(bound) - 1 - variable(name)
            if room not in self.facts and self.shows(room, 2):
                self.know(room)
        for fact in list(self.facts):
            below = [name for name in quotients if fact.terms.get((name,)) == -1]
            if len(fact.terms) <= _SHORT and below and fact - 1 not in self.facts and self.shows(fact - 1, 2):
                self.know(fact - 1)


class Fork(Exception):
    """The path splits on whether a polynomial is at least 0; the one argument is the polynomial."""


def _tightened(fact: Poly) -> Poly:
    """The same fact on integers, without a common factor: ``8 k - 1 >= 0`` is ``k - 1 >= 0``."""
    common = math.gcd(*(value for key, value in fact.terms.items() if key))
    return fact if common < 2 else Poly({key: value // common for key, value in fact.terms.items()})


def _split(a: Poly, b: Poly) -> tuple[Poly, Poly]:
    """``(s, t)`` with ``a == b * s + t``, s of the parts of ``a`` that ``b``, one term, divides."""
    if a == b:
        return poly(1), poly(0)
    if len(b.terms) != 1:
        return poly(0), a
    ((names, coefficient),) = b.terms.items()
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for key, value in a.terms.items():
        left = list(key)
        try:
            for name in names:
                left.remove(name)
        except ValueError:
            rest[key] = value
            continue
        quotient, remainder = divmod(abs(value), coefficient)
        if not key:  # constants: towards 0, as -1 // 8 is for a case split
            whole[()] = quotient if value > 0 else -quotient
            rest[key] = remainder if value > 0 else -remainder
        elif remainder:
            rest[key] = value
        else:
            whole[tuple(left)] = value // coefficient
    return Poly(whole), Poly(rest)
