"""Runs a candidate on symbols: every path through it, with what is known there.

The rules are those of `vm`: both sides of a select, ``and`` and ``or`` are evaluated, of an ``if`` the branch taken; no
value may leave 32 bits, and ``//`` and ``%`` take a dividend of at least 0 and a divisor of at least 1, where Python
and C agree. A path is a list of decisions; it is run anew from the start for each, which keeps the state simple.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.language.ir import (
    Assign,
    Binary,
    Compare,
    Cond,
    Connect,
    Expr,
    If,
    Int,
    Name,
    Not,
    Select,
    Stmt,
    Unary,
)
from swizzle_sim.proof.knowledge import Budget, Fork, Knowledge, Unproved
from swizzle_sim.proof.polynomial import Poly, poly, variable

MOST_PATHS = 48
MOST_OPERATIONS = 10_000
MOST_ITERATIONS = 64  # of a loop between literals; others are not followed
LIMIT = "%limit"  # stands for the most workgroups of a launch
_LARGEST_FACTOR = 64
_SYMBOL = 4096
Setup = Callable[["Path"], None]


class Infeasible(Exception):
    """No workgroup takes this path."""


@dataclass
class Path:
    """One path: decisions, what is known, and the value of every name."""

    budget: Budget
    decisions: list[bool]  # to repeat, where neither answer follows; those after them are made, the likelier side first
    values: dict[str, Poly] = field(default_factory=dict)
    reader: Callable[[Path, str], Poly] | None = None  # value of a name that has none yet
    factor: int = 1  # no value exceeds this times the limit
    open: list[list[bool]] = field(default_factory=list)  # paths that part from this one

    def __post_init__(self):
        self.known = Knowledge(self.budget)
        self._sizes: dict[Poly, int | None] = {}
        self._taken = 0
        self._evaluated = 0

    def decide(self, goal: Poly) -> bool:
        """Whether ``goal >= 0`` on this path: as it was decided, as follows, or yes here and no on another path."""
        goal = self.known.current(goal)
        if goal.constant is not None:
            return goal.constant >= 0
        if self.known.shows(goal, 2):
            answer = True
        elif self.known.shows(poly(-1) - goal, 2):
            answer = False
        else:
            if self._taken == len(self.decisions):
                self.open.append([*self.decisions, False])
                self.decisions.append(True)
            answer = self.decisions[self._taken]
            self._taken += 1
            self.known.steps.append(("case", goal, answer))
        fact = goal if answer else poly(-1) - goal
        self.known.samples.keep(fact)
        self.known.know(fact)
        self.known.reduce(fact)
        return answer

    def require(self, goal: Poly, what: str) -> None:
        """Stop the proof where ``goal >= 0`` cannot be shown."""
        if not self.known.shows(goal):
            raise Unproved(f"not shown: {what}")

    def fits(self, value: Poly, *summed: Poly) -> Poly:
        """Note that a value, and what it is the sum or difference of, has to fit 32 bits."""
        value = self.known.current(value)
        if value.constant is not None:
            if not -(2**31) <= value.constant < 2**31:
                raise Unproved("a constant leaves 32 bits")
            return value
        within = self._within(value)
        if within is None and summed:
            parts = [part for part in (self._within(self.known.current(one)) for one in summed) if part]
            within = self._sizes[value] = sum(parts) if len(parts) == len(summed) else None
        if within is None:
            raise Unproved(f"no bound was found that keeps {value!r} within 32 bits")
        self.factor = max(self.factor, within)
        return value

    def _within(self, value: Poly) -> int | None:
        """A number times the limit that a value does not exceed, nor its negative; None where none is found."""
        if value not in self._sizes:
            limit, found = variable(LIMIT), 1
            for sign in (1, -1):
                while not self.known.shows(limit * found - value * sign, 3 if found in (1, 2, self.factor) else 2):
                    found *= 2
                    if found > _LARGEST_FACTOR:
                        return self._sizes.setdefault(value)
            self._sizes[value] = found
        return self._sizes[value]

    def block(self, body: tuple[Stmt, ...]) -> None:
        """Run statements."""
        for stmt in body:
            if isinstance(stmt, Assign):
                self.values[stmt.target] = self.number(stmt.value)
            elif isinstance(stmt, If):
                self.block(stmt.body if self.truth(stmt.condition) else stmt.orelse)
            else:
                start, stop = (self.known.current(self.number(one)).constant for one in (stmt.start, stmt.stop))
                if start is None or stop is None:
                    raise Unproved("a loop whose length depends on the grid needs an invariant, and none is looked for")
                if (stop - start) // stmt.step > MOST_ITERATIONS:
                    raise Unproved(f"a loop of more than {MOST_ITERATIONS} steps")
                for i in range(start, stop, stmt.step):
                    self.values[stmt.var] = poly(i)
                    self.block(stmt.body)

    def split(self) -> None:
        """Part the path where a quotient reaches its bound: what is left over there is small."""
        for fact in self.known.close_bounds():
            if not self.decide(fact - 1):
                self.known.know_zero(fact)

    def named_bounds(self) -> list[Poly]:
        """Short values that have names in the text: a quotient may be below the width of a block."""
        values = {self.known.current(value): None for name, value in self.values.items() if name.isidentifier()}
        return [value for value in values if len(value.terms) <= 2 and value.constant not in (0, 1)]

    def number(self, node: Expr) -> Poly:
        """Value of an integer expression."""
        self._evaluated += 1
        if self._evaluated > MOST_OPERATIONS:  # well below the steps that `vm` allows a workgroup
            raise Unproved(f"more than {MOST_OPERATIONS} operations on a path")
        match node:
            case Int(value):
                return self.literal(value) if value >= _SYMBOL else poly(value)
            case Name(name):
                return self.value_of(name)
            case Select(condition, then, other):
                decided = self.parts(condition)
                a, b = self.number(then), self.number(other)
                return a if self.settled(condition, decided) else b
            case Unary("-", operand):
                return self.fits(-self.number(operand))
            case Unary(_, operand):
                return self.fits(-self.number(operand) - 1)
            case Binary(op, left, right):
                return self.binary(op, self.number(left), self.number(right))
        raise Unproved(f"no rule for {node!r}")

    def literal(self, value: int) -> Poly:
        """A large literal as any number that its launches allow: programs with 65536 in them are beyond floats."""
        name = f"%{value}"
        if name not in self.values:
            known, limit = self.known, variable(LIMIT)
            self.values[name] = known.new(name, False, np.full(known.samples.count, float(value)))
            known.steps.append(("new", name))
            known.know(
                self.values[name] - 1, limit - self.values[name], limit - self.values[name] * self.values["num_xcds"]
            )
        return self.known.current(self.values[name])

    def value_of(self, name: str) -> Poly:
        """Value of a name, from the launch where the text has not assigned it."""
        if name not in self.values:
            assert self.reader is not None
            self.values[name] = self.reader(self, name)
        return self.known.current(self.values[name])

    def binary(self, op: str, a: Poly, b: Poly) -> Poly:
        """Value of one operation."""
        if op == "*":
            a, b = (self.without_bits(one, other) for one, other in ((a, b), (b, a)))
        if op in _EXACT:
            return self.fits(_EXACT[op](a, b), *((a, b) if op != "*" else ()))
        if op in ("min", "max"):
            # strictly: where both are the same, proofs are easier on the other side
            smaller = self.decide(self.known.current(b) - self.known.current(a) - 1)
            return a if smaller == (op == "min") else b
        if op == "cdiv":
            return self.divide(self.fits(self.fits(a + b) - 1), b)[0]
        if op in ("//", "%"):
            return self.divide(a, b)[op == "%"]
        return self.bits(op, a, self.known.current(b).constant)

    def without_bits(self, value: Poly, by: Poly) -> Poly:
        """A value whose remainders of 2 are 0 or 1, each on a path of its own, where its product is met."""
        value = self.known.current(value)
        for bit in map(variable, sorted(value.names) if by.constant is None else ()):
            if self.known.varies(bit) and poly(1) - bit in self.known.facts:
                self.known.know_zero(bit - 1 if self.decide(bit - 1) else bit)
        return self.known.current(value)

    def divide(self, a: Poly, b: Poly) -> tuple[Poly, Poly]:
        """Quotient and remainder."""
        self.require(b - 1, "a divisor is at least 1")
        self.require(a, "a dividend is at least 0")
        while True:
            try:
                return self.known.divided(a, b)
            except Fork as fork:
                self.decide(fork.args[0])
                # a part of the dividend below 0 is made whole with one divisor
                part = self.known.current(fork.args[0])
                if self.known.shows(poly(-1) - part, 1):
                    whole, rest = self.divide_shifted(a, b, part)
                    return whole, rest

    def divide_shifted(self, a: Poly, b: Poly, part: Poly) -> tuple[Poly, Poly]:
        """Divide where the part of ``a`` that ``b`` does not divide lies in -b .. -1."""
        a, b = self.known.current(a), self.known.current(b)
        q, r = self.known.divided(a - part, b)
        if self.known.current(r) != poly(0):
            raise Unproved("a dividend below 0 in parts")
        self.known.steps.append(("divided", a, b, b, q - 1, part + b))
        return q - 1, part + b

    def bits(self, op: str, a: Poly, b: int | None) -> Poly:
        """Shifts, masks and exclusive-ors with a literal, as arithmetic."""
        if op == "<<" and b is not None and 0 <= b <= 30:
            return self.fits(a * 2**b)
        if b is None or b < 0 or op not in (">>", "&", "^"):
            raise Unproved(f"no rule for {op} of values that depend on the grid")
        self.require(a, f"the operand of {op} is at least 0")
        if op == ">>" and b <= 30:
            return self.divide(a, poly(2**b))[0]
        if op == "&" and b & (b + 1) == 0:
            return self.divide(a, poly(b + 1))[1]
        if op != "^" or b.bit_count() > 8:
            raise Unproved(f"no rule for {op} {b}")
        for k in range(b.bit_length()):
            if b >> k & 1:
                bit = self.divide(self.divide(a, poly(2**k))[0], poly(2))[1]
                a = a + 2**k - bit * 2 ** (k + 1)
        return a

    def truth(self, node: Cond) -> bool:
        """Decide a condition."""
        return self.settled(node, self.parts(node))

    def parts(self, node: Cond) -> list[Poly]:
        """Evaluate both sides of every comparison, as a GPU does; see `settled`."""
        if isinstance(node, Not):
            return self.parts(node.operand)
        if isinstance(node, Connect):
            return self.parts(node.left) + self.parts(node.right)
        return [self.number(node.left), self.number(node.right)]

    def settled(self, node: Cond, numbers: list[Poly]) -> bool:
        """Decide a condition from the values of `parts`."""
        values = iter(numbers)

        def settle(node: Cond) -> bool:
            if isinstance(node, Not):
                return not settle(node.operand)
            if isinstance(node, Connect):
                left = settle(node.left)
                if left == (node.op == "or"):
                    for _ in range(_numbers(node.right)):
                        next(values)
                    return left
                return settle(node.right)
            return self.compare(node, next(values), next(values))

        return settle(node)

    def compare(self, node: Compare, a: Poly, b: Poly) -> bool:
        """Decide a comparison."""
        a, b = self.known.current(a), self.known.current(b)
        if node.op in ("==", "!="):
            equal = self.decide(a - b) and self.decide(b - a)
            if equal:
                self.known.know_zero(a - b)
            return equal == (node.op == "==")
        return self.decide({"<": b - a - 1, "<=": b - a, ">": a - b - 1, ">=": a - b}[node.op])


_EXACT: Mapping[str, Callable[[Poly, Poly], Poly]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def _numbers(node: Cond) -> int:
    """How many values `Path.parts` gives."""
    if isinstance(node, Not):
        return _numbers(node.operand)
    return _numbers(node.left) + _numbers(node.right) if isinstance(node, Connect) else 2


def paths(
    budget: Budget, setup: Setup, body: tuple[Stmt, ...], results: tuple[str, ...]
) -> tuple[list[Path], list[tuple[Path, list[Poly]]]]:
    """Every path, and those that some workgroup may take with the results there."""
    found: list[tuple[Path, list[Poly]]] = []
    every: list[Path] = []
    todo: list[list[bool]] = [[]]
    while todo:
        path = Path(budget, todo.pop())
        every.append(path)
        try:
            setup(path)
            path.block(body)
            path.split()
            values = [path.value_of(name) for name in results]
        except Infeasible:
            todo += path.open
            continue
        except Unproved:
            if not path.known.contradictory(3):
                raise
            todo += path.open
            continue
        todo += path.open
        if path.known.contradictory(2):
            continue
        found.append((path, values))
        if len(found) + len(todo) > MOST_PATHS:
            raise Unproved(f"more than {MOST_PATHS} paths")
    return every, found
