"""Counts of tiles that a kernel works out from its sizes: its launch grid, and its text in the grid's own counts."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection
from typing import Any

from swizzle_sim.triton_source.definitions import Definitions
from swizzle_sim.triton_source.inlining import assign, loaded

_OF_ROWS, _OF_COLUMNS = "of_rows", "of_columns"


def two_quotients(function: ast.FunctionDef, body: list[ast.stmt], fields: Collection[str] = ()) -> str:
    """Product of the two ``cdiv`` of four parameters that statements hold; empty where they are others, or more.

    Parameters
    ----------
    function : ast.FunctionDef
        Whose parameters the sizes are.
    body : list of ast.stmt
        Of it, with helpers put in place.
    fields : collection of str
        Of its object, which are as parameters.
    """
    counts = list(_definitions(function, body, fields).quotients())
    names = {name for one in counts for name in loaded(one)} - {"tl"}
    return " * ".join(map(ast.unparse, counts)) if len(counts) == 2 and len(names) == 4 else ""


def in_grid_counts(
    function: ast.FunctionDef, body: list[ast.stmt], launch: str, fields: Collection[str] = ()
) -> list[ast.stmt]:
    """Statements that read ``num_pid_m`` and ``num_pid_n`` where they worked out the factors of a launch.

    Parameters
    ----------
    function, body, fields
        As for `two_quotients`.
    launch : str
        Product of the counts of rows and columns of tiles, in parameters.

    Returns
    -------
    list of ast.stmt
        Empty where the launch is no product of two, or a size is read for anything else.
    """
    product = ast.parse(launch, mode="eval").body if launch else None
    if not (isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)):
        return []
    names = {ast.unparse(product.left): _OF_ROWS, ast.unparse(product.right): _OF_COLUMNS}
    counted = _Counted(_definitions(function, body, fields), names)
    found: list[ast.stmt] = [counted.visit(copy.deepcopy(stmt)) for stmt in body]
    place = body[0]
    return [
        assign(_OF_ROWS, ast.Name("num_pid_m", ast.Load()), place),
        assign(_OF_COLUMNS, ast.Name("num_pid_n", ast.Load()), place),
        *found,
    ]


def _definitions(function: ast.FunctionDef, body: list[ast.stmt], fields: Collection[str]) -> Definitions:
    """What names of statements mean, of those inside others, too."""
    flat = copy.copy(function)
    flat.body = [one for stmt in body for one in ast.walk(stmt) if isinstance(one, ast.Assign)]
    return Definitions(flat, fields)


class _Counted(ast.NodeTransformer):
    """Puts a name in place of each expression that means a count."""

    def __init__(self, definitions: Definitions, names: dict[str, str]):
        self.definitions, self.names = definitions, names

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Call | ast.BinOp):
            meaning = self.definitions.in_parameters(ast.unparse(node))
            name = self.names.get(ast.unparse(meaning)) if meaning is not None else None
            if name:
                return ast.copy_location(ast.Name(name, ast.Load()), node)
        return self.generic_visit(node)
