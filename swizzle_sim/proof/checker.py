"""Checks certificates that remappings are bijections; it shares no code with what finds them, and imports none of it.

python -m swizzle_sim.proof.checker FILE     # or this file alone; exit 1 where a certificate is refused

A certificate holds a text, the launches, and pieces of the text. Of each piece it holds every path: a list of steps
that derive facts, polynomials that are at least 0 at every workgroup of the path. The text is then run on polynomials:
each comparison has to follow from the facts, each quotient and remainder has to be among them, and no value may exceed
a multiple of the limit. Two runs with equal results have to be runs of one workgroup. A map of a finite set into itself
that merges no two elements is a bijection.

A certificate without pieces is of launches whose sides are powers of two: there are few, and the text is run at each,
on functions of the bits of an id. Curves by Morton and Hilbert are proved so.

A step is ``show goal``: coefficients of at least 0 of facts, of products of two and of facts times monomials, and any
of equalities, with which ``-1 - goal`` adds up to something below 0 (Farkas; Handelman 1988). All variables are numbers
of at least 0 with a meaning that does not depend on the path, as ``q3 = A // B`` for the third definition.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

INT32_MAX, MOST_XCDS, LARGEST = 2**31 - 1, 1024, 65536
SYMBOL = 4096  # literals from here on are any number up to the limit
MOST_STEPS = 64  # of a loop
MOST_NODES = 200_000  # of diagrams of one launch
SIDES = {
    "line": ("num_pids",),
    "tiles": ("num_pid_m", "num_pid_n"),
    "plane": ("num_pid_x", "num_pid_y"),
    "box": ("num_pid_x", "num_pid_y", "num_pid_z"),
}
AXES = "xyz"
GROUPS = (("pid",), ("pid_m", "pid_n"), ("pid_x", "pid_y", "pid_z"), ("x", "y", "z"))
Poly = dict[tuple[str, ...], Any]  # monomial, names in order, to its coefficient


class Refused(Exception):
    """The certificate proves nothing; the one argument says why."""


def need(truth: object, otherwise: str) -> None:
    """Refuse unless something is so."""
    if not truth:
        raise Refused(otherwise)


def number(value: Any) -> Poly:
    """A constant."""
    return {(): value} if value else {}


def var(name: str) -> Poly:
    """A variable."""
    return {(name,): 1}


def plus(a: Poly, b: Poly, times: Any = 1) -> Poly:
    """``a + times * b``."""
    total = dict(a)
    for key, value in b.items():
        total[key] = total.get(key, 0) + times * value
    return {key: value for key, value in total.items() if value}


def mul(a: Poly, b: Poly) -> Poly:
    """``a * b``."""
    total: Poly = {}
    for one, x in a.items():
        for two, y in b.items():
            key = tuple(sorted(one + two))
            total[key] = total.get(key, 0) + x * y
    return {key: value for key, value in total.items() if value}


def minus(a: Poly, less: int = 0) -> Poly:
    """``-less - a``."""
    return plus(number(-less), a, -1)


def constant(a: Poly) -> int | None:
    """Value of a polynomial without variables."""
    return a.get((), 0) if all(not key for key in a) else None


def tight(a: Poly) -> Poly:
    """The same claim ``a >= 0`` of integers, without a common factor."""
    common = math.gcd(*(value for key, value in a.items() if key))
    return {key: value // common for key, value in a.items() if value // common} if common > 1 else a


def put(a: Poly, name: str, meaning: Poly) -> Poly:
    """With a polynomial in the place of a variable."""
    total = {key: value for key, value in a.items() if name not in key}
    for key, value in a.items():
        if name in key:
            part: Poly = {tuple(one for one in key if one != name): value}
            for _ in range(key.count(name)):
                part = mul(part, meaning)
            total = plus(total, part)
    return total


def renamed(a: Poly, names: Callable[[str], str]) -> Poly:
    """With other names."""
    return {tuple(sorted(map(names, key))): value for key, value in a.items()}


class Definitions:
    """Variables that stand for quotients, remainders and polynomials of earlier ones."""

    def __init__(self, file: Mapping[str, Any]):
        self.polys = [self._poly(one) for one in file["polynomials"]]
        self.of: list[list[Poly]] = []
        self.varying: list[bool] = []
        for operands in file["definitions"]:
            self.of.append([self.polys[one] for one in operands])
            names = {name for one in self.of[-1] for key in one for name in key}
            for name in names:
                need(not self.is_defined(name) or int(name[1:]) < len(self.of) - 1, f"{name} before its definition")
            self.varying.append(any(map(self.varies, names)))

    @staticmethod
    def _poly(terms: Sequence[Sequence[Any]]) -> Poly:
        found: Poly = {}
        for value, *names in terms:
            need(
                type(value) is int and all(type(name) is str and name for name in names), "a polynomial of no integers"
            )
            found[tuple(sorted(names))] = value
        need(len(found) == len(terms), "a monomial twice")
        return {key: value for key, value in found.items() if value}

    @staticmethod
    def is_defined(name: str) -> bool:
        """Whether a variable is one of a definition."""
        return name[0] in "qrd" and name[1:].isdecimal()

    def varies(self, name: str) -> bool:
        """Whether a variable differs between workgroups."""
        return name.startswith("id") or (self.is_defined(name) and self.varying[int(name[1:])])


class State:
    """Facts (at least 0), equalities (0), rules (what to write for a variable) and divisions of one path, or of two."""

    def __init__(self, launches: Launches, folded: tuple[str, ...] = ()):
        self.launches, self.definitions, self.folded = launches, launches.definitions, folded
        self.facts: dict[frozenset, Poly] = {}
        self.zeros: dict[frozenset, Poly] = {}
        self.rules: dict[str, Poly] = {}
        self.divided: list[tuple[Poly, ...]] = []  # dividend, divisor, quotient, remainder
        self.cases: list[tuple[Poly, bool]] = []
        self.dead = False  # no workgroup is here
        self.symmetric = False  # of two runs: both of one path

    def now(self, a: Poly) -> Poly:
        """A polynomial by the rules; the product of the sides is the number of workgroups where that is all of them."""
        while self.folded and any(set(self.folded) <= set(key) for key in a):
            key = next(key for key in a if set(self.folded) <= set(key))
            left = list(key)
            for side in self.folded:
                left.remove(side)
            part = {tuple(sorted([*left, "num_pids"])): a[key]}
            a = plus({one: value for one, value in a.items() if one != key}, part)
        for name in {name for key in a for name in key if name in self.rules}:
            a = put(a, name, self.rules[name])
        return a

    def assume(self, *facts: Poly) -> None:
        """Add facts."""
        for one in facts:
            fact = tight(self.now(one))
            value = constant(fact)
            self.dead |= value is not None and value < 0
            self.facts[frozenset(fact.items())] = fact

    def vanish(self, zero: Poly) -> None:
        """Add an equality."""
        zero = self.now(zero)
        self.dead |= bool(constant(zero))
        self.zeros[frozenset(zero.items())] = zero

    def holds(self, a: Poly) -> bool:
        """Whether ``a >= 0`` is among the facts."""
        a = tight(self.now(a))
        return self.dead or all(value >= 0 for value in a.values()) or frozenset(a.items()) in self.facts

    def is_zero(self, a: Poly) -> bool:
        """Whether ``a == 0`` is among the equalities."""
        a = self.now(a)
        return not a or self.dead or any(frozenset(one.items()) in self.zeros for one in (a, minus(a)))

    def quotient(self, a: Poly, b: Poly) -> tuple[Poly, Poly]:
        """Quotient and remainder of a division among the facts."""
        a, b = self.now(a), self.now(b)
        found = next((one for one in reversed(self.divided) if one[0] == a and one[1] == b), None)
        if found is None:
            raise Refused("a division that is not shown")
        return found[2], found[3]

    def adds_up(self, goal: Poly | None, facts: Sequence[Any], equalities: Sequence[Any]) -> bool:
        """Whether facts, ``-1 - goal`` among them, and equalities add up to something below 0."""
        polys, total = self.definitions.polys, dict[tuple[str, ...], Any]()
        refuted = None if goal is None else self.now(minus(goal, 1))
        for coefficient, indices, monomial in facts:
            need(Fraction(coefficient) >= 0 and len(indices) < 3, "a coefficient below 0, or a product of three")
            product: Poly = {tuple(sorted(monomial)): 1}
            for index in indices:
                fact = self.now(polys[index])
                need(fact == refuted or self.holds(fact), "a fact that is none")
                product = mul(product, fact if fact == refuted else tight(fact))
            total = plus(total, product, Fraction(coefficient))
        for coefficient, index, monomial in equalities:
            zero = self.now(polys[index])
            need(self.is_zero(zero), "an equality that is none")
            total = plus(total, mul({tuple(sorted(monomial)): 1}, zero), Fraction(coefficient))
        return total.pop((), 0) <= -1 and all(value <= 0 for value in total.values())

    def follow(self, steps: Iterable[Sequence[Any]], allowed: str) -> None:
        """Take steps of some kinds."""
        for kind, *given in steps:
            need(kind in allowed.split(), f"a step {kind} here")
            if not self.dead or kind == "case":
                getattr(self, f"_{kind}")(*given)

    def _new(self, name: str) -> None:
        self.assume(*self.launches.new(name))

    def _show(self, goal: int, facts: Sequence[Any], equalities: Sequence[Any]) -> None:
        claim = self.definitions.polys[goal]
        need(self.holds(claim) or self.adds_up(claim, facts, equalities), "a certificate that does not add up")
        self.assume(claim)

    def _false(self, facts: Sequence[Any], equalities: Sequence[Any]) -> None:
        need(self.adds_up(None, facts, equalities), "a contradiction that does not add up")
        self.dead = True

    def _zero(self, index: int) -> None:
        self._equal(self.definitions.polys[index])

    def _equal(self, zero: Poly) -> None:
        need(self.is_zero(zero) or (self.holds(zero) and self.holds(minus(zero))), "an equality that is not shown")
        self.vanish(zero)

    def _rule(self, name: str, index: int) -> None:
        meaning = self.now(self.definitions.polys[index])
        need(name not in self.rules and all(name not in key for key in meaning), "a rule in a circle")
        self._equal(plus(var(name), meaning, -1))
        self.rules = {one: put(value, name, meaning) for one, value in self.rules.items()} | {name: meaning}
        facts = [self.facts.pop(key) for key, one in list(self.facts.items()) if any(name in part for part in one)]
        zeros = [self.zeros.pop(key) for key, one in list(self.zeros.items()) if any(name in part for part in one)]
        self.assume(*facts)
        for one in zeros:
            self.vanish(one)
        self.divided = [tuple(map(self.now, one)) for one in self.divided]

    def _case(self, index: int, answer: bool) -> None:
        goal = self.definitions.polys[index]
        self.cases.append((goal, answer))
        need(type(answer) is bool and not any(name.endswith("'") for key in goal for name in key), "no case")
        self.assume(goal if answer else minus(goal, 1))

    def _let(self, index: int) -> None:
        a, b = self.definitions.of[index]
        need(self.holds(a) and self.holds(plus(b, number(-1))), "a division of unknown signs")
        q, r = var(f"q{index}"), var(f"r{index}")
        self.assume(q, r, plus(plus(b, r, -1), number(-1)))
        self.vanish(plus(plus(a, mul(b, q), -1), r, -1))
        self.divided.append(tuple(map(self.now, (a, b, q, r))))

    def _named(self, index: int) -> None:
        (meaning,) = self.definitions.of[index]
        need(self.holds(plus(meaning, number(-1))), "a name for what may be 0")
        self.assume(var(f"d{index}"), plus(var(f"d{index}"), number(-1)))
        self.vanish(plus(var(f"d{index}"), meaning, -1))

    def _divided(self, *given: int) -> None:
        """A dividend, a divisor and its name are given, quotient and remainder: there is one such pair of each."""
        a, b, named, q, r = (self.definitions.polys[one] for one in given)
        need(self.is_zero(plus(named, b, -1)), "another divisor")
        need(self.is_zero(plus(plus(a, mul(named, q), -1), r, -1)), "no quotient")
        need(self.holds(r) and self.holds(plus(plus(named, r, -1), number(-1))), "no remainder")
        self.divided += [tuple(map(self.now, (a, by, q, r))) for by in (b, named)]

    def _factor(self, *given: int) -> None:
        """A dividend, and two factors of a divisor: by one after the other."""
        a, first, second = (self.definitions.polys[one] for one in given)
        q1, r1 = self.quotient(a, first)
        q2, r2 = self.quotient(q1, second)
        b, r = mul(first, second), plus(mul(first, r2), r1)
        self.assume(r, plus(plus(b, r, -1), number(-1)))
        self.vanish(plus(plus(a, mul(b, q2), -1), r, -1))

    def _same(self, name: str) -> None:
        """A variable of two runs of one path, no less in the first: nor, as they may change places, in the second."""
        apart = plus(var(name), var(name + "'"), -1)
        need(self.holds(apart) and (self.symmetric or self.holds(minus(apart))), "a variable that may differ")
        self.vanish(apart)

    def with_run(self, other: State, results: Iterable[tuple[Poly, Poly]]) -> State:
        """Two runs with the same results: itself and another."""

        def name(one: str) -> str:
            return one + "'" if self.definitions.varies(one) else one

        both = State(self.launches, self.folded)
        both.facts, both.zeros, both.rules = dict(self.facts), dict(self.zeros), dict(self.rules)
        both.symmetric = self is other
        for one, meaning in other.rules.items():
            both.vanish(plus(var(name(one)), renamed(meaning, name), -1))
        both.assume(*(renamed(one, name) for one in other.facts.values()))
        for zero in other.zeros.values():
            both.vanish(renamed(zero, name))
        for mine, theirs in results:
            both.vanish(plus(mine, renamed(theirs, name), -1))
        return both


class Launches:
    """All launches that a certificate speaks of, and its text."""

    def __init__(self, file: Mapping[str, Any]):
        self.kind, self.where, self.definitions = file["kind"], file["where"], Definitions(file)
        self.sides = SIDES[self.kind]
        self.sizes: dict[str, int] = dict(file["sizes"])
        self.num_xcds = file["num_xcds"]
        self.body = ast.parse(file["text"]).body
        self.condition = ast.parse(self.where, mode="eval").body if self.where else None
        nodes = [one for tree in (*self.body, self.condition) if tree for one in ast.walk(tree)]
        literals: list[Any] = [one.value for one in nodes if isinstance(one, ast.Constant)]
        need(all(type(one) is int for one in (*literals, *self.sizes.values())), "a literal that is no integer")
        need(not any(is_supplied(name) for name in self.sizes), "a size by the name of a coordinate")
        need(all(abs(one) <= INT32_MAX for one in (*literals, *self.sizes.values())), "a number of more than 32 bits")
        self.literal = max(1, *map(abs, literals), *(one for one in self.sizes.values() if one <= LARGEST), 1)
        need(self.num_xcds is None or (type(self.num_xcds) is int and self.num_xcds > 0), "a number of XCDs")
        self.xcds = var("num_xcds") if self.num_xcds is None else number(self.num_xcds)
        self.free: set[str] = set()  # names of the kernel with any value
        spelled: list[tuple[Any, ...]] = [
            (k, f"{axis}", f"pid_{axis}", f"program_id({k})") for k, axis in enumerate(AXES)
        ]
        spelled += [(0, "pid_m"), (1, "pid_n")] if self.kind == "plane" else []
        self.coordinates = {name: axis for axis, *names in spelled for name in names}
        self.counts = {f"num_{name}": axis for name, axis in self.coordinates.items() if name.startswith("pid")}
        self.counts |= {f"num_programs({k})": k for k in range(3)}
        self.results = self._results([one for one in nodes if isinstance(one, ast.Name)])

    def _results(self, names: Sequence[ast.Name]) -> tuple[str, ...]:
        """Names of the tile: of the group that the text assigns last, all that such a launch has."""
        known = {name for group in GROUPS for name in group}
        stored = [one for one in names if isinstance(one.ctx, ast.Store) and one.id in known]
        last = max(stored, key=lambda one: (one.lineno, one.col_offset)).id
        group = next(group for group in GROUPS if last in group)
        if group[0] == "pid_m":
            need(self.kind in ("tiles", "plane"), "tiles of a launch without any")
            return group
        found = group[: 1 if self.kind == "tiles" else len(self.sides)]
        need(last in found, "a coordinate that the launch has not")
        return found

    def extent(self, axis: int) -> Poly:
        """Workgroups along an axis."""
        if self.kind in ("line", "tiles"):
            return self.total(self.sides) if axis == 0 else number(1)
        return var(self.sides[axis]) if axis < len(self.sides) else number(1)

    def extent_of(self, name: str) -> Poly:
        """How many values a coordinate has."""
        if self.kind == "tiles" and name in ("pid_m", "pid_n"):
            return var(f"num_{name}")
        return self.extent(self.coordinates[name])

    def total(self, sides: Iterable[str]) -> Poly:
        """Workgroups."""
        total = number(1)
        for side in sides:
            total = mul(total, var(side))
        return total

    def state(self, piece: Piece) -> State:
        """What is known of any workgroup of any launch."""
        sides, limit = (("num_pids",) if piece.by_number else self.sides), var("limit")
        state = State(self, self.sides if piece.by_number else ())
        total = self.total(sides)
        state.assume(limit, self.xcds, *map(var, (*sides, *piece.roots)))  # at least 0, as all variables
        state.assume(*(plus(var(side), number(-1)) for side in sides), plus(limit, total, -1))
        state.assume(*(plus(limit, var(side), -1) for side in sides), plus(self.xcds, number(-1)))
        state.assume(plus(limit, mul(number(self.literal), self.xcds), -1))
        if piece.linear:
            state.assume(plus(total, minus(var("id"), 1)))
        else:
            state.assume(*(plus(var(side), minus(var(f"id_{k}"), 1)) for k, side in enumerate(sides)))
        return state

    def new(self, name: str) -> tuple[Poly, ...]:
        """Facts of a size that may have any value, or of a literal that stands for any number up to the limit."""
        if name[0] == "#":
            need(SYMBOL <= int(name[1:]) <= self.literal, "a literal that the text has not")
        else:
            need(name[0] == "$", "a variable without a meaning")
            self.free.add(name[1:])
        limit, value = var("limit"), var(name)
        return value, plus(value, number(-1)), plus(limit, value, -1), plus(limit, mul(value, self.xcds), -1)


class Piece:
    """Statements between two places of the text where one value is all that differs between workgroups."""

    def __init__(self, written: Mapping[str, Any], launches: Launches, start: int, carried: str):
        self.written, self.launches, self.start, self.carried = written, launches, start, carried
        self.end, self.result, self.kept = written["end"], written["result"], written["kept"]
        self.by_number, self.linear = bool(written["by_number"]), bool(written["linear"])
        body, kind = launches.body, launches.kind
        need(type(self.end) is int and start < self.end <= len(body), "pieces out of order")
        need((self.result == "") == (self.end == len(body)), "a piece without an end")
        of_number = kind in ("tiles", "plane") and (self.result or launches.results == ("pid",))
        need(not self.by_number or of_number, "more than one number")
        need(self.linear or not start, "no coordinates")

    @property
    def roots(self) -> list[str]:
        """Variables that are the workgroup."""
        return ["id"] if self.linear else [f"id_{k}" for k in range(len(self.launches.sides))]

    def check(self) -> int:
        """Refuse, or return the factor by which values may exceed the limit."""
        found: list[tuple[State, list[Poly]] | None] = []
        tree: list[list[tuple[Poly, bool]]] = []
        factor = 1
        for steps in self.written["paths"]:
            state = self.launches.state(self)
            state.follow(steps, "show false zero rule case let named divided factor new")
            tree.append(state.cases)
            run = None if state.dead else Run(self, state)
            results = run.results() if run else None
            found.append((state, results) if results else None)
            factor = max(factor, run.factor if run else 1)
        need(covers(tree, 0), "paths that do not cover all cases")
        pairs = {(first, second): steps for first, second, steps in self.written["pairs"]}
        for j, second in enumerate(found):
            for i, first in enumerate(found[: j + 1]):
                if first and second:
                    both = first[0].with_run(second[0], zip(first[1], second[1], strict=True))
                    both.follow(pairs[i, j], "show false zero rule same")
                    need(all(both.is_zero(plus(var(one), var(one + "'"), -1)) for one in self.roots), "two of one tile")
        return factor


def covers(tree: Sequence[Sequence[tuple[Poly, bool]]], depth: int) -> bool:
    """Whether cases part on one question at a time, and both answers are there."""
    if len(tree) == 1:
        return len(tree[0]) == depth
    if any(len(path) <= depth or path[depth][0] != tree[0][depth][0] for path in tree):
        return False
    parts = [[path for path in tree if path[depth][1] is answer] for answer in (True, False)]
    return all(part and covers(part, depth + 1) for part in parts)


class Reader:
    """The text: its statements and names, of whatever kind its numbers are."""

    launches: Launches

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}  # None: may differ from what the text gives there
        self.evaluated = 0

    def block(self, body: Iterable[ast.stmt]) -> None:
        """Run statements."""
        for stmt in body:
            match stmt:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.values[name] = self.number(value)
                case ast.If(test=test, body=then, orelse=other):
                    self.branch(test, then, other)
                case ast.For(
                    target=ast.Name(id=name),
                    iter=ast.Call(func=ast.Name(id="range"), args=args),
                    body=inside,
                    orelse=[],
                ):
                    ends = [self.known(self.number(one)) for one in args]
                    need(None not in ends and len(ends) < 4, "a loop of unknown length")
                    steps = range(*ends)  # type: ignore[arg-type]
                    need(steps.step > 0 and len(steps) <= MOST_STEPS, "a long loop")
                    for k in steps:
                        self.values[name] = self.given(number(k))
                        self.block(inside)
                case ast.Pass():
                    pass
                case _:
                    raise Refused(f"no statement of a certificate: {ast.unparse(stmt)}")

    def number(self, node: ast.expr) -> Any:  # noqa: PLR0911 - one a kind
        """Value of an expression, within 32 bits."""
        self.evaluated += 1
        need(self.evaluated < 20 * LARGEST, "a long run")
        match node:
            case ast.Constant(value=int() as value):
                return self.given(self.literal(value))
            case ast.Name(id=name):
                return self.read(name)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="tl"), attr=name), args=[ast.Constant(value=int() as axis)]
            ):
                return self.read(f"{name}({axis:d})")
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return self.given(number(-value))
            case ast.UnaryOp(op=ast.USub() | ast.Invert() as op, operand=operand):
                return self.operation("Sub", self.given(number(-isinstance(op, ast.Invert))), self.number(operand))
            case ast.IfExp(test=test, body=then, orelse=other):
                return self.choice(test, then, other)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(type(op).__name__, self.number(left), self.number(right))
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="tl"), attr=name), args=[left, right]
            ):
                return self.operation(name, self.number(left), self.number(right))
        raise Refused(f"no expression of a certificate: {ast.unparse(node)}")

    def read(self, name: str) -> Any:
        """Value of a name: of the text, of the launch, or of the kernel."""
        if name not in self.values:
            self.values[name] = self.supplied(name)
        need(self.values[name] is not None, f"{name} differs between workgroups and is carried on")
        return self.values[name]

    def supplied(self, name: str) -> Any:  # noqa: PLR0911 - one a kind
        """Value of a name that the text has not assigned."""
        launches = self.launches
        if name in launches.sides:
            return self.given(var(name))
        if name in launches.sizes:
            return self.given(number(launches.sizes[name]))
        if name == "num_pids" or name.lower() == "num_xcds":
            return self.given(launches.total(launches.sides) if name == "num_pids" else launches.xcds)
        if not is_supplied(name) or name in launches.counts:
            return self.given(launches.extent(launches.counts[name]) if name in launches.counts else var(f"${name}"))
        root = self.id(name)
        if name == "pid":
            return root
        if launches.kind == "tiles" and name in ("pid_m", "pid_n"):
            return self.divided(root, self.given(var("num_pid_n")))[name == "pid_n"]
        axis = launches.coordinates[name]
        if launches.kind in ("line", "tiles"):
            return self.given(number(0)) if axis else root
        for k in range(axis):
            root = self.divided(root, self.given(launches.extent(k)))[0]
        within = axis < len(launches.sides)
        return self.divided(root, self.given(launches.extent(axis)))[1] if within else self.given(number(0))

    def literal(self, value: int) -> Poly:
        """A number of the text."""
        return number(value)

    given: Callable[[Poly], Any]  # a number of sides and sizes
    known: Callable[[Any], int | None]  # one that is the same whatever the launch
    id: Callable[[str], Any]  # the workgroup
    divided: Callable[[Any, Any], tuple[Any, Any]]  # quotient and remainder
    operation: Callable[[str, Any, Any], Any]
    choice: Callable[[ast.expr, ast.expr, ast.expr], Any]  # of two expressions
    branch: Callable[[ast.expr, list[ast.stmt], list[ast.stmt]], None]  # of two blocks


class Run(Reader):
    """The text on polynomials, at the workgroups of one path."""

    def __init__(self, piece: Piece, state: State):
        super().__init__()
        self.piece, self.launches, self.state = piece, piece.launches, state
        self.factor = 1
        self.bounds: dict[frozenset, int] = {}

    def results(self) -> list[Poly] | None:
        """Values of the tile, each shown to be within its range; None where no launch of the condition comes here."""
        piece, launches = self.piece, self.launches
        if launches.condition and not piece.by_number and not self.truth(launches.condition):
            return None
        for k, stmt in enumerate(launches.body[: piece.start]):
            if k in piece.kept:
                self.block([stmt])
            else:
                stored = (one for one in ast.walk(stmt) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
                self.values.update((one.id, None) for one in stored)
        if piece.carried:
            self.values[piece.carried] = var("id")
        self.block(launches.body[piece.start : piece.end])
        total = self.state.now(launches.total(launches.sides))
        names = [piece.result] if piece.result else launches.results
        found = [self.read(name) for name in names]
        for name, value in zip(names, found, strict=True):
            need(self.state.holds(value), f"{name} may be below 0")
            top = total if piece.result or name == "pid" else launches.extent_of(name)
            need(self.state.holds(plus(top, minus(value, 1))), f"{name} may be outside the grid")
        return found

    def branch(self, test: ast.expr, then: list[ast.stmt], other: list[ast.stmt]) -> None:
        """Run the block that is taken."""
        self.block(then if self.truth(test) else other)

    def choice(self, test: ast.expr, then: ast.expr, other: ast.expr) -> Poly:
        """Value of the side that is taken; all is evaluated, as a GPU does."""
        self.numbers(test)
        values = self.number(then), self.number(other)
        return values[not self.truth(test)]

    def given(self, value: Poly) -> Poly:
        """A number of sides and sizes, by the rules."""
        return self.fits(value) if constant(value) is not None else self.state.now(value)

    def known(self, value: Poly) -> int | None:
        """A number that is the same whatever the launch; None for others."""
        return constant(self.state.now(value))

    def literal(self, value: int) -> Poly:
        """A number of the text, or what stands for it."""
        return var(f"#{value:d}") if value >= SYMBOL else number(value)

    def divided(self, a: Poly, b: Poly) -> tuple[Poly, Poly]:
        """Quotient and remainder, which have to be among the facts."""
        return self.state.quotient(a, b)

    def operation(self, op: str, a: Poly, b: Poly) -> Poly:  # noqa: PLR0911 - one a kind
        """Value of an operation."""
        a, b = self.state.now(a), self.state.now(b)
        known = constant(b)
        if op in ("Add", "Sub"):
            return self.fits(plus(a, b, 1 if op == "Add" else -1), a, b)
        if op == "Mult":
            return self.fits(mul(a, b))
        if op in ("min", "max"):
            return a if self.follows(plus(b, minus(a, 1))) == (op == "min") else b
        if op == "cdiv":
            return self.state.quotient(self.fits(plus(self.fits(plus(a, b)), number(-1))), b)[0]
        if op in ("FloorDiv", "Mod"):
            return self.state.quotient(a, b)[op == "Mod"]
        if known is None or not 0 <= known <= INT32_MAX:
            raise Refused("bits of two values")
        if op == "LShift" and known <= 30:
            return self.fits(mul(a, number(2**known)))
        if op == "RShift" and known <= 30:
            return self.state.quotient(a, number(2**known))[0]
        if op == "BitAnd" and known & (known + 1) == 0:
            return self.state.quotient(a, number(known + 1))[1]
        need(op == "BitXor" and self.state.holds(a), "no rule for these bits")
        for k in range(known.bit_length()):
            if known >> k & 1:
                bit = self.state.quotient(self.state.quotient(a, number(2**k))[0], number(2))[1]
                a = plus(plus(a, number(2**k)), bit, -(2 ** (k + 1)))
        return a

    def fits(self, value: Poly, *summed: Poly) -> Poly:
        """Refuse a value that may leave 32 bits: none exceeds a multiple of the limit, the largest of which is kept."""
        value = self.state.now(value)
        known = constant(value)
        if known is not None:
            need(-INT32_MAX <= known <= INT32_MAX, "a constant of more than 32 bits")
            return value
        within = self.within(value)
        if within is None and summed:
            parts = [self.within(one) for one in summed]
            within = None if None in parts else sum(parts)  # type: ignore[arg-type]
        need(within, "a value that may leave 32 bits")
        self.factor = max(self.factor, self.bounds.setdefault(frozenset(value.items()), within or 0))
        return value

    def within(self, value: Poly) -> int | None:
        """A number times the limit that a value does not exceed, nor its negative."""
        known, holds = self.bounds.get(frozenset(value.items())), self.state.holds
        for k in range(7):
            top: Poly = {("limit",): 2**k}
            if known is None and holds(plus(top, value, -1)) and (holds(value) or holds(plus(top, value))):
                known = 2**k
        return known

    def follows(self, goal: Poly) -> bool:
        """Whether ``goal >= 0``, or below 0, follows."""
        if self.state.holds(goal):
            return True
        need(self.state.holds(minus(goal, 1)), "a condition that is not decided")
        return False

    def numbers(self, node: ast.AST) -> None:
        """Evaluate all of a condition, as a GPU does."""
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.BoolOp | ast.Compare) or isinstance(getattr(one, "op", None), ast.Not):
                self.numbers(one)
            elif isinstance(one, ast.expr):
                self.number(one)

    def truth(self, node: ast.expr) -> bool:
        """Decide a condition."""
        self.numbers(node)
        return self.decide(node)

    def decide(self, node: ast.expr) -> bool:
        """The same, of what was evaluated: what comes after it was decided need not be."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.decide(operand)
            case ast.BoolOp(op=op, values=values):
                return (all if isinstance(op, ast.And) else any)(map(self.decide, values))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                a, b = self.state.now(self.number(left)), self.state.now(self.number(right))
                more, less = plus(a, b, -1), plus(b, a, -1)
                match type(op).__name__:
                    case "Lt" | "GtE" as name:
                        return self.follows(more) == (name == "GtE")
                    case "Gt" | "LtE" as name:
                        return self.follows(less) == (name == "LtE")
                    case "Eq" | "NotEq" as name:
                        return (self.follows(more) and self.follows(less)) == (name == "Eq")
        raise Refused(f"no condition of a certificate: {ast.unparse(node)}")

    def read(self, name: str) -> Poly:
        """Value of a name, by the rules."""
        return self.state.now(super().read(name))

    def id(self, name: str) -> Poly:
        """The workgroup."""
        need(not self.piece.carried, f"{name} behind a place where one value is carried on")
        if self.piece.linear:
            return var("id")
        value, stride = number(0), number(1)
        for k, side in enumerate(self.launches.sides):
            value, stride = plus(value, mul(stride, var(f"id_{k}"))), mul(stride, var(side))
        return value


class Bits:
    """Functions of the bits of two workgroups' ids, as ordered decision diagrams (Bryant 1986); 0 and 1 are constants.

    A number is a list of such, its lowest bit first, its sign last. Variable 0 is the highest bit of the first id, 1
    that of the second, and so on: a curve that turns by higher bits stays small.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[int, int, int]] = [(LARGEST, 0, 0), (LARGEST, 1, 1)]  # variable, without it, with it
        self.place: dict[tuple[int, int, int], int] = {}
        self.known: dict[tuple[int, int, int], int] = {}

    def node(self, variable: int, low: int, high: int) -> int:
        """One decision, made once."""
        if low == high:
            return low
        key = variable, low, high
        if key not in self.place:
            need(len(self.nodes) < MOST_NODES, "more than is followed bit by bit")
            self.place[key] = len(self.nodes)
            self.nodes.append(key)
        return self.place[key]

    def pick(self, test: int, a: int, b: int) -> int:
        """``a if test else b``."""
        if test < 2 or a == b:
            return a if test else b
        if (a, b) == (1, 0):
            return test
        key = test, a, b
        if key not in self.known:
            top = min(self.nodes[one][0] for one in key)
            low, high = ([self.nodes[one][1 + k] if self.nodes[one][0] == top else one for one in key] for k in (0, 1))
            self.known[key] = self.node(top, self.pick(*low), self.pick(*high))
        return self.known[key]

    def equal(self, a: int, b: int) -> int:
        """Whether two are the same; with 0 it is ``not a``."""
        return self.pick(a, b, self.pick(b, 0, 1))

    def of_other(self, a: int, found: dict[int, int]) -> int:
        """The same function of the other id's bits."""
        if a > 1 and a not in found:
            variable, low, high = self.nodes[a]
            found[a] = self.node(variable + 1, self.of_other(low, found), self.of_other(high, found))
        return found.get(a, a)

    @staticmethod
    def constant(value: int) -> list[int]:
        """A number that is the same for all."""
        return [value >> k & 1 for k in range(value.bit_length() + 1)]

    @staticmethod
    def alike(*numbers: list[int]) -> zip[tuple[int, ...]]:
        """Bits of numbers at the same places, of the sign where one is shorter."""
        width = max(map(len, numbers))
        return zip(*([*one, *one[-1:] * (width - len(one))] for one in numbers), strict=True)

    def add(self, a: list[int], b: list[int], carry: int = 0) -> list[int]:
        """``a + b``, and a carry."""
        found = []
        for x, y in self.alike([*a, a[-1]], [*b, b[-1]]):
            same = self.equal(x, y)
            found.append(self.equal(carry, same))
            carry = self.pick(same, x, carry)
        return found

    def less(self, a: list[int], b: list[int]) -> list[int]:
        """``a - b``."""
        return self.add(a, [self.equal(one, 0) for one in b], 1)

    def choose(self, test: int, a: list[int], b: list[int]) -> list[int]:
        """One of two numbers."""
        return [self.pick(test, x, y) for x, y in self.alike(a, b)]

    def times(self, a: list[int], b: list[int]) -> list[int]:
        """``a * b``: the sign of ``b`` weighs below 0."""
        total = [0]
        for k, bit in enumerate(b):
            part = [0] * k + [self.pick(bit, one, 0) for one in a]
            total = (self.less if k == len(b) - 1 else self.add)(total, part)
        return total

    def divide(self, a: list[int], b: list[int]) -> tuple[list[int], list[int]]:
        """Quotient and remainder of what is at least 0, bit by bit."""
        whole, rest = [0], [0]
        for bit in reversed(a[:-1]):
            left = self.less([bit, *rest], b)
            fits = self.equal(left[-1], 0)
            rest, whole = self.choose(fits, left, [bit, *rest])[: len(b) + 1], [fits, *whole]
        return whole, rest


class BitRun(Reader):
    """A text at all workgroups of one launch at once, on functions of the bits of an id."""

    def __init__(self, launches: Launches, sides: Sequence[int]):
        super().__init__()
        self.launches, self.sides = launches, dict(zip(launches.sides, sides, strict=True))
        self.bits, total = Bits(), math.prod(sides)
        self.root = [self.bits.node(2 * k, 0, 1) for k in reversed(range((total - 1).bit_length()))] + [0]
        self.live = self.bits.add(self.root, self.bits.constant(-total))[-1]  # workgroups that are here: id < total

    def holds(self) -> None:
        """Refuse unless the text is a bijection of the launch, or the condition leaves the launch out."""
        bits, launches = self.bits, self.launches
        holds = self.truth(launches.condition) if launches.condition else 1
        need(holds < 2, "a condition that differs between workgroups")
        if not holds:
            return
        self.block(launches.body)
        tile = [self.read(name) for name in launches.results]
        for name, value in zip(launches.results, tile, strict=True):
            extent = self.given(launches.total(launches.sides) if name == "pid" else launches.extent_of(name))
            self.always(bits.pick(value[-1], 0, bits.less(value, extent)[-1]), f"{name} may leave the grid")
        memo: dict[int, int] = {}
        two, same = bits.pick(self.live, bits.of_other(self.live, memo), 0), 1
        for one in (part for column in [*bits.alike(*tile)][::-1] for part in column):
            two = bits.pick(two, bits.equal(one, bits.of_other(one, memo)), 0)
        for one in self.root:
            same = bits.pick(bits.equal(one, bits.of_other(one, memo)), same, 0)
        need(bits.pick(two, same, 1) == 1, "two of one tile")

    def always(self, test: int, otherwise: str) -> None:
        """Refuse unless something is so in every workgroup that comes here."""
        need(self.bits.pick(self.live, test, 1) == 1, otherwise)

    def fits(self, value: list[int]) -> list[int]:
        """Refuse a value that leaves 32 bits; leave out what only repeats the sign."""
        for one in value[32:]:
            self.always(self.bits.equal(one, value[31]), "a value that leaves 32 bits")
        value = value[:32]
        while len(value) > 1 and value[-1] == value[-2]:
            value = value[:-1]
        return value

    def branch(self, test: ast.expr, then: list[ast.stmt], other: list[ast.stmt]) -> None:
        """Run each block at the workgroups that take it."""
        decided, before, here, ends = self.truth(test), self.values, self.live, []
        if decided < 2:
            self.block(then if decided else other)
            return
        for side, body in ((decided, then), (self.bits.equal(decided, 0), other)):
            self.values, self.live = dict(before), self.bits.pick(here, side, 0)
            self.block(body)
            ends.append(self.values)
        names, self.values, self.live = {name for one in ends for name in one}, {}, here
        for name in names:  # one that is not assigned on a side has there what it had before
            if is_supplied(name) or name in self.launches.sizes or all(name in one for one in ends):
                sides = (one[name] if name in one else self.supplied(name) for one in ends)
                self.values[name] = self.bits.choose(decided, *sides)

    def choice(self, test: ast.expr, then: ast.expr, other: ast.expr) -> list[int]:
        """Either value."""
        return self.bits.choose(self.truth(test), self.number(then), self.number(other))

    def given(self, value: Poly) -> list[int]:
        """A number of sides and sizes, at this launch."""
        for name, side in self.sides.items():
            value = put(value, name, number(side))
        found = constant(value)
        if found is None:
            raise Refused("a size or a number of XCDs without a value")
        return self.fits(self.bits.constant(found))

    def known(self, value: list[int]) -> int | None:
        """A number that is the same for all workgroups; None for others."""
        one = sum(bit << k for k, bit in enumerate(value)) - (value[-1] << len(value))
        return one if {*value} <= {0, 1} else None

    def id(self, name: str) -> list[int]:
        """The workgroup."""
        return self.root

    def divided(self, a: list[int], b: list[int]) -> tuple[list[int], list[int]]:
        """Quotient and remainder of what is at least 0 by what is at least 1."""
        self.always(self.bits.equal(a[-1], 0), "a dividend that may be below 0")
        self.always(self.bits.equal(self.bits.less([0], b)[-1], 1), "a divisor that may be below 1")
        return self.bits.divide(a, b)

    def operation(self, op: str, a: list[int], b: list[int]) -> list[int]:
        """Value of an operation."""
        bits, by = self.bits, self.known(b)
        if op in ("FloorDiv", "Mod", "cdiv"):
            a = self.operation("Add", self.operation("Add", a, b), bits.constant(-1)) if op == "cdiv" else a
            return self.fits(self.divided(a, b)[op == "Mod"])
        if op in ("LShift", "RShift"):
            if by is None or not 0 <= by < 32:
                raise Refused("a shift out of range")
            return self.fits([0] * by + a if op == "LShift" else a[by:] or a[-1:])
        made: dict[str, Callable[[], list[int]]] = {
            "Add": lambda: bits.add(a, b),
            "Sub": lambda: bits.less(a, b),
            "Mult": lambda: bits.times(a, b),
            "min": lambda: bits.choose(bits.less(a, b)[-1], a, b),
            "max": lambda: bits.choose(bits.less(a, b)[-1], b, a),
            "BitAnd": lambda: [bits.pick(x, y, 0) for x, y in bits.alike(a, b)],
            "BitOr": lambda: [bits.pick(x, 1, y) for x, y in bits.alike(a, b)],
            "BitXor": lambda: [bits.equal(x, bits.equal(y, 0)) for x, y in bits.alike(a, b)],
        }
        need(op in made, f"no rule for {op}")
        return self.fits(made[op]())

    def truth(self, node: ast.expr) -> int:
        """Where a condition holds; all of it is evaluated, as a GPU does."""
        bits = self.bits
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return bits.equal(self.truth(operand), 0)
            case ast.BoolOp(op=op, values=values):
                is_all = isinstance(op, ast.And)
                found = int(is_all)
                for one in map(self.truth, values):
                    found = bits.pick(found, one, 0) if is_all else bits.pick(found, 1, one)
                return found
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                a, b = self.number(left), self.number(right)
                below, above = bits.less(a, b)[-1], bits.less(b, a)[-1]
                equal = bits.pick(below, 0, bits.equal(above, 0))
                name = type(op).__name__
                found = {"L": below, "G": above}.get(name[0], equal)
                return bits.equal(found, int(name != "NotEq")) if name[-1] != "E" else bits.pick(found, 1, equal)
        raise Refused(f"no condition of a certificate: {ast.unparse(node)}")


def launches_of(launches: Launches) -> list[tuple[int, ...]]:
    """Launches that a condition may hold on, the smallest first: of sides that it says are powers of two."""
    parts = [launches.condition] if launches.condition else []
    for one in parts:
        parts += one.values if isinstance(one, ast.BoolOp) and isinstance(one.op, ast.And) else []
    said, sides = {ast.unparse(one) for one in parts}, launches.sides
    powers = {name for name in sides if said & {f"{name} & {name} - 1 == 0", "num_pids & num_pids - 1 == 0"}}
    for one, other in [*itertools.permutations(sides, 2)] * 2:
        powers |= {other} & {other if one in powers and said & {f"{one} == {other}", f"{other} == {one}"} else one}
    need(powers >= {*sides}, "sides that may be no powers of two")
    found = itertools.product([2**k for k in range(31)], repeat=len(sides))
    return sorted((one for one in found if math.prod(one) <= INT32_MAX), key=math.prod)


def reach(file: Mapping[str, Any]) -> tuple[int, str]:
    """Up to how many workgroups a text is a bijection of every launch of a condition, bit by bit, and why no more."""
    launches = Launches(file)
    for sides in launches_of(launches):
        try:
            BitRun(launches, sides).holds()
        except Refused as refused:
            return math.prod(sides) - 1, str(refused)
    return INT32_MAX, ""


def is_supplied(name: str) -> bool:
    """Whether a name is one of the launch, whatever launch that is."""
    return name.startswith(("pid", "num_p", "program_id(")) or name.lower() == "num_xcds" or name in tuple(AXES)


def check(file: Mapping[str, Any]) -> str:
    """What a certificate proves; raises `Refused` where it proves nothing."""
    try:
        return _checked(file)
    except (LookupError, TypeError, ValueError, AttributeError, SyntaxError, ArithmeticError, RecursionError) as error:
        raise Refused(f"no certificate: {type(error).__name__}: {error}") from error


def _checked(file: Mapping[str, Any]) -> str:
    launches, start, carried, factor = Launches(file), 0, "", 1
    if not file["pieces"]:
        shown, why = reach(file)
        need(file["max_workgroups"] <= shown, why)
        start = len(launches.body)
    for written in file["pieces"]:
        piece = Piece(written, launches, start, carried)
        factor = max(factor, piece.check())
        start, carried = piece.end, piece.result
    need(start == len(launches.body), "a text that is not proved to its end")
    most, xcds = file["max_workgroups"], file["max_xcds"]
    need(type(most) is int and type(xcds) is int and 0 < most <= INT32_MAX // factor, "values that leave 32 bits")
    largest = max(launches.literal, LARGEST if launches.free else 1)
    need(
        0 < xcds <= min(launches.num_xcds or MOST_XCDS, most // largest if file["pieces"] else most),
        "more XCDs than that",
    )
    need(launches.num_xcds in (None, xcds), "more XCDs than that")
    where = f", where {launches.where}" if launches.where else ""
    sizes = "".join(f", {name}={value}" for name, value in launches.sizes.items())
    sizes += "".join(f", any {name} up to {LARGEST}" for name in sorted(launches.free))
    count = "" if launches.num_xcds else "up to "
    tile = ", ".join(launches.results)
    return f"({tile}) of {launches.kind}: a bijection of up to {most} workgroups, {count}{xcds} XCDs{sizes}{where}"


def main() -> None:
    """Check the certificates of a file."""
    try:
        with open(sys.argv[1], encoding="utf-8") as opened:
            certificates = json.load(opened)["certificates"]
        need(certificates, "no certificate")
        for one in certificates:
            print(f"accepted: {check(one)}", one["text"], sep="\n")
    except (Refused, LookupError, TypeError, OSError, ValueError, RecursionError) as error:
        raise SystemExit(f"refused: {error}") from None


if __name__ == "__main__":
    main()
