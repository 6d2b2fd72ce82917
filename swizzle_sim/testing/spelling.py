"""A Triton file's own spelling brought to that of the language: imports by any alias, casts and hints left out."""

from __future__ import annotations

import ast

_MODULES = ("triton.language", "triton.experimental.gluon.language")
_HINTS = ("multiple_of", "max_contiguous", "max_constancy")
_NOTES = ("assume", "static_assert", "static_print", "device_assert", "device_print", "debug_barrier")
_INTEGERS = ("int32", "int64", "uint32")


class Spelling(ast.NodeTransformer):
    """Rewrites a tree in place to say ``tl.``, without integer casts and compiler hints.

    Parameters
    ----------
    module : ast.Module
        Its imports say what the names mean.
    """

    def __init__(self, module: ast.Module):
        self._names: dict[str, str] = {}
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                for one in node.names:
                    self._names[one.asname or one.name.partition(".")[0]] = (
                        one.name if one.asname else one.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for one in node.names:
                    self._names[one.asname or one.name] = f"{node.module}.{one.name}"

    def dotted(self, node: ast.AST) -> str:
        """What a name or attribute means, in full; nothing for anything else."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            whole = self.dotted(node.value)
            return f"{whole}.{node.attr}" if whole else ""
        return ""

    def language_name(self, node: ast.AST) -> str:
        """``program_id`` for whatever means ``triton.language.program_id``; nothing where it is of another module."""
        whole, _, last = self.dotted(node).rpartition(".")
        return last if whole in (*_MODULES, *(f"{module}.core" for module in _MODULES), "tl") else ""

    def is_jit(self, node: ast.FunctionDef) -> bool:
        """Whether a function is decorated as a Triton (or Gluon) function."""
        called = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
        return any(self.dotted(one).rpartition(".")[2] == "jit" for one in called)

    def is_note(self, node: ast.stmt) -> bool:
        """Whether a statement only tells the compiler or the reader something."""
        return isinstance(node, ast.Expr) and (
            isinstance(node.value, ast.Constant)
            or (isinstance(node.value, ast.Call) and self.language_name(node.value.func) in _NOTES)
        )

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave out casts between integers and hints; spell the rest as the language does."""
        called = self.language_name(node.func)
        if called in _HINTS or (called == "cast" and self._is_integer(node.args[1:2])):
            return self.visit(node.args[0]) if node.args else node
        if called == "constexpr" and len(node.args) == 1:
            return self.visit(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to" and self._is_integer(node.args):
            return self.visit(node.func.value)
        self.generic_visit(node)
        if called == "swizzle2d":  # a function of `module`, put in place as the file's own are
            node.func = ast.copy_location(ast.Name(called, ast.Load()), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Spell whatever is of the language's module as ``tl.name``."""
        called = self.language_name(node)
        if called:
            return ast.copy_location(ast.Attribute(ast.Name("tl", ast.Load()), called, node.ctx), node)
        if self.dotted(node) == "triton.cdiv":
            return ast.copy_location(ast.Name("cdiv", ast.Load()), node)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A name imported from the language's module itself."""
        called = self.language_name(node) if node.id in self._names else ""
        if called:
            return ast.copy_location(ast.Attribute(ast.Name("tl", ast.Load()), called, node.ctx), node)
        return ast.copy_location(ast.Name("cdiv", node.ctx), node) if self.dotted(node) == "triton.cdiv" else node

    def _is_integer(self, args: list[ast.expr]) -> bool:
        return len(args) == 1 and self.language_name(args[0]) in _INTEGERS
