"""What the compiler has and Triton's interpreter has not: methods of scalars and aggregates, logic of blocks."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable
from typing import Any

METHODS = ("to", "cast", "broadcast_to", "expand_dims")  # of a tensor, called on arguments, loop variables and sums
NAME = "_swizzle_sim_tensor"
JOINED, NEGATED, LISTED = "_joined_as_compiled", "_negated_as_compiled", "_listed_as_compiled"


def give_scalars_methods(interpreter: Any) -> None:
    """Let ``x.to(...)`` hold of Python numbers in every kernel that is interpreted from now on."""
    if hasattr(interpreter, NAME):
        return

    def as_tensor(value: Any) -> Any:
        is_number = isinstance(value, bool | int | float)
        return interpreter.interpreter_semantic.to_tensor(value) if is_number else value

    def visit_call(transformer: Any, node: ast.Call) -> ast.AST:
        transformer.generic_visit(node)
        match node.func:
            case ast.Attribute(value, attr) if attr in METHODS and not isinstance(value, ast.Constant):
                node.func.value = ast.Call(ast.Name(NAME, ast.Load()), [value], [])
        return node

    setattr(interpreter, NAME, as_tensor)  # the interpreter hands its own globals to the kernels that it rewrites
    interpreter.ASTTransformer.visit_Call = visit_call


def give_aggregates_methods(interpreter: Any) -> None:
    """Let aggregates that are defined from now on keep their ``@triton.jit`` methods, and take numbers for tensors."""
    core: Any = importlib.import_module("triton.language.core")
    interpreted = interpreter.InterpretedFunction
    if not isinstance(core.JITCallable, tuple):
        core.JITCallable = (core.JITCallable, interpreted)
        interpreted.__get__ = lambda self, one, owner=None: self if one is None else functools.partial(self, one)
        core._aggregate = _lenient(core._aggregate, core.tensor, interpreter.interpreter_semantic)


def _lenient(aggregate: Any, tensor: type, semantic: Any) -> Any:
    """Decorator of aggregates whose fields for tensors take Python numbers, which the interpreter counts loops with."""

    @functools.wraps(aggregate)
    def decorate(cls: type) -> Any:
        made = aggregate(cls)
        strict, kinds = made.__setattr__, made.__annotations__

        def take(self: Any, name: str, value: Any) -> None:
            if isinstance(value, bool | int | float) and kinds.get(name) is tensor:
                value = semantic.to_tensor(value)
            strict(self, name, value)

        made.__setattr__ = take
        return made

    return decorate


def join_blocks(interpreter: Any) -> None:
    """Have ``and``, ``or`` and ``not`` join blocks elementwise in functions that are interpreted from now on.

    Python would ask a block for its truth: the interpreter takes any block as true, so that ``a and b`` is ``b`` there.
    Of scalars Python's own rules stay.
    """
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

    names = {JOINED: joined, NEGATED: negated, LISTED: interpreter.tl.tuple}
    vars(interpreter).update(names)  # which it puts beside each function
    transformer = interpreter.ASTTransformer
    transformer.visit_BoolOp, transformer.visit_UnaryOp, transformer.visit_BinOp = _bool_op, _unary_op, _bin_op


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


def _bin_op(self: ast.NodeTransformer, node: ast.BinOp) -> ast.AST:
    """``[1] + x.shape`` with a tuple on its left, as the compiler makes of any list."""
    self.generic_visit(node)
    if isinstance(node.left, ast.List) and isinstance(node.op, ast.Add):
        node.left = _called(LISTED, [node.left], node.left)
    return node


def _called(name: str, given: list[ast.expr], node: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), given, []), node)
