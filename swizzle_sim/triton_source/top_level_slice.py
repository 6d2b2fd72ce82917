"""The statements of a file's top level that given names need: what a function takes to be defined, and nothing else."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from swizzle_sim.triton_source.bindings import bound
from swizzle_sim.triton_source.slices import loaded

LAST = sys.maxsize  # a line after all others
BUILTINS = set(dir(builtins))
CHANGES = ("append", "extend", "insert", "update", "setdefault", "add", "pop", "remove", "clear")
KeepsDecorator = Callable[[ast.FunctionDef], list[ast.expr]]


class TopLevelSlice:
    """What each statement at a file's top level binds and reads."""

    def __init__(self, tree: ast.Module, decorators: KeepsDecorator):
        self.decorators = decorators
        self.leaves: list[_Leaf] = []
        self.stars: list[ast.ImportFrom] = []
        self._collect(tree.body, set())
        self.names = {name for leaf in self.leaves for name in leaf.binds}
        self.body = tree.body

    def _collect(self, body: Iterable[ast.stmt], tests: set[str]) -> None:
        for stmt in body:
            match stmt:
                case ast.If(test, inner, orelse):
                    self._collect([*inner, *orelse], tests | loaded(test))
                case ast.ImportFrom(names=[ast.alias(name="*")]):
                    self.stars.append(stmt)
                case _:
                    now, later = self._reads(stmt)
                    self.leaves.append(_Leaf(stmt, _bound(stmt), now | tests, later))

    def of(self, wanted: Iterable[str], line: int = LAST) -> tuple[list[ast.stmt], set[str]]:
        """Statements that names need, in text order, and all the names that these read."""
        todo, seen, kept = [(name, line) for name in wanted], set(), set()
        while todo:
            name, until = todo.pop()
            if (name, until) in seen:
                continue
            seen.add((name, until))
            for leaf in self.leaves:
                if name in leaf.binds and leaf.stmt.lineno < until and id(leaf.stmt) not in kept:
                    kept.add(id(leaf.stmt))
                    todo += [(read, leaf.stmt.lineno) for read in leaf.now]
                    todo += [(read, LAST) for read in leaf.later]
        needed = {name for name, _ in seen}
        return list(_pruned(self.body, kept, needed)), needed

    def _reads(self, stmt: ast.stmt) -> tuple[set[str], set[str]]:
        skipped: set[int] = set()
        if isinstance(stmt, ast.FunctionDef):
            skipped = {id(one) for one in stmt.decorator_list} - {id(one) for one in self.decorators(stmt)}
        now, later = reads_of(stmt, skipped)
        return now - BUILTINS, later - BUILTINS


def undefined(tree: ast.Module, name: str) -> str:
    """Words on why a file, which did run, has no function of a name: the condition that it stands under."""
    for one in ast.walk(tree):
        if isinstance(one, ast.If):
            for part, word in ((one.body, "if"), (one.orelse, "unless")):
                if any(isinstance(stmt, ast.FunctionDef) and stmt.name == name for stmt in part):
                    return f":{one.lineno}: {name} is defined {word} {ast.unparse(one.test)}, which does not hold here"
    return f" holds no function {name}"


class _Leaf(NamedTuple):
    """A statement, the names that it binds, and those that it reads at once and in functions that are called later."""

    stmt: ast.stmt
    binds: set[str]
    now: set[str]
    later: set[str]


def reads_of(node: ast.AST, skipped: Collection[int] = ()) -> tuple[set[str], set[str]]:
    """Names that a tree reads at once, and those that it reads in the bodies of its functions."""
    now: set[str] = set()
    later: set[str] = set()
    bodies: list[ast.AST] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        bodies = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    for one in ast.iter_child_nodes(node):
        if id(one) in skipped:
            continue
        first, second = reads_of(one, skipped)
        if one in bodies:
            later |= first | second
        else:
            now, later = now | first, later | second
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        now.add(node.id)
    if bodies:
        own = {one.arg for one in ast.walk(getattr(node, "args")) if isinstance(one, ast.arg)}  # noqa: B009
        outside = {name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names}
        own |= {
            one.id
            for body in bodies
            for one in ast.walk(body)
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
        }
        later -= own - outside
    return now, later


def _bound(stmt: ast.stmt) -> set[str]:
    """Names that a statement binds or changes, with all that stands in what it changes a part of."""
    match stmt:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), attr))) if attr in CHANGES:
            return {name}
        case ast.Expr() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {name for name, _ in bound([stmt])}
    parts = [one.value for one in ast.walk(stmt) if isinstance(one, ast.Subscript | ast.Attribute)
             and isinstance(one.ctx, ast.Store)]  # fmt: skip
    roots = {_root(one) for one in parts} | {name for one in ast.walk(stmt) if isinstance(one, ast.Expr)
                                             for name in _bound(one)}  # fmt: skip
    return {name for name, _ in bound([stmt])} | (roots - {""})


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _pruned(body: Iterable[ast.stmt], kept: set[int], needed: set[str]) -> Iterator[ast.stmt]:
    for stmt in body:
        if isinstance(stmt, ast.If):
            then, other = list(_pruned(stmt.body, kept, needed)), list(_pruned(stmt.orelse, kept, needed))
            if then or other:
                whole = ast.If(stmt.test, then or [ast.copy_location(ast.Pass(), stmt)], other)
                yield ast.copy_location(whole, stmt)
        elif id(stmt) in kept:
            yield _with_needed(stmt, needed)


def _with_needed(stmt: ast.stmt, needed: set[str]) -> ast.stmt:
    """Return an import with only the names that are needed; any other statement as it is."""
    match stmt:
        case ast.ImportFrom(module, names, level):
            used = [one for one in names if (one.asname or one.name) in needed]
            return ast.copy_location(ast.ImportFrom(module, used, level), stmt)
        case ast.Import(names):
            used = [one for one in names if (one.asname or one.name.partition(".")[0]) in needed]
            return ast.copy_location(ast.Import(used), stmt)
    return stmt
