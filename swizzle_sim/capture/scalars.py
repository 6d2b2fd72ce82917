"""What the compiler has and Triton's interpreter has not: tensor methods of scalars, methods of aggregates."""

from __future__ import annotations

import ast
import functools
import importlib
from typing import Any

METHODS = ("to", "cast", "broadcast_to", "expand_dims")  # of a tensor, called on arguments, loop variables and sums
NAME = "_swizzle_sim_tensor"


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
