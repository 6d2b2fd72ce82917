"""A candidate folded to one launch: constants for counts and sizes, and nothing that this launch cannot tell apart.

Every expression is evaluated for every workgroup of the launch, so what is dropped was looked at, not reasoned about: a
``min`` whose first side is never the larger becomes that side, a condition that never fails goes, a remainder that
changes no value goes. What stands in a loop that runs, or is read from one, is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from swizzle_sim.language.grid import Grid, bind
from swizzle_sim.language.ir import (
    COORDINATES,
    Assign,
    Binary,
    Compare,
    Cond,
    Connect,
    Expr,
    For,
    Form,
    If,
    Int,
    Name,
    Not,
    Select,
    Stmt,
    Unary,
)
from swizzle_sim.language.lower import ON_ARRAYS
from swizzle_sim.language.rules import INT32_MAX, INT32_MIN
from swizzle_sim.language.variables import assigned, live_after_each, live_before, live_inside

Values = np.ndarray | None  # of an expression for every workgroup; None where nobody knows


def folded(form: Form, grid: Grid, num_xcds: int, sizes: Mapping[str, int]) -> Form:
    """Form with the same results as another on one launch."""
    bound = bind(form.inputs, grid, num_xcds, sizes)
    pid = np.arange(grid.num_pids, dtype=np.int64)
    known: dict[str, Values] = {name: np.full_like(pid, value) for name, value in bound.constants.items()}
    known |= {name: pid // digit.stride % digit.extent for name, digit in bound.digits.items()}
    body = _needed(_Folder(known, np.ones(pid.size, bool)).block(form.body), set(form.results))
    return Form(body, form.results, tuple(sorted(live_before(body, form.results) & set(form.inputs))))


class _Folder:
    """Folds statements in order; ``known`` holds the values of each name, ``here`` which workgroups come by."""

    def __init__(self, known: dict[str, Values], here: np.ndarray):
        self.known, self.here = known, here

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(made for stmt in body for made in self._statement(stmt))

    def _statement(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Assign):
            value, self.known[stmt.target] = self.integer(stmt.value)
            return (replace(stmt, value=value),)
        return self._if(stmt) if isinstance(stmt, If) else self._for(stmt)

    def _if(self, stmt: If) -> tuple[Stmt, ...]:
        condition, holds = self.condition(stmt.condition)
        if holds is not None and self._all(holds):
            return self.block(stmt.body)
        if holds is not None and self._all(~holds):
            return self.block(stmt.orelse)
        taken = np.ones_like(self.here) if holds is None else holds
        other = np.ones_like(self.here) if holds is None else ~holds
        sides = [_Folder(dict(self.known), self.here & mask) for mask in (taken, other)]
        then, orelse = sides[0].block(stmt.body), sides[1].block(stmt.orelse)
        for name in assigned(stmt.body) | assigned(stmt.orelse):
            self.known[name] = _either(holds, *(side.known.get(name) for side in sides))
        return (If(condition, then, orelse, stmt.line),)

    def _for(self, stmt: For) -> tuple[Stmt, ...]:
        (start, _), (stop, _) = self.integer(stmt.start), self.integer(stmt.stop)
        self.known |= dict.fromkeys({stmt.var, *assigned(stmt.body)})
        inside = _Folder(dict(self.known), self.here).block(stmt.body)
        return (For(stmt.var, start, stop, stmt.step, inside, stmt.line),)

    def integer(self, node: Expr) -> tuple[Expr, Values]:
        """Folded expression, and its values."""
        made, values = self._integer(node)
        if values is not None and not isinstance(made, Int):
            seen = values[self.here]
            if seen.size and (seen == seen[0]).all():
                return Int(int(seen[0])), values
            if not isinstance(made, Name):  # what comes to the same as an id of the hardware is that id
                ids = sorted(COORDINATES & self.known.keys())
                same = next((name for name in ids if np.array_equal(self.known[name], values)), None)  # type: ignore[arg-type]
                return Name(same) if same else made, values
        return made, values

    def _integer(self, node: Expr) -> tuple[Expr, Values]:
        match node:
            case Int(value):
                return node, np.full(self.here.size, value, np.int64)
            case Name(name):
                return node, self.known.get(name)
            case Unary(op, operand):
                inner, values = self.integer(operand)
                return Unary(op, inner), self._fitting(None if values is None else -values if op == "-" else ~values)
            case Select(condition, then, other):
                return self._select(condition, then, other)
            case Binary(op, left, right):
                return self._binary(op, self.integer(left), self.integer(right))
        raise TypeError(f"no expression of the language: {node!r}")

    def _select(self, condition: Cond, then: Expr, other: Expr) -> tuple[Expr, Values]:
        made, holds = self.condition(condition)
        first, second = self.integer(then), self.integer(other)
        if holds is not None and self._all(holds):
            return first
        if holds is not None and self._all(~holds):
            return second
        return Select(made, first[0], second[0]), _either(holds, first[1], second[1])

    def _binary(self, op: str, first: tuple[Expr, Values], second: tuple[Expr, Values]) -> tuple[Expr, Values]:
        (left, a), (right, b) = first, second
        if a is None or b is None:
            return Binary(op, left, right), None
        if op in ("min", "max") and (self._all(a <= b) or self._all(a >= b)):
            return first if self._all(a <= b) == (op == "min") else second
        values = self._fitting(self._value(op, a, b))
        if values is not None and op not in ("min", "max"):
            if self._all(values == a):  # + 0, * 1, // 1, a remainder of what is smaller
                return left, values
            if op in ("+", "*", "|", "^") and self._all(values == b):
                return right, values
        return Binary(op, left, right), values

    def _value(self, op: str, a: np.ndarray, b: np.ndarray) -> Values:
        """Values of an operation; None where a workgroup that comes by has none."""
        if op in ("<<", ">>"):
            return ON_ARRAYS[op](a, np.clip(b, 0, 31)) if self._all((b >= 0) & (b < 32)) else None
        if op in ("//", "%", "cdiv"):
            if not self._all(b != 0):
                return None
            b = np.where(b == 0, 1, b)  # of workgroups that do not come by
        return ON_ARRAYS[op](a, b)

    def _fitting(self, values: Values) -> Values:
        """Values of 32 bits; None where one that is needed has more, which the language refuses."""
        if values is None or not self._all((values >= INT32_MIN) & (values <= INT32_MAX)):
            return None
        return np.clip(values, INT32_MIN, INT32_MAX)

    def condition(self, node: Cond) -> tuple[Cond, Values]:
        """Folded condition, and where it holds."""
        match node:
            case Compare(op, left, right):
                (first, a), (second, b) = self.integer(left), self.integer(right)
                return Compare(op, first, second), None if a is None or b is None else ON_ARRAYS[op](a, b)
            case Connect(op, left, right):
                (one, a), (other, b) = self.condition(left), self.condition(right)
                if a is None or b is None:
                    return Connect(op, one, other), None
                return Connect(op, one, other), a & b if op == "and" else a | b
            case Not(operand):
                inner, holds = self.condition(operand)
                return Not(inner), None if holds is None else ~holds
        raise TypeError(f"no condition of the language: {node!r}")

    def _all(self, holds: np.ndarray) -> bool:
        return bool(holds[self.here].all())


def _either(holds: Values, then: Values, other: Values) -> Values:
    return None if holds is None or then is None or other is None else np.where(holds, then, other)


def _needed(body: tuple[Stmt, ...], live: set[str]) -> tuple[Stmt, ...]:
    """Block without assignments that nothing reads; ``live`` are the names read after it."""
    while True:
        kept: list[Stmt] = []
        for stmt, after in zip(body, live_after_each(body, live), strict=False):
            if isinstance(stmt, Assign):
                kept += [stmt] if stmt.target in after and stmt.value != Name(stmt.target) else []
            elif isinstance(stmt, If):
                then, orelse = _needed(stmt.body, after), _needed(stmt.orelse, after)
                kept += [replace(stmt, body=then, orelse=orelse)] if then or orelse else []
            else:
                inside = _needed(stmt.body, live_inside(stmt, after))
                kept += [replace(stmt, body=inside)] if inside else []
        if tuple(kept) == body:
            return body
        body = tuple(kept)
