"""`live_blocks`: which blocks a kernel holds in registers at once, by their sides as the source has them.

Of ``acc = tl.dot(tl.dot(q, k), v, acc)`` in a loop, (BLOCK_M, BLOCK_N) beside (BLOCK_M, D).
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
    for one in sorted((one for one in nodes(function) if isinstance(one, ast.Assign)), key=lambda one: one.lineno):
        if isinstance(one.targets[0], ast.Name):
            known[one.targets[0].id] = _sides(one.value, known) or known.get(one.targets[0].id, ())
    yield from ((_sides(one, known),) for one in nodes(function) if _name(one) in MADE)
    for loop in (one for one in nodes(function) if isinstance(one, ast.For | ast.While)):
        inside = list(nodes(*loop.body))
        if not any(isinstance(one, ast.For | ast.While) for one in inside):
            yield tuple(dict.fromkeys(filter(None, (_sides(one, known) for one in inside if _name(one) == "dot"))))


def _name(call: ast.AST) -> str:
    return ast.unparse(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""


def _sides(value: ast.AST, known: dict[str, Sides]) -> Sides:
    """Sides of a value, those of its widest part where it is no call that is known; none of a scalar."""
    found, parts, name = (), list(ast.iter_child_nodes(value)), _name(value)  # type: Sides, list[ast.AST], str
    match value:
        case ast.Name(own):
            return known.get(own, ())
        case ast.Attribute(of, "T") | ast.Call(_, [of]) if name in ("", "trans"):
            return _sides(of, known)[::-1]
        case ast.Subscript(of, ast.Tuple(places)):
            left = iter(_sides(of, known))
            return tuple("1" if isinstance(one, ast.Constant) else next(left, "1") for one in places)
        case ast.Call(_, [ast.Tuple(sides) | ast.List(sides), *_] | [_, *sides]) if name in (*MADE, "arange"):
            return tuple(map(ast.unparse, sides))
        case ast.Call(_, [left, right, *_]) if name == "dot":
            pair = _sides(left, known), _sides(right, known)
            return (pair[0][0], pair[1][1]) if all(len(one) == 2 for one in pair) else ()
        case ast.Call():
            parts = [*value.args[: 1 if name == "load" else None]] if name not in REDUCED else []
            parts = [value.func.value] if name == "to" and isinstance(value.func, ast.Attribute) else parts
    for one in parts:
        other = _sides(one, known)
        if len(found) == len(other):
            found = tuple(b if a == "1" else a for a, b in zip(found, other, strict=True))
        found = max(found, other, key=len)
    return found
