"""Kernels that loop over tiles: each program begins at its start and goes on in steps of the number of programs.

With P programs, start s and T tiles, program p computes the tiles s(p), s(p) + P, .. below T. Every index is met once
where s maps 0 .. P - 1 onto itself, and every tile where the map of the index is a bijection too. Both are checked as
one map of a launch with as many programs as tiles: it is a bijection of every launch only if each of the two is.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from swizzle_sim.triton_source.inlining import assign, loaded, slice_of, stored

_RANGES = ("range", "tl.range", "tl.static_range")


def unrolled(body: list[ast.stmt], answers: Sequence[str]) -> tuple[list[ast.stmt], ast.expr | None]:
    """Statements of a kernel with the loop over tiles replaced by its body, once for where the program starts.

    A loop counts that starts at what comes from ``tl.program_id``, goes on in steps that are no literal, and assigns
    the tile; any other kernel is returned as it is.
    """
    for k, stmt in enumerate(body):
        found = _over_tiles(stmt, body[:k])
        if found is not None and isinstance(stmt, ast.For | ast.While):
            index, start, stop = found
            if not answers or stored(stmt) & {*answers, index}:
                first = [assign(index, start, stmt)] if isinstance(stmt, ast.For) else []
                return [*body[:k], *first, *stmt.body], stop
    return body, None


def _over_tiles(stmt: ast.stmt, before: list[ast.stmt]) -> tuple[str, ast.expr, ast.expr] | None:
    """Name that runs over tiles in a loop, where it starts, and what it stays below."""
    match stmt:
        case ast.For(ast.Name(name), ast.Call(func, [start, stop, step])) if ast.unparse(func) in _RANGES:
            steps = [step]
        case ast.While(ast.Compare(ast.Name(name), [ast.Lt()], [stop]), body):
            start = ast.copy_location(ast.Name(name, ast.Load()), stmt)
            steps = [one.value for one in body if isinstance(one, ast.AugAssign) and ast.unparse(one.target) == name]
        case _:
            return None
    if len(steps) != 1 or isinstance(steps[0], ast.Constant) or not _from_id(start, before):
        return None
    return name, start, stop


def _from_id(start: ast.expr, before: list[ast.stmt]) -> bool:
    """Whether a loop's start is the program id, or computed from it."""
    needed = slice_of(before, loaded(start))[0]
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.program_id"
        for one in [*needed, start]
        for node in ast.walk(one)
    )
