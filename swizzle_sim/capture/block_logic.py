"""``and``, ``or`` and ``not`` of blocks in Triton's interpreter, elementwise as the compiler has them.

Python would ask a block for its truth: the interpreter takes any block as true, so that ``a and b`` is ``b`` there. Of
scalars Python's own rules stay.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

JOINED, NEGATED = "_joined_as_compiled", "_negated_as_compiled"


def join_blocks(interpreter: Any) -> None:
    """Have functions that are interpreted from now on join blocks elementwise."""
    tensor = interpreter.tl.tensor

    def joined(method: str, first: Any, *rest: Callable[[], Any]) -> Any:
        for other in rest:
            if isinstance(first, tensor) and first.shape:
                first = getattr(first, method)(other())
            elif bool(first) == (method == "logical_and"):
                first = other()
        return first

    def negated(value: Any) -> Any:
        return value == 0 if isinstance(value, tensor) and value.shape else not value

    vars(interpreter).update({JOINED: joined, NEGATED: negated})  # which it puts beside each function
    transformer = interpreter.ASTTransformer
    transformer.visit_BoolOp, transformer.visit_UnaryOp = _bool_op, _unary_op


def _bool_op(self: ast.NodeTransformer, node: ast.BoolOp) -> ast.AST:
    """``a and b`` as a call, each operand but the first behind a lambda: evaluated where Python would."""
    self.generic_visit(node)
    method = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
    nothing = ast.arguments([], [], None, [], [], None, [])
    later = [ast.Lambda(nothing, value) for value in node.values[1:]]
    return _called(JOINED, [ast.Constant(method), node.values[0], *later], node)


def _unary_op(self: ast.NodeTransformer, node: ast.UnaryOp) -> ast.AST:
    self.generic_visit(node)
    return _called(NEGATED, [node.operand], node) if isinstance(node.op, ast.Not) else node


def _called(name: str, given: list[ast.expr], node: ast.AST) -> ast.AST:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), given, []), node)
