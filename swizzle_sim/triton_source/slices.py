"""Backward slices of statements, and what they read and assign."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def assign(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    """``name = value`` at the place of a node."""
    target = ast.copy_location(ast.Name(name, ast.Store()), place)
    return ast.copy_location(ast.Assign([target], value), place)


def stored(node: ast.AST) -> set[str]:
    """Names that a statement assigns, however deep."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def loaded(node: ast.AST | None) -> set[str]:
    """Names that a tree reads."""
    found = ast.walk(node) if node is not None else ()
    return {one.id for one in found if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def slice_of(body: Iterable[ast.stmt], needed: set[str]) -> tuple[list[ast.stmt], set[str]]:
    """Return the statements that the needed names depend on, and the names that these need from before."""
    found: list[ast.stmt] = []
    for stmt in reversed(list(body)):
        if not stored(stmt) & needed:
            continue
        one, needed = _sliced(stmt, needed)
        found.append(one)
    return found[::-1], needed


def _sliced(stmt: ast.stmt, needed: set[str]) -> tuple[ast.stmt, set[str]]:  # noqa: PLR0911 - one a kind
    match stmt:
        case ast.Assign([ast.Tuple(parts)], ast.Tuple(values)) if len(parts) == len(values) and all(
            isinstance(one, ast.Name) for one in parts
        ):  # all at once: those that are needed alone
            pairs = [(one, value) for one, value in zip(parts, values, strict=True) if stored(one) & needed]
            places, given = [one for one, _ in pairs], [value for _, value in pairs]
            part = ast.Assign([ast.Tuple(places, ast.Store())], ast.Tuple(given, ast.Load()))
            part = part if len(pairs) > 1 else ast.Assign(places, given[0])
            read = {name for value in given for name in loaded(value)}
            return ast.copy_location(part, stmt), (needed - {name for one in places for name in stored(one)}) | read
        case ast.Assign(targets, value):
            names = {name for target in targets for name in stored(target)}
            return stmt, (needed - names) | loaded(value)
        case ast.AnnAssign(target, _, value) if value is not None:
            return stmt, (needed - stored(target)) | loaded(value)
        case ast.If(test, body, orelse):
            then, of_then = slice_of(body, needed)
            other, of_other = slice_of(orelse, needed)
            whole = ast.If(test, then or [ast.copy_location(ast.Pass(), stmt)], other)
            return ast.copy_location(whole, stmt), of_then | of_other | loaded(test)
        case ast.For() if any(isinstance(one, ast.Break | ast.Continue) for one in own_statements(stmt)):
            return stmt, needed | loaded(stmt)  # what leaves a trip assigns nothing, and decides what is assigned
        case ast.For(target, over, body, []):
            wanted: set[str] = set(needed)
            inner: set[str] = set()
            while inner != wanted:  # what one trip reads, an earlier trip may have written
                inner = set(wanted)
                kept, before = slice_of(body, inner)
                wanted = inner | before
            whole_for = ast.For(target, over, kept, [])
            return ast.copy_location(whole_for, stmt), (wanted - stored(target)) | loaded(over)
        case _:  # `a += b` reads a too; anything else the language refuses by name
            return stmt, needed | loaded(stmt)


def own_statements(outer: ast.stmt) -> Iterator[ast.stmt]:
    """Statements in a function or statement, however deep, without those of functions inside it."""
    todo: list[ast.AST] = list(ast.iter_child_nodes(outer))
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.expr):
            todo += ast.iter_child_nodes(node)


def stored_outside_loops(stmt: ast.stmt) -> set[str]:
    """Names that a statement assigns outside any loop."""
    return set() if isinstance(stmt, ast.For | ast.While) else stored(stmt)
