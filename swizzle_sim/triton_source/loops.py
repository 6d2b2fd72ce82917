"""Kernels that loop over tiles: each program begins at its start and goes on in steps of the number of programs.

With P programs, start s and T tiles, program p computes the tiles s(p), s(p) + P, .. below T. Every index is met once
where s maps 0 .. P - 1 onto itself, and every tile where the map of the index is a bijection too. Both are checked as
one map of a launch with as many programs as tiles: it is a bijection of every launch only if each of the two is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from swizzle_sim.language.ir import GRID_NAMES
from swizzle_sim.triton_source.slices import assign, loaded, slice_of, stored

LOOP = "loop"  # code of an error: a loop that does not meet every tile once, as far as can be told
_RANGES = ("range", "tl.range", "tl.static_range")


class TileLoop(NamedTuple):
    """A loop over tiles: its index, where a program starts, what the index stays below, and by what it grows."""

    number: str
    start: ast.expr
    stop: ast.expr
    step: ast.expr
    stmt: ast.For | ast.While
    before: list[ast.stmt]
    steps: Sequence[ast.stmt] = ()  # where it is over all steps of all tiles of a program: what every step does


def loop_over_tiles(body: list[ast.stmt], answers: Sequence[str]) -> TileLoop | None:
    """Loop that starts at what comes from ``tl.program_id``, goes on in steps that are no literal, and has the tile."""
    for k, stmt in enumerate(body):
        found = _over_tiles(stmt, body[:k])
        if found is not None and (not answers or stored(stmt) & {*answers, found.number}):
            return found
    return None


def unrolled(loop: TileLoop) -> list[ast.stmt]:
    """Statements with the loop replaced by its body, once for where the program starts."""
    first = [assign(loop.number, loop.start, loop.stmt)] if isinstance(loop.stmt, ast.For) else []
    return [*loop.before, *first, *loop.stmt.body]


def programs_assumed(
    loop: TileLoop, parameters: Sequence[str], answers: Sequence[str], refuse: Callable[[ast.AST, str, str], None]
) -> str:
    """Name that is supposed to hold the number of programs; empty where the launch itself gives it."""
    values = {one.targets[0].id: one.value for one in loop.before
              if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)}  # fmt: skip
    _refuse_axes(loop, refuse)
    step = loop.step
    stores = [one.id for stmt in loop.before for one in ast.walk(stmt) if isinstance(one, ast.Name)
              and isinstance(one.ctx, ast.Store)]  # fmt: skip
    if any(stores.count(name) > 1 for name in loaded(step)):
        refuse(loop.stmt, f"{ast.unparse(step)}, by which the loop goes on, is assigned more than once", LOOP)
    bounds = loaded(loop.step) | loaded(loop.stop) if isinstance(loop.stmt, ast.While) else set()
    if changed := bounds & {name for one in loop.stmt.body for name in stored(one)}:
        refuse(loop.stmt, f"{', '.join(sorted(changed))}, by which the loop goes on, is assigned in it", LOOP)
    while isinstance(step, ast.Name) and step.id in values and step.id not in parameters:
        step = values[step.id]
    begun = [*slice_of(loop.before, loaded(loop.start))[0], loop.start]
    axes = [one.args for stmt in begun for one in ast.walk(stmt) if isinstance(one, ast.Call)
            and ast.unparse(one.func) == "tl.program_id"]  # fmt: skip
    counts = (
        isinstance(step, ast.Call) and ast.unparse(step.func) == "tl.num_programs"
        and ast.dump(ast.Tuple(step.args)) in {ast.dump(ast.Tuple(one)) for one in axes}
    )  # fmt: skip
    named = isinstance(step, ast.Name)
    if not counts and not named:
        refuse(loop.stmt, f"the loop goes on by {ast.unparse(loop.step)}, which is not the number of programs", LOOP)
    if named and "xcd" in ast.unparse(step).lower():
        refuse(loop.stmt, f"the loop goes on by {ast.unparse(step)}, which counts no programs", LOOP)
    counted = slice_of(loop.before, loaded(loop.stop))[1] | loaded(loop.stop) | set(GRID_NAMES)
    counted -= {ast.unparse(step), "num_xcds", "tl"}
    _, read = slice_of(loop.before, loaded(loop.start))
    others = {name for name in (read | loaded(loop.start)) - values.keys() if name in counted or counts_tiles(name)}
    others = {name for name in others - {ast.unparse(step), "tl"} if "xcd" not in name.lower()}
    if others:
        refuse(loop.stmt, f"a program starts at a tile that depends on {', '.join(sorted(others))}, "
               "and not on its id and the number of programs alone",
            LOOP,
        )  # fmt: skip
    carried = slice_of(loop.stmt.body, {*answers})[1] & {name for one in loop.stmt.body for name in stored(one)}
    carried -= {loop.number, *answers}
    if carried:
        refuse(loop.stmt, f"{', '.join(sorted(carried))} goes from one trip of the loop to the next", LOOP)
    return ast.unparse(step) if named else ""


def _refuse_axes(loop: TileLoop, refuse: Callable[[ast.AST, str, str], None]) -> None:
    """Refuse a loop that starts by one axis and goes on by another."""
    first, _ = slice_of(loop.before, loaded(loop.start) | loaded(loop.step))
    axes = {ast.unparse(call) for stmt in [*first, ast.Expr(loop.start), ast.Expr(loop.step)] for call in _ids(stmt)}
    if len({text.partition("(")[2] for text in axes}) > 1:
        refuse(loop.stmt, f"a program starts and goes on by {' and '.join(sorted(axes))}: two axes", LOOP)


def _ids(node: ast.AST) -> list[ast.Call]:
    return [one for one in ast.walk(node) if isinstance(one, ast.Call)
            and ast.unparse(one.func) in ("tl.program_id", "tl.num_programs")]  # fmt: skip


def carried_by(loop: TileLoop | None, test: ast.expr) -> set[str]:
    """Names that a condition depends on and that one trip of a loop hands to the next."""
    if loop is None:
        return set()
    before = [one for one in loop.stmt.body if one.lineno < test.lineno]
    read = slice_of(before, loaded(test))[1] - {loop.number}
    return read & {name for one in loop.stmt.body for name in stored(one)}


def counts_tiles(name: str) -> bool:
    """Whether a name is one that people give to a count of tiles."""
    return (
        re.search(r"(num|total|n)_?(tiles?|pids?|workgroups?|wgs?|blocks?)(_?[mn])?$|^grid", name.lower()) is not None
    )


def _over_tiles(stmt: ast.stmt, before: list[ast.stmt]) -> TileLoop | None:
    """The loop over tiles that a statement is."""
    match stmt:
        case ast.For(ast.Name(name), ast.Call(func, [start, stop, step])) if ast.unparse(func) in _RANGES:
            steps = [step]
        case ast.While(ast.Compare(ast.Name(name), [ast.Lt()], [stop]), body):
            start = ast.copy_location(ast.Name(name, ast.Load()), stmt)
            steps = [by for one in body if (by := _step_of(one, name)) is not None]
            k = next((k for k, one in enumerate(body) if name in stored(one)), 0)
            if sum(name in stored(one) for one in body) != 1 or any(name in loaded(one) for one in body[k + 1 :]):
                return None
        case _:
            return _flat(stmt, before)
    if len(steps) != 1 or isinstance(steps[0], ast.Constant) or not _from_id(start, before):
        return None
    if isinstance(stmt, ast.For):
        body = [assign(ast.unparse(one.target), ast.Name(name, ast.Load()), one)
                if isinstance(one, ast.AugAssign) and _goes_along(one, start, step, stmt, before) else one
                for one in stmt.body]  # fmt: skip
        stmt = ast.copy_location(ast.For(stmt.target, stmt.iter, body, []), stmt)
    return TileLoop(name, start, stop, steps[0], stmt, before)


def _goes_along(one: ast.AugAssign, start: ast.expr, step: ast.expr, loop: ast.For, before: list[ast.stmt]) -> bool:
    """Whether a name that begins at ``start - step`` and grows by the step is the index again."""
    name, by = ast.unparse(one.target), ast.unparse(step)
    k = max((k for k, stmt in enumerate(before) if name in stored(stmt)), default=len(before))
    texts = [ast.unparse(stmt) for stmt in (*before[k : k + 1], one)]
    return texts == [f"{name} = {ast.unparse(start)} - {by}", f"{name} += {by}"] and not (
        any(stored(stmt) & (loaded(start) | loaded(step)) for stmt in before[k:])
        or sum(name in stored(stmt) for stmt in loop.body) > 1
    )


def _flat(stmt: ast.stmt, before: list[ast.stmt]) -> TileLoop | None:
    """Loop over all steps of all tiles of a program, as the loop over tiles that it is.

    Steps are counted from 0 again for each tile, from -1 on; ``if step == 0: tile += programs`` goes on to the next
    one, from ``tile = start - programs`` on, as often as a loop from the start in steps of the programs would.
    """
    if not (isinstance(stmt, ast.For) and isinstance(stmt.iter, ast.Call) and ast.unparse(stmt.iter.func) in _RANGES):
        return None
    ends = re.fullmatch(r"\((?:0, )?(\w+) \* (\w+),?\)", ast.unparse(ast.Tuple(stmt.iter.args)))
    turns = [(one, by) for one in stmt.body if isinstance(one, ast.If) and not one.orelse for by in one.body
             if isinstance(by, ast.AugAssign) and _is_step(by, ast.unparse(by.target))]  # fmt: skip
    for steps, own in (ends.groups(), ends.groups()[::-1]) if ends else ():
        for turn, by in turns:
            number, programs, k = ast.unparse(by.target), ast.unparse(by.value), stmt.body.index(turn)
            step = ast.unparse(turn.test).removesuffix(" == 0")
            said = {name: [one for one in before if name in stored(one)] for name in (number, own, step)}
            begun, whole = (said[name][0] if said[name] else None for name in (number, own))
            if not (step.isidentifier() and isinstance(begun, ast.Assign) and isinstance(begun.value, ast.BinOp)
                    and isinstance(whole, ast.Assign) and isinstance(whole.value, ast.BinOp)):  # fmt: skip
                continue
            start, total = begun.value.left, whole.value.left
            rest = f"if {ast.unparse(start)} < ({ast.unparse(total)}) % {programs}:\n    {own} += 1"
            plain = (
                f"{number} = ({ast.unparse(start)}) - {programs}\n{own} = ({ast.unparse(total)}) // {programs}\n{rest}"
            )
            texts = [ast.unparse(one) for name in (number, own, step) for one in said[name]]
            fixed = {steps} | loaded(total) | loaded(start) | loaded(by.value)
            counted = [f"{step} = tl.where({step} == {steps} - 1, 0, {step} + 1)"]
            changed = [name for one in stmt.body if one is not turn for name in stored(one)]
            if (
                texts != [ast.unparse(one) for one in ast.parse(f"{plain}\n{step} = -1").body]
                or [ast.unparse(one) for one in stmt.body[:k] if step in stored(one)] != counted
                or {*changed} & (stored(turn) | fixed | {own}) or changed.count(step) > 1
                or stored(turn) & {*fixed, own} or not _from_id(start, before)
                or any(sum(name in stored(one) for one in before) > 1 for name in fixed)
            ):  # fmt: skip
                continue
            last = [one for one in stmt.body if isinstance(one, ast.If) and not one.orelse
                    and ast.unparse(one.test) == f"{step} == {steps} - 1"]  # fmt: skip
            once = [turn, *last]
            parts = [one.body if one in once else [one] for one in stmt.body]
            body = [one for part in parts for one in part if one is not by]
            loop = ast.copy_location(ast.For(stmt.target, stmt.iter, body, []), stmt)
            return TileLoop(number, start, total, by.value, loop, before, [one for one in stmt.body if one not in once])
    return None


def _is_step(stmt: ast.AugAssign, name: str) -> bool:
    return isinstance(stmt.op, ast.Add) and ast.unparse(stmt.target) == name


def _step_of(stmt: ast.stmt, name: str) -> ast.expr | None:
    """By what a statement raises a name."""
    match stmt:
        case ast.AugAssign() if _is_step(stmt, name):
            return stmt.value
        case ast.Assign([ast.Name(target)], ast.BinOp(ast.Name(own), ast.Add(), step)) if target == own == name:
            return step
    return None


def _from_id(start: ast.expr, before: list[ast.stmt]) -> bool:
    """Whether a loop's start is the program id, or computed from it."""
    needed = slice_of(before, loaded(start))[0]
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.program_id"
        for one in [*needed, start]
        for node in ast.walk(one)
    )
