"""Kernels that loop over tiles: the tile's index takes the program id's place.

The loops of all programs together run over every index once, so that the map from index to tile has to be a bijection.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from swizzle_sim.triton_source.inlining import assign, loaded, slice_of, stored

_RANGES = ("range", "tl.range", "tl.static_range")


def unrolled(body: list[ast.stmt], answers: Sequence[str]) -> tuple[list[ast.stmt], ast.expr | None]:
    """Statements of a kernel with the loop over tiles replaced by its body, once for the program id.

    A loop counts that starts at what comes from ``tl.program_id``, goes on in steps, and assigns the tile; any other
    kernel is returned as it is.

    Returns
    -------
    body : list of ast.stmt
    stop : ast.expr or None
        What the loop's index stays below; None where there is no such loop.
    """
    for k, stmt in enumerate(body):
        found = _over_tiles(stmt, body[:k])
        if found is not None and isinstance(stmt, ast.For | ast.While):
            index, stop = found
            if not answers or stored(stmt) & {*answers, index}:
                return [*body[:k], assign(index, _program_id(stmt), stmt), *stmt.body], stop
    return body, None


def _over_tiles(stmt: ast.stmt, before: list[ast.stmt]) -> tuple[str, ast.expr] | None:
    """Name that runs over tiles in a loop, and what it stays below."""
    match stmt:
        case ast.For(ast.Name(name), ast.Call(func, [start, stop, _])) if ast.unparse(func) in _RANGES:
            return (name, stop) if _from_id(start, before) else None
        case ast.While(ast.Compare(ast.Name(name), [ast.Lt()], [stop]), body):
            steps = [one for one in body if isinstance(one, ast.AugAssign) and ast.unparse(one.target) == name]
            return (name, stop) if len(steps) == 1 and _from_id(ast.Name(name, ast.Load()), before) else None
    return None


def _from_id(start: ast.expr, before: list[ast.stmt]) -> bool:
    """Whether a loop's start is the program id, or computed from it."""
    needed = slice_of(before, loaded(start))[0]
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.program_id"
        for one in [*needed, start]
        for node in ast.walk(one)
    )


def _program_id(place: ast.AST) -> ast.expr:
    node = ast.parse("tl.program_id(0)", mode="eval").body
    return ast.fix_missing_locations(ast.copy_location(node, place))
