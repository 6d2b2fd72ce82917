"""What the names of a file mean: Triton and its language under whatever name the file imports them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

LANGUAGES = ("triton.language", "triton.experimental.gluon.language")
_NOTES = ("assume", "static_assert", "static_print", "device_assert", "device_print", "debug_barrier")
_OTHER_COMPILERS = ("numba", "jax", "torch")  # whose ``jit`` makes no Triton function
_IDS = ("program_id", "num_programs")
# Names that ``from triton.language import *`` binds, as far as a prologue uses them.
_STARRED = {
    "arange", "assume", "cast", "cdiv", "constexpr", "load", "maximum", "minimum", "num_programs", "program_id",
    "store", "swizzle2d", "where", "int32", "int64", "uint32", "atomic_add", "atomic_cas", "make_tensor_descriptor",
}  # fmt: skip


class Aliases:
    """Dotted name that each name of a file stands for."""

    def __init__(self, module: ast.Module):
        self.names: dict[str, str] = {}
        self.top: dict[str, str] = {}  # those bound at the top level, which every function of the file sees
        for node in ast.walk(module):
            self.names.update(_imported(node))
        for stmt in top_level(module.body):
            self.top.update(_imported(stmt))
            match stmt:
                case ast.Assign([ast.Name(name)], ast.Name() | ast.Attribute() as value):
                    meaning = self.dotted(value)
                    if meaning.startswith("triton."):
                        self.names[name] = self.top[name] = meaning

    def dotted(self, node: ast.AST) -> str:
        """Full name of what a name or attribute means; empty for anything else."""
        if isinstance(node, ast.Name):
            if node.id not in self.names and node.id in _STARRED and f"{LANGUAGES[0]}.*" in self.names.values():
                return f"{LANGUAGES[0]}.{node.id}"
            return self.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            whole = self.dotted(node.value)
            return f"{whole}.{node.attr}" if whole else ""
        return ""

    def language_name(self, node: ast.AST) -> str:
        """``program_id`` for whatever means ``triton.language.program_id``; empty for names of other modules."""
        whole, _, last = self.dotted(node).rpartition(".")
        whole = whole.removesuffix(".core")
        # a user's module may hand the language on, from compat import tl, or ids of a wider type, package.triton_ids
        ours = whole.rpartition(".")[2] == "tl" or ("triton" in whole and last in _IDS)
        return last if whole in LANGUAGES or ours else ""

    def called(self, call: ast.Call) -> str:
        """Last part of the name of a called function, whatever module it is of."""
        if isinstance(call.func, ast.Attribute):
            return call.func.attr
        return self.dotted(call.func).rpartition(".")[2]

    def name_of(self, meaning: str) -> str | None:
        """Name at the top level that stands for a dotted name."""
        return next((name for name, what in self.top.items() if what == meaning), None)

    def jit_decorator(self, function: ast.FunctionDef) -> ast.expr | None:
        """Name in a decorator that makes a function one of Triton's (or Gluon's); None where there is none."""
        for one in function.decorator_list:
            # the decorator itself, with arguments or without, or what it is made of: @partial(triton.jit, ...)
            parts = [one.func, *one.args] if isinstance(one, ast.Call) else [one]
            for part in parts:
                if self.is_jit(part):
                    return part
        return None

    def is_jit(self, node: ast.AST) -> bool:
        """Whether an expression names Triton's (or Gluon's) ``jit``."""
        whole, _, last = self.dotted(node).rpartition(".")
        return last == "jit" and whole.partition(".")[0] not in _OTHER_COMPILERS

    def is_note(self, node: ast.stmt) -> bool:
        """Whether a statement is only a remark for the compiler or the reader."""
        return isinstance(node, ast.Expr) and (
            isinstance(node.value, ast.Constant)
            or (isinstance(node.value, ast.Call) and self.language_name(node.value.func) in _NOTES)
        )


def top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run on import, those under a top-level ``if``, ``try`` or ``with`` too."""
    for stmt in body:
        yield stmt
        match stmt:
            case ast.If(_, inner, orelse):
                yield from top_level([*inner, *orelse])
            case ast.With(_, inner):
                yield from top_level(inner)
            case ast.Try(inner, handlers, orelse, final):
                handled = [one for handler in handlers for one in handler.body]
                yield from top_level([*inner, *handled, *orelse, *final])


def _imported(node: ast.AST) -> dict[str, str]:
    """Names that an import binds, with what each stands for; none for a relative import."""
    if isinstance(node, ast.Import):
        first = {one.name.partition(".")[0] for one in node.names if not one.asname}
        return {name: name for name in first} | {one.asname: one.name for one in node.names if one.asname}
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return {}
