"""Triton functions in the spelling of the closed language: ``tl.name``, without integer casts and hints."""

from __future__ import annotations

import ast
import copy

from swizzle_sim.triton_source.aliases import Aliases
from swizzle_sim.triton_source.source_file import SourceFile

_HINTS = ("multiple_of", "max_contiguous", "max_constancy")
_INTEGERS = ("int32", "int64", "uint32")
# tl.swizzle2d as Triton's documentation defines it: groups of size_g rows, a group column by column.
_BUILTIN = """
def swizzle2d(i, j, size_i, size_j, size_g):
    linear = i * size_j + j
    group = linear // (size_g * size_j)
    first = group * size_g
    rows = min(size_i - first, size_g)
    within = linear % (size_g * size_j)
    return first + within % rows, within // rows
"""


def canonical_functions(source: SourceFile) -> dict[str, ast.FunctionDef]:
    """Copies of the Triton functions of a file in canonical spelling, with the language's own ``swizzle2d``."""
    builtin = ast.parse(_BUILTIN).body[0]
    assert isinstance(builtin, ast.FunctionDef)
    found = {"swizzle2d": builtin}
    spelling = Canonical(source.aliases)
    for name, function in source.kernels.items():
        found[name] = copy.copy(function)
        found[name].body = [spelling.visit(copy.deepcopy(stmt)) for stmt in function.body]
    return found


class Canonical(ast.NodeTransformer):
    """Respells a tree in place.

    Parameters
    ----------
    aliases : Aliases
        Of the file.
    """

    def __init__(self, aliases: Aliases):
        self.aliases = aliases

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave out casts between integers and hints; spell the rest as the language does."""
        called = self.aliases.language_name(node.func)
        if called in _HINTS or (called == "cast" and self._is_integer(node.args[1:2])):
            return self.visit(node.args[0]) if node.args else node
        if called == "constexpr" and len(node.args) == 1:
            return self.visit(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to" and self._is_integer(node.args):
            return self.visit(node.func.value)
        self.generic_visit(node)
        if called == "swizzle2d":  # put in place as the file's own functions are
            node.func = ast.copy_location(ast.Name(called, ast.Load()), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Spell whatever is of the language's module as ``tl.name``."""
        return self._respelled(node, node.ctx) or self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Spell a name imported from the language's module itself as ``tl.name``."""
        return self._respelled(node, node.ctx) or node

    def _respelled(self, node: ast.expr, context: ast.expr_context) -> ast.AST | None:
        called = self.aliases.language_name(node)
        if called:
            return ast.copy_location(ast.Attribute(ast.Name("tl", ast.Load()), called, context), node)
        if self.aliases.dotted(node) == "triton.cdiv":
            return ast.copy_location(ast.Name("cdiv", context), node)
        return None

    def _is_integer(self, args: list[ast.expr]) -> bool:
        return len(args) == 1 and self.aliases.language_name(args[0]) in _INTEGERS
