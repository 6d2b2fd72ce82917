"""Integer expressions of a kernel over its own parameters: ``tl.cdiv(N, BLOCK_N)`` and what is made of such."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from swizzle_sim.language.rules import FUNCTIONS
from swizzle_sim.triton_source.slices import stored
from swizzle_sim.triton_source.source_file import parameters_of

_OPS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_CALLS: dict[str, Callable[[int, int], int]] = {
    "cdiv": lambda a, b: -(-a // b),
    "minimum": min,
    "maximum": max,
    "min": min,
    "max": max,
}
_MOST_PARTS = 400  # of an expression with the meaning of its names in their places
_DRAWN = (3, 17, 101)  # sizes at which two counts are compared
_COUNT = re.compile(r"(num|n|total|grid)_?(pid|tile|block|wg|workgroup|cta|col|row)?s?(_?[mnxy])?$|grid", re.IGNORECASE)


def assigned_once(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Value of each name that one plain assignment at a function's top level, and nothing else, stores to."""
    stores = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    found = {}
    for stmt in function.body:
        match stmt:
            case ast.Assign([ast.Name(name)], value) if stores.count(name) == 1:
                found[name] = value
            case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(values):
                pairs = [(one.id, value) for one, value in zip(names, values, strict=True) if isinstance(one, ast.Name)]
                found |= {name: value for name, value in pairs if stores.count(name) == 1}
    return found


class Definitions:
    """What the local names of a function mean in its parameters, where they are assigned once."""

    def __init__(self, function: ast.FunctionDef, fields: Iterable[str] = ()):
        given = [*(one.arg for one in parameters_of(function)), *fields]
        changed = {name for stmt in function.body for name in stored(stmt)}  # these mean one thing here, another there
        self.parameters = [name for name in given if name not in changed]
        self._once = {name: value for name, value in assigned_once(function).items() if name not in given}
        self._function = function
        self._left = 0

    def in_parameters(self, text: str) -> ast.expr | None:
        """Return an expression with local names replaced by what they mean; None if that is not arithmetic."""
        return self._whole(ast.parse(text, mode="eval").body)

    def meaning_of(self, name: str) -> ast.expr | None:
        """Return what a local name means in parameters, or None."""
        return self._whole(ast.Name(name)) if name in self._once else None

    def quotients(self) -> Iterator[ast.expr]:
        """Yield every ``cdiv`` of parameters in the function, each once, those too that are written as divisions."""
        seen = set()
        for node in ast.walk(self._function):
            parts = rounded_up(node)
            whole = self._whole(node) if isinstance(node, ast.expr) and parts else None
            if parts is not None and whole is not None:
                once = tuple(ast.unparse(self._whole(part) or part) for part in parts)
                if once not in seen:
                    seen.add(once)
                    yield whole

    def divisors(self) -> Iterator[ast.expr]:
        """Yield every parameter that something is divided by, each once, in source order."""
        parted = [one for one in ast.walk(self._function) if isinstance(one, ast.BinOp)]
        by = [one.right for one in parted if isinstance(one.op, ast.FloorDiv | ast.Mod)]
        names = dict.fromkeys(one.id for one in by if isinstance(one, ast.Name) and one.id in self.parameters)
        yield from (ast.Name(name, ast.Load()) for name in names)

    def _expand(self, node: ast.expr, within: tuple[str, ...] = ()) -> ast.expr | None:
        """Expression in parameters; ``within`` are the names that it is the meaning of: none is made of itself."""
        self._left -= 1
        match node:
            case ast.Constant(int()):
                return node
            case ast.Name(name) if name in self.parameters:
                return node
            case ast.Name(name) if name in self._once and name not in within and self._left > 0:
                return self._expand(self._once[name], (*within, name))
            case ast.BinOp(one, op, other) if type(op) in _OPS and self._left > 0:
                parts = self._expand(one, within), self._expand(other, within)
                return ast.BinOp(parts[0], op, parts[1]) if parts[0] and parts[1] else None
            case ast.Call(func, [one, other], []) if _called(node) in _CALLS:
                parts = self._expand(one, within), self._expand(other, within)
                return ast.Call(func, [parts[0], parts[1]], []) if parts[0] and parts[1] else None
        return None

    def _whole(self, node: ast.expr) -> ast.expr | None:
        self._left = _MOST_PARTS
        return self._expand(node)


def rounded_up(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """What ``cdiv(a, b)``, or ``(a + b - 1) // b`` in any order of its terms, divides and by what; None of others."""
    match node:
        case ast.Call(_, [one, other], []) if _called(node) == "cdiv":
            return one, other
        case ast.BinOp(sum_of, ast.FloorDiv(), by):
            terms = list(_terms(sum_of, 1))
            texts = [(sign, ast.unparse(term)) for sign, term in terms]
            added = [(1, ast.unparse(by)), (-1, "1")]
            if len(terms) == 3 and all(texts.count(one) == 1 for one in added):
                left = next(place for place, one in enumerate(texts) if one not in added)
                return (terms[left][1], by) if texts[left][0] == 1 else None
    return None


def _terms(node: ast.expr, sign: int) -> Iterator[tuple[int, ast.expr]]:
    """Terms of a sum, each with its sign."""
    match node:
        case ast.BinOp(one, ast.Add() | ast.Sub() as op, other):
            yield from _terms(one, sign)
            yield from _terms(other, sign if isinstance(op, ast.Add) else -sign)
        case _:
            yield sign, node


def folded(node: ast.expr, constants: Mapping[str, ast.expr]) -> ast.expr:
    """Integer that an expression of constants is; the expression itself where it is none."""
    known: dict[str, object] = {}
    for name, value in constants.items():  # in the order of the file: each is made of those before it
        if value is node:
            break
        known[name] = evaluate(value, known)
    value_of_it = evaluate(node, known)
    return node if value_of_it is None else ast.copy_location(ast.Constant(value_of_it), node)


def evaluate(node: ast.expr, values: Mapping[str, object]) -> int | None:
    """Value of an expression; None where a name has no integer."""
    match node:
        case ast.Constant(int(value)):
            return value
        case ast.Name(name):
            found = values.get(name)
            return found if isinstance(found, int) and not isinstance(found, bool) else None
        case ast.BinOp(one, op, other):
            if type(op) not in _OPS:
                return None
            a, b = evaluate(one, values), evaluate(other, values)
            rule = _OPS[type(op)]
        case ast.Call(_, [one, other], []) if _called(node) in _CALLS:
            a, b = evaluate(one, values), evaluate(other, values)
            rule = _CALLS[_called(node)]
        case _:
            return None
    try:
        return None if a is None or b is None else rule(a, b)
    except ZeroDivisionError:
        return None


def exceeds(one: str, other: str) -> bool:
    """Whether one expression of sizes is above another at some sizes; no, where one cannot be worked out."""
    trees = [ast.parse(text, mode="eval").body for text in (one, other)]
    names = sorted({node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)})
    for start in _DRAWN:
        known: dict[str, object] = {name: start + 7 * k * k + 5 * k for k, name in enumerate(names)}
        above, below = (evaluate(tree, known) for tree in trees)
        if above is not None and below is not None and above > below:
            return True
    return False


def _called(node: ast.Call) -> str:
    """Last word of a called name."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def reads_only(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression reads only these names, and calls only ``cdiv``."""
    return all(
        one.id in names or one.id in ("tl", "triton", "cdiv", "min", "max")
        for one in ast.walk(node)
        if isinstance(one, ast.Name)
    ) and not any(
        isinstance(one, ast.Call) and ast.unparse(one.func) not in ("tl.cdiv", "triton.cdiv", "cdiv")
        for one in ast.walk(node)
    )


class Filled(ast.NodeTransformer):
    """Puts known values in place of names."""

    def __init__(self, known: dict[str, ast.expr]):
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Value of a name that has one."""
        return self.known.get(node.id, node)


def is_arithmetic(value: ast.expr) -> bool:
    """Whether an expression is arithmetic, as far as its form tells."""
    refused = (ast.Lambda, ast.Dict, ast.List, ast.Set, ast.JoinedStr, ast.Subscript, ast.Tuple, ast.Attribute)
    for one in ast.walk(value):
        if isinstance(one, ast.Call) and ast.unparse(one.func) not in FUNCTIONS:
            return False
        if isinstance(one, refused) and ast.unparse(one) not in FUNCTIONS:
            return False
    return True


def constant_counts(body: list[ast.stmt]) -> dict[str, int]:
    """Counts of tiles that constants of a file decide, whatever the launch.

    Each is a quotient of integers that statements assign, or made of one, and named as a count.
    """
    known: dict[str, object] = {}
    quotients: set[str] = set()
    for stmt in body:
        match stmt:
            case ast.Assign([ast.Name(name)], value):
                known[name] = None if name in known else evaluate(value, known)
                read = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
                divided = isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv)
                divided = divided or (isinstance(value, ast.Call) and _called(value) == "cdiv")
                if known[name] is not None and (divided or read & quotients):
                    quotients.add(name)
    return {name: count for name in sorted(quotients) if _COUNT.match(name) and isinstance(count := known[name], int)}
