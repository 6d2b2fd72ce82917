"""Counts of tiles that a kernel works out from its sizes: its launch grid, and its text in the grid's own counts."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection
from typing import Any

from swizzle_sim.language.ir import GRID_NAMES
from swizzle_sim.triton_source.definitions import Definitions
from swizzle_sim.triton_source.slices import assign, loaded
from swizzle_sim.triton_source.source_file import defaults_of, parameters_of

_OF_ROWS, _OF_COLUMNS = "of_rows", "of_columns"


def two_quotients(function: ast.FunctionDef, body: list[ast.stmt], fields: Collection[str] = ()) -> str:
    """Product of the two ``cdiv`` of four parameters that statements hold; empty where they are others, or more."""
    counts = list(_definitions(function, body, fields).quotients())
    names = {name for one in counts for name in loaded(one)} - {"tl", "cdiv"}
    if len(counts) != 2 or len(names) != 4:
        return ""
    return ast.unparse(ast.BinOp(counts[0], ast.Mult(), counts[1]))  # with the brackets that a quotient needs


def in_grid_counts(
    function: ast.FunctionDef, body: list[ast.stmt], launch: str, fields: Collection[str] = ()
) -> list[ast.stmt]:
    """Statements that read ``num_pid_m`` and ``num_pid_n`` where they worked out the factors of a launch."""
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


def without_counts_read(function: ast.FunctionDef) -> ast.FunctionDef:
    """A function without ``n = tl.load(n_ptr)``, for which ``n`` is a size: one value of memory for all workgroups.

    Only of what parameters alone address, and of a name that is assigned once.
    """
    own = {one.arg for one in parameters_of(function)}
    stores = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]

    def is_read(stmt: ast.stmt) -> bool:
        match stmt:
            case ast.Assign([ast.Name(name)], ast.Call(func, [at], [])) if ast.unparse(func) == "tl.load":
                return stores.count(name) == 1 and name not in own and loaded(at) <= own and not _calls(at)
        return False

    left = copy.copy(function)
    left.body = [stmt for stmt in function.body if not is_read(stmt)]
    return left


def without_flags(function: ast.FunctionDef) -> ast.FunctionDef:
    """A function without ``if FLAG: N = OTHER``, after which ``N`` is a size of all workgroups as it was before.

    Only where parameters alone decide it, nothing else assigns ``N``, and nothing reads it before. A name of the grid
    means what was launched.
    """
    own = {one.arg for one in parameters_of(function)} - defaults_of(function).keys() - {*GRID_NAMES}
    stores = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    fixed = {one.arg for one in parameters_of(function)} - {*stores}
    kept: list[ast.stmt] = []
    for stmt in function.body:
        match stmt:
            case ast.If(test, [ast.Assign([ast.Name(name)], value)], []) if (
                name in own and stores.count(name) == 1 and loaded(test) | loaded(value) <= fixed
                and not _calls(test) and not _calls(value) and not any(name in loaded(one) for one in kept)
            ):  # fmt: skip
                continue
        kept.append(stmt)
    left = copy.copy(function)
    left.body = kept
    return left


def _calls(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


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
