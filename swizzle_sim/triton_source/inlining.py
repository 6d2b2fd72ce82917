"""Backward slice of a straight prologue, and calls of the file's own Triton functions replaced by what they compute."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import NoReturn

from swizzle_sim.language.rules import RESERVED
from swizzle_sim.triton_source.slices import assign, loaded, slice_of, stored
from swizzle_sim.triton_source.source_file import defaults_of, parameters_of
from xcd_model.errors import LanguageError

_MOST_CALLS = 50  # inlined in one prologue; a recursion ends here


class Inliner:
    """Puts the bodies of called functions in front of the statements that call them."""

    def __init__(self, functions: Mapping[str, ast.FunctionDef], filename: str, caller: ast.FunctionDef):
        self.functions, self.filename = functions, filename
        self.own = {name for stmt in caller.body for name in stored(stmt)} | {one.arg for one in parameters_of(caller)}
        self._open = {name for stmt in caller.body for name in loaded(stmt)}  # and those of headers' functions so far
        self._calls = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return statements without calls of the file's functions."""
        return [out for stmt in body for out in self._statement(stmt)]

    def returned(self, function: ast.FunctionDef) -> tuple[list[ast.stmt], list[str]]:
        """Statements that a function's answer depends on, and the names that hold it."""
        body, count = self._tail(function.body, function)
        names = [f"returned_{k}" for k in range(count)]
        return slice_of(body, set(names))[0], names

    def refuse(self, node: ast.AST, message: str, code: str) -> NoReturn:
        """Raise a `LanguageError` at a node of the file."""
        raise LanguageError(message, filename=self.filename, line=getattr(node, "lineno", 0), column=1, code=code)

    def _statement(self, stmt: ast.stmt) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        whole: ast.stmt
        match stmt:
            case ast.If(test, body, orelse):
                whole = ast.If(self._expression(test, before), self.block(body), self.block(orelse))
            case ast.For(target, over, body, []):
                whole = ast.For(target, self._expression(over, before), self.block(body), [])
            case ast.Assign([ast.Tuple()], ast.IfExp(test, yes, no)):  # one tuple or another
                sides = [ast.copy_location(ast.Assign(stmt.targets, value), stmt) for value in (yes, no)]
                return self._statement(ast.copy_location(ast.If(test, [sides[0]], [sides[1]]), stmt))
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() if stmt.value is not None:
                whole = copy.copy(stmt)
                whole.value = self._expression(stmt.value, before)
            case _:
                return [stmt]
        return [*before, ast.copy_location(whole, stmt)]

    def _expression(self, node: ast.expr, before: list[ast.stmt]) -> ast.expr:
        return _Calls(self, before).visit(copy.deepcopy(node))

    def call(self, node: ast.Call, before: list[ast.stmt]) -> ast.expr:
        """Put the body of a called function into ``before``; returns what stands for the call."""
        assert isinstance(node.func, ast.Name)
        function = self.functions[node.func.id]
        self._calls += 1
        if self._calls > _MOST_CALLS:
            self.refuse(node, f"more than {_MOST_CALLS} calls of this file's functions in one prologue", "limit")
        tag = f"{function.name.rpartition('.')[2]}_{self._calls}_"
        body, results = self.returned(function)
        values = self._bound(node, function)
        self._refuse_hidden(node, function, body, values)
        before += [assign(tag + name, value, node) for name, value in values.items()]
        rename = _Rename(values.keys() | {name for stmt in body for name in stored(stmt)}, tag)
        before += self.block([_at(rename.visit(copy.deepcopy(stmt)), node) for stmt in body])
        loads: list[ast.expr] = [ast.copy_location(ast.Name(tag + name, ast.Load()), node) for name in results]
        return loads[0] if len(loads) == 1 else ast.copy_location(ast.Tuple(loads, ast.Load()), node)

    def _refuse_hidden(
        self, node: ast.Call, function: ast.FunctionDef, body: list[ast.stmt], values: Mapping[str, ast.expr]
    ) -> None:
        """Refuse a function that reads a name from outside which the caller has for something else."""
        if "." in function.name or getattr(function, "is_lambda", False):  # whose outer names are the caller's
            return
        local = values.keys() | {name for stmt in body for name in stored(stmt)}
        read = {name for stmt in body for name in loaded(stmt)} - local
        read |= {name for one in (*function.args.defaults, *function.args.kw_defaults) for name in loaded(one)}
        hidden = read & self.own
        if getattr(function, "is_of_header", False):  # its names are fields of who knows which record
            hidden |= read & self._open - {*RESERVED}
            self._open |= read
        for name in sorted(hidden - self.functions.keys()):
            said = f"{name}, which {function.name} reads, is another name of the caller: not modelled"
            self.refuse(node, said, "node")

    def _tail(self, body: list[ast.stmt], function: ast.FunctionDef) -> tuple[list[ast.stmt], int]:
        """Turn each ``return`` into an assignment; what follows an ``if`` that returns becomes its other side."""
        if (refusal := getattr(function, "refusal", None)) is not None:
            raise refusal
        done: list[ast.stmt] = []
        body = [stmt for stmt in body if not isinstance(stmt, ast.FunctionDef | ast.ClassDef)]
        for k, stmt in enumerate(body):
            if isinstance(stmt, ast.Return):
                if stmt.value is None:
                    self.refuse(stmt, f"{function.name} returns no value here", "result")
                if isinstance(stmt.value, ast.IfExp) and isinstance(stmt.value.body, ast.Tuple):
                    sides = [ast.copy_location(ast.Return(one), stmt) for one in (stmt.value.body, stmt.value.orelse)]
                    whole = ast.copy_location(ast.If(stmt.value.test, [sides[0]], [sides[1]]), stmt)
                    rest, count = self._tail([whole], function)
                    return [*done, *rest], count
                values = stmt.value.elts if isinstance(stmt.value, ast.Tuple) else [stmt.value]
                width = self._width(stmt.value) if len(values) == 1 else len(values)
                if width > len(values):  # what it calls returns several
                    return [*done, _unpacked(stmt, width)], width
                return [*done, *(assign(f"returned_{i}", value, stmt) for i, value in enumerate(values))], len(values)
            if not any(isinstance(one, ast.Return) for one in ast.walk(stmt)):
                done.append(stmt)
                continue
            if not isinstance(stmt, ast.If):
                self.refuse(stmt, f"{function.name} returns from inside this statement: return after it", "node")
            rest = body[k + 1 :]
            then, n_then = self._tail([*stmt.body, *rest], function)
            other, n_other = self._tail([*stmt.orelse, *rest], function)
            if n_then != n_other:
                self.refuse(
                    stmt, f"{function.name} returns {n_then} values on one path and {n_other} on another", "result"
                )
            return [*done, ast.copy_location(ast.If(stmt.test, then, other), stmt)], n_then
        self.refuse(function, f"{function.name} has a path without a return", "result")

    def _width(self, value: ast.expr) -> int:
        """How many values an expression has: several, where it calls a function that returns them."""
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
            return 1
        if value.func.id == "divmod":
            return 2
        self._calls += 1
        known = self.functions.get(value.func.id) if self._calls <= _MOST_CALLS else None
        return self._tail(known.body, known)[1] if known is not None else 1

    def _bound(self, node: ast.Call, function: ast.FunctionDef) -> dict[str, ast.expr]:
        """Value of each parameter in a call."""
        names = [one.arg for one in parameters_of(function) if one.arg != "self"]
        values = {**defaults_of(function), **dict(zip(names, node.args, strict=False))}
        values |= {one.arg or "**": one.value for one in node.keywords}
        if set(values) != set(names) or len(node.args) > len(names):
            self.refuse(node, f"this call does not fit {function.name}({', '.join(names)})", "call")
        return {name: values[name] for name in names}


def _unpacked(stmt: ast.Return, width: int) -> ast.stmt:
    """``returned_0, returned_1 = call`` for a return of a call."""
    names: list[ast.expr] = [ast.copy_location(ast.Name(f"returned_{k}", ast.Store()), stmt) for k in range(width)]
    assert stmt.value is not None
    target = ast.copy_location(ast.Tuple(names, ast.Store()), stmt)
    return ast.copy_location(ast.Assign([target], stmt.value), stmt)


def _at(stmt: ast.stmt, call: ast.AST) -> ast.stmt:
    """Statement of another file at the line of the call, as a reader of this file looks for it there."""
    for node in ast.walk(stmt):
        if getattr(node, "lineno", 1) == 0:
            ast.copy_location(node, call)
    return stmt


class _Calls(ast.NodeTransformer):
    """Replaces calls of known functions, the innermost first."""

    def __init__(self, inliner: Inliner, before: list[ast.stmt]):
        self.inliner, self.before = inliner, before

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self.inliner.functions:
            return self.inliner.call(node, self.before)
        return node


class _Rename(ast.NodeTransformer):
    """Puts a tag before a called function's own names."""

    def __init__(self, names: set[str], tag: str):
        self.names, self.tag = names, tag

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(self.tag + node.id, node.ctx), node) if node.id in self.names else node
