"""`live_blocks`: which blocks a kernel holds in registers at once, by their sides as the source has them.

acc = tl.zeros((BLOCK_M, D), ...)                        (BLOCK_M, D)
for ...: acc = tl.dot(tl.dot(q, k).to(...), v, acc)      (BLOCK_M, BLOCK_N) beside (BLOCK_M, D)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from swizzle_sim.rewrite.source import nodes

Sides = tuple[str, ...]
MADE, REDUCED = ("zeros", "full"), ("max", "min", "sum")


def live_blocks(function: ast.FunctionDef) -> Iterator[tuple[Sides, ...]]:
    """Blocks that the kernel makes, each alone, and all products of each loop that holds no other."""
    known: dict[str, Sides] = {}
    for one in nodes(function):
        if isinstance(one, ast.Call) and _name(one) in MADE and one.args and isinstance(one.args[0], ast.Tuple):
            yield (_sides(one, known),)
    for one in sorted((one for one in nodes(function) if isinstance(one, ast.Assign)), key=lambda one: one.lineno):
        if isinstance(one.targets[0], ast.Name):
            known[one.targets[0].id] = _sides(one.value, known) or known.get(one.targets[0].id, ())
    for loop in (one for one in nodes(function) if isinstance(one, ast.For | ast.While)):
        inside = list(nodes(*loop.body))
        if not any(isinstance(one, ast.For | ast.While) for one in inside):
            products = (_sides(one, known) for one in inside if isinstance(one, ast.Call) and _name(one) == "dot")
            yield tuple(dict.fromkeys(one for one in products if one))


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _sides(value: ast.expr, known: dict[str, Sides]) -> Sides:
    """Sides of a value; none of a scalar, or where they are not known."""
    found: Sides = ()
    match value:
        case ast.Name(name):
            found = known.get(name, ())
        case ast.Attribute(of, "T"):
            found = _sides(of, known)[::-1]
        case ast.Subscript(of, ast.Tuple(places)):
            own = iter(_sides(of, known))
            found = tuple("1" if isinstance(one, ast.Constant) else next(own, "1") for one in places)
        case ast.Call():
            found = _of_call(value, known)
        case _:
            for part in (one for one in ast.iter_child_nodes(value) if isinstance(one, ast.expr)):
                found = _broadcast(found, _sides(part, known))
    return found


def _of_call(call: ast.Call, known: dict[str, Sides]) -> Sides:
    """Sides of what a call returns; those of its widest argument, where it is none of these."""
    name, found = _name(call), ()  # type: tuple[str, Sides]
    match call:
        case ast.Call(_, [start, end]) if name == "arange" and ast.unparse(start) == "0":
            found = (ast.unparse(end),)
        case ast.Call(_, [ast.Tuple(sides), *_]) if name in MADE:
            found = tuple(map(ast.unparse, sides))
        case ast.Call(_, [left, right, *_]) if name == "dot":
            pair = _sides(left, known), _sides(right, known)
            found = (pair[0][0], pair[1][1]) if all(len(one) == 2 for one in pair) else ()
        case ast.Call(_, [of, *_]) if name in ("load", "trans"):
            found = _sides(of, known)[:: -1 if name == "trans" else 1]
        case ast.Call(ast.Attribute(of, "to")):
            found = _sides(of, known)
        case _ if name not in REDUCED:
            for one in call.args:
                found = _broadcast(found, _sides(one, known))
    return found


def _broadcast(one: Sides, other: Sides) -> Sides:
    if len(one) == len(other):
        return tuple(b if a == "1" else a for a, b in zip(one, other, strict=True))
    return max(one, other, key=len)
