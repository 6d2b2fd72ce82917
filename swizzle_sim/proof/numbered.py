"""Pieces that know a launch by its number of workgroups alone: what is shown of them on one axis holds on two.

``cdiv(num_pid_m * num_pid_n, 8)`` is a quotient of a product of two symbols, and every fact about it of a higher degree
than one about ``cdiv(num_pids, 8)``. A piece that reads the sides for their product only is a map of 0 .. num_pids - 1
that is shown for every number of workgroups, of which those of a launch with sides are some.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from swizzle_sim.language.ir import (
    GRID_NAMES,
    Assign,
    Binary,
    Compare,
    Connect,
    For,
    If,
    Name,
    Not,
    Select,
    Stmt,
    Unary,
    statements,
)
from swizzle_sim.language.variables import assigned, live_before
from swizzle_sim.proof.launches import Launches

_NUMBER = "num_pids"
_GIVEN = frozenset({"pid", _NUMBER, "num_xcds", "NUM_XCDS"})
_OF_TILES = frozenset({"program_id(0)", "num_programs(0)"})  # of one axis, as a launch of tiles is
Piece = tuple[tuple[Stmt, ...], Launches]


def numbered(body: tuple[Stmt, ...], results: tuple[str, ...], launches: Launches) -> Piece | None:
    """A piece and launches of one axis on which to prove it; None where it reads more than their number."""
    sides = launches.sides
    loops = any(isinstance(one, For) for one in statements(body))
    if len(sides) != 2 or len(results) != 1 or _NUMBER in assigned(body) or loops:
        return None
    known, kept = {side: side for side in sides}, list[Stmt]()
    for stmt in body:
        if isinstance(stmt, Assign) and isinstance(stmt.value, Name) and stmt.value.name in known:
            if known.get(stmt.target, stmt.target) in sides and known[stmt.value.name] != known.get(stmt.target):
                return None  # a side, or another name of one, becomes the other side
            known[stmt.target] = known[stmt.value.name]
            continue
        if not assigned((stmt,)).isdisjoint(known):
            return None
        kept.append(_statement(stmt, known, sides))
    read = live_before(tuple(kept), results)
    given = _GIVEN | (_OF_TILES if launches.kind == "tiles" else frozenset())
    if not read & set(GRID_NAMES) <= given or results[0] in known:
        return None
    return tuple(kept), replace(launches, kind="line", where=None)


def _statement(stmt: Stmt, known: dict[str, str], sides: tuple[str, ...]) -> Stmt:
    """A statement in which sides go by their own names, and their product by that of the number."""
    if isinstance(stmt, Assign):
        return replace(stmt, value=_put(stmt.value, known, sides))
    assert isinstance(stmt, If)
    then, other = (tuple(_statement(one, known, sides) for one in part) for part in (stmt.body, stmt.orelse))
    return replace(stmt, condition=_put(stmt.condition, known, sides), body=then, orelse=other)


def _put(node: Any, known: dict[str, str], sides: tuple[str, ...]) -> Any:
    """The same for an expression or a condition."""
    match node:
        case Name(name):
            return Name(known.get(name, name))
        case Binary() | Compare() | Connect():
            whole = replace(node, left=_put(node.left, known, sides), right=_put(node.right, known, sides))
            product = (
                isinstance(whole, Binary) and whole.op == "*" and {whole.left, whole.right} == set(map(Name, sides))
            )
            return Name(_NUMBER) if product else whole
        case Select():
            parts = {field: _put(getattr(node, field), known, sides) for field in ("condition", "then", "other")}
            return replace(node, **parts)
        case Unary() | Not():
            return replace(node, operand=_put(node.operand, known, sides))
    return node
