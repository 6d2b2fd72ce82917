"""Syntax tree of an expression to the typed form: an integer or a condition."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import reduce
from typing import NoReturn

from swizzle_sim.swizzle import form
from swizzle_sim.swizzle.form import Binary, Compare, Connect, Int, Name, Not, Select, Unary
from swizzle_sim.swizzle.rules import (
    BINARY_OPS,
    CALL_HINT,
    COMPARE_OPS,
    FUNCTIONS,
    INT32_MAX,
    INT32_MIN,
    MAX_NAME_LENGTH,
    MAX_NODES,
    RESERVED,
    refusal,
)
from swizzle_sim.swizzle.source import Source

_CONDITIONS = (Compare, Connect, Not)


class ExpressionReader:
    """Read expressions of one source.

    A part that stands for two (the operand of ``abs``, the middle of ``a < b < c``) is read twice, and every reading
    is counted, so that a short text cannot grow into a huge form.
    """

    def __init__(self, source: Source):
        self.source = source
        self._read = 0

    def integer(self, node: ast.expr) -> form.Expr:
        """Read an expression as a number; a condition becomes 1 or 0."""
        return self._number(node, self.either(node))

    def _number(self, node: ast.expr, value: form.Expr | form.Cond) -> form.Expr:
        if not isinstance(value, _CONDITIONS):
            return value
        if isinstance(node, ast.BoolOp):
            self._check_connective(node)
        return Select(value, Int(1), Int(0))

    def condition(self, node: ast.expr) -> form.Cond:
        """Read an expression as a condition; a number becomes ``number != 0``."""
        value = self.either(node)
        return value if isinstance(value, _CONDITIONS) else Compare("!=", value, Int(0))

    def either(self, node: ast.expr) -> form.Expr | form.Cond:
        """Read an expression as what it is by itself."""
        self._read += 1
        if self._read > MAX_NODES:
            self.refuse(node, f"the text stands for more than {MAX_NODES} operations: make it shorter", "limit")
        reader = _READERS.get(type(node))
        if reader is None:
            self.refuse(node, refusal(node))
        return reader(self, node)

    def refuse(self, node: ast.AST, message: str, code: str = "node") -> NoReturn:
        """Raise a `LanguageError` at a node."""
        self.source.refuse_node(node, message, code)

    def name(self, node: ast.AST, name: str) -> str:
        """Return a variable's name if it is one that every back end can spell."""
        if name.startswith("__"):
            self.refuse(node, f"{name[:40]!r}: names with two leading underscores are not in the language", "name")
        if len(name) > MAX_NAME_LENGTH:
            self.refuse(node, f"a name has at most {MAX_NAME_LENGTH} characters, this one {len(name)}", "limit")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            self.refuse(node, f"{name!a}: names are ASCII letters, digits and underscores", "name")
        if name in RESERVED:
            self.refuse(node, f"{name!r} is a function or module of the language, not a variable: rename it", "name")
        return name

    def _name(self, node: ast.Name) -> form.Expr:
        return Name(self.name(node, node.id))

    def _constant(self, node: ast.Constant) -> form.Expr:
        if not isinstance(node.value, int):
            self.refuse(node, refusal(node))
        return self._literal(node, int(node.value))

    def _literal(self, node: ast.expr, value: int) -> Int:
        if not INT32_MIN <= value <= INT32_MAX:
            self.refuse(node, f"the literal does not fit a signed 32-bit integer ({INT32_MIN}..{INT32_MAX})", "limit")
        return Int(value)

    def _unary(self, node: ast.UnaryOp) -> form.Expr | form.Cond:
        if isinstance(node.op, ast.Not):
            return Not(self.condition(node.operand))
        if isinstance(node.op, ast.USub):
            operand = node.operand
            if isinstance(operand, ast.Constant) and type(operand.value) is int:
                return self._literal(node, -operand.value)  # so that -2147483648 can be written
            return _negated(self.integer(operand))
        if isinstance(node.op, ast.Invert):
            value = self.either(node.operand)
            if isinstance(value, _CONDITIONS):  # -2 in Python, "not" in Triton
                self.refuse(node, "'~' of a condition means different things in Python and Triton: use not")
            return Unary("~", value)
        self.refuse(node, refusal(node.op))

    def _binary(self, node: ast.BinOp) -> form.Expr | form.Cond:
        op = BINARY_OPS.get(type(node.op))
        if op is None:
            self.refuse(node, refusal(node.op))
        left, right = self.either(node.left), self.either(node.right)
        if op in ("&", "|") and isinstance(left, _CONDITIONS) and isinstance(right, _CONDITIONS):
            return Connect("and" if op == "&" else "or", left, right)
        return Binary(op, self._number(node.left, left), self._number(node.right, right))

    def _compare(self, node: ast.Compare) -> form.Cond:
        parts: list[form.Cond] = []
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            if type(op) not in COMPARE_OPS:
                self.refuse(node, refusal(op))
            parts.append(Compare(COMPARE_OPS[type(op)], self.integer(left), self.integer(right)))
            left = right
        return reduce(lambda a, b: Connect("and", a, b), parts[1:], parts[0])

    def _connect(self, node: ast.BoolOp) -> form.Cond:
        op = "and" if isinstance(node.op, ast.And) else "or"
        parts = [self.condition(value) for value in node.values]
        return reduce(lambda a, b: Connect(op, a, b), parts[1:], parts[0])

    def _check_connective(self, node: ast.BoolOp) -> None:
        """Refuse ``a or b`` of numbers used as a number: Python gives an operand, a GPU gives 0 or 1."""
        for value in node.values:
            if isinstance(value, ast.BoolOp):
                self._check_connective(value)
            elif not isinstance(self.either(value), _CONDITIONS):
                self.refuse(value, "'and'/'or' of numbers used as a number: compare first (a != 0), or use tl.where")

    def _select(self, node: ast.IfExp) -> form.Expr:
        return Select(self.condition(node.test), self.integer(node.body), self.integer(node.orelse))

    def _call(self, node: ast.Call) -> form.Expr:
        called = spelled(node.func)
        function = FUNCTIONS.get(called)
        if called in ("divmod", "range", "tl.range", "tl.static_range"):
            place = "'q, r = divmod(a, b)'" if called == "divmod" else f"'for i in {called}(...)'"
            self.refuse(node, f"{called}() may only stand in {place}", "call")
        if function is None:
            self.refuse(node, f"{called[:60] or 'this call'} is not a function of the language: {CALL_HINT}", "call")
        if function in ("program_id", "num_programs"):
            return Name(f"{function}({self._axis(node, called)})")
        counts = {"cdiv": (2, 2), "min": (2, 64), "max": (2, 64), "abs": (1, 1), "int": (1, 1), "where": (3, 3)}
        self.arguments(node, called, *counts[function])
        return self._apply(function, node.args)

    def _apply(self, function: str, args: list[ast.expr]) -> form.Expr:
        if function == "where":
            return Select(self.condition(args[0]), self.integer(args[1]), self.integer(args[2]))
        if function == "int":
            return self.integer(args[0])
        if function == "abs":
            return Binary("max", self.integer(args[0]), _negated(self.integer(args[0])))
        values = [self.integer(arg) for arg in args]
        return reduce(lambda a, b: Binary(function, a, b), values[1:], values[0])

    def arguments(self, node: ast.Call, called: str, least: int, most: int) -> None:
        """Refuse a call with keywords, unpacking or the wrong number of arguments."""
        if node.keywords:
            self.refuse(node, f"{called}() takes its arguments by position", "call")
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            self.refuse(node, f"{called}() takes {wanted} arguments, not {len(node.args)}", "call")

    def _axis(self, node: ast.Call, called: str) -> int:
        given = [*node.args, *(k.value for k in node.keywords if k.arg == "axis")]
        if len(given) == len(node.args) + len(node.keywords) == 1:
            axis = given[0]
            if isinstance(axis, ast.Constant) and type(axis.value) is int and 0 <= axis.value <= 2:
                return axis.value
        self.refuse(node, f"{called}() takes one axis, the literal 0, 1 or 2", "call")


def _negated(value: form.Expr) -> form.Expr:
    """Minus a value, as a literal where it is one and fits."""
    return Int(-value.value) if isinstance(value, Int) and value.value > INT32_MIN else Unary("-", value)


def spelled(node: ast.expr) -> str:
    """Return ``f`` or ``tl.f`` as it was written, or nothing for any other callee."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


_READERS: dict[type[ast.expr], Callable[..., form.Expr | form.Cond]] = {
    ast.Name: ExpressionReader._name,
    ast.Constant: ExpressionReader._constant,
    ast.UnaryOp: ExpressionReader._unary,
    ast.BinOp: ExpressionReader._binary,
    ast.Compare: ExpressionReader._compare,
    ast.BoolOp: ExpressionReader._connect,
    ast.IfExp: ExpressionReader._select,
    ast.Call: ExpressionReader._call,
}
