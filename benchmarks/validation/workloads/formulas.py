"""Formulas of measured orders, as data: a few lines of integer arithmetic, read as syntax and never executed.

A formula is ``def f(pid, n, X=8)`` over a one-dimensional grid of ``n`` workgroups, or ``def f(pid, nm, nn, X=8)`` over
``nm`` x ``nn`` tiles, m fastest in the hardware's numbering. Its body is assignments and one return: of an id, or of
(m, n). What it returns may lie outside the grid, since measured kernels did that too; masks then left nothing to do.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xcd_model.errors import LanguageError

NOTHING = -1  # a workgroup whose tile lies outside the grid
PARAMETERS = (("pid", "n", "X"), ("pid", "nm", "nn", "X"))
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def is_formula(text: str) -> bool:
    """Whether a text is meant as a formula: the closed language of swizzles has no functions."""
    return text.lstrip().startswith(("def ", "lambda"))


def tiles_of(text: str, grid: tuple[int, ...], xcds: int) -> np.ndarray:
    """Tile that each hardware workgroup computes.

    Returns
    -------
    tile : (n_workgroups,) int64
        In the hardware's numbering, ``NOTHING`` where the formula leaves the grid.
    """
    function = _function(text)
    names = tuple(argument.arg for argument in function.args.args)
    if names not in PARAMETERS or len(names) != len(grid) + 2:
        raise _refuse(function, f"parameters {', '.join(names)} over a grid of {len(grid)} axes")
    values: dict[str, Any] = {"pid": np.arange(int(np.prod(grid)), dtype=np.int64), "X": xcds}
    values.update(zip(names[1:-1], grid, strict=True))
    for statement in function.body[:-1]:
        _assign(statement, values)
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        raise _refuse(last, "the last line is no return")
    found = _value(last.value, values)
    return _in_grid(found if isinstance(found, tuple) else (found,), grid, last)


def _function(text: str) -> ast.FunctionDef:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise LanguageError(f"not a formula: {error.msg}", filename="<formula>", line=error.lineno or 1) from None
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise LanguageError("not a formula: one function and nothing else", filename="<formula>", line=1)
    return tree.body[0]


def _assign(statement: ast.stmt, values: dict[str, Any]) -> None:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise _refuse(statement, "only assignments come before the return")
    target, found = statement.targets[0], _value(statement.value, values)
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    parts = found if isinstance(found, tuple) else (found,)
    if len(targets) != len(parts):
        raise _refuse(statement, f"{len(targets)} names for {len(parts)} values")
    for name, part in zip(targets, parts, strict=True):
        if not isinstance(name, ast.Name):
            raise _refuse(statement, "only names are assigned to")
        values[name.id] = part


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_value(part, values) for part in node.elts)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id in values:
        return values[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
    raise _refuse(node, f"{ast.unparse(node)!r} is no integer, name or operation of the language")


def _in_grid(found: tuple[Any, ...], grid: tuple[int, ...], node: ast.AST) -> np.ndarray:
    if len(found) != len(grid):
        raise _refuse(node, f"{len(found)} values for a grid of {len(grid)} axes")
    n = int(np.prod(grid))
    tile, inside, stride = np.zeros(n, np.int64), np.ones(n, bool), 1
    for value, side in zip(found, grid, strict=True):
        axis = np.broadcast_to(np.asarray(value, np.int64), (n,))
        inside &= (axis >= 0) & (axis < side)
        tile += axis * stride
        stride *= side
    return np.where(inside, tile, NOTHING)


def _refuse(node: ast.AST, why: str) -> LanguageError:
    return LanguageError(f"not a formula: {why}", filename="<formula>", line=getattr(node, "lineno", 1))
