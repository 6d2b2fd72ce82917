"""A Python file with Triton functions in it, parsed and never imported."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from pathlib import Path

from swizzle_sim.testing.inlining import defaults_of, parameters_of
from swizzle_sim.testing.spelling import Spelling
from xcd_model.errors import LanguageError

_MEMORY = ("load", "store", "make_block_ptr", "make_tensor_descriptor", "gather", "scatter", "advance")
_LONGEST_SHOWN = 200
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


@dataclass(frozen=True)
class Module:
    """One file.

    Parameters
    ----------
    filename : str
    lines : tuple of str
    functions : dict of str to ast.FunctionDef
        The ``@triton.jit`` functions at the top level, spelled as the language spells; and ``tl.swizzle2d``.
    others : dict of str to ast.FunctionDef
        The plain functions at the top level.
    constants : dict of str to ast.expr
        Integers assigned at the top level, once each.
    spelling : Spelling
    """

    filename: str
    lines: tuple[str, ...]
    functions: dict[str, ast.FunctionDef]
    others: dict[str, ast.FunctionDef]
    constants: dict[str, ast.expr]
    spelling: Spelling

    def function(self, name: str) -> ast.FunctionDef:
        """Return a Triton function by name.

        Raises
        ------
        LanguageError
            If there is none; names those there are.
        """
        if name not in self.functions:
            there = ", ".join(self.kernels()) or "none"
            raise LanguageError(
                f"no @triton.jit function {name} at the top level; there is {there}",
                filename=self.filename,
                code="file",
            )
        return self.functions[name]

    def kernels(self) -> list[str]:
        """Names of the file's own Triton functions."""
        return [name for name in self.functions if name != "swizzle2d" or self.functions[name].decorator_list]

    def error(self, node: ast.AST, message: str, code: str = "node") -> LanguageError:
        """Error that shows the line of a node."""
        line = getattr(node, "lineno", 0)
        shown = printable(self.lines[line - 1]) if 0 < line <= len(self.lines) else ""
        column = getattr(node, "col_offset", 0) + 1
        return LanguageError(message, filename=self.filename, line=line, column=column, source_line=shown, code=code)

    def is_id(self, node: ast.AST) -> bool:
        """Whether a node is a call of ``tl.program_id``."""
        return isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.program_id"

    def id_calls(self, root: ast.AST) -> list[ast.Call]:
        """Calls of ``tl.program_id`` in a tree."""
        return [one for one in ast.walk(root) if isinstance(one, ast.Call) and self.is_id(one)]

    def axis(self, call: ast.Call) -> int:
        """Axis of such a call, 0 where it is no literal: the language refuses that by itself."""
        given = [*call.args, *(one.value for one in call.keywords if one.arg == "axis")]
        value = given[0].value if given and isinstance(given[0], ast.Constant) else 0
        return value if type(value) is int else 0

    def asks_for_id(self, function: ast.FunctionDef) -> bool:
        """Whether a function, or one that it calls, asks for its program id."""
        return any(self.id_calls(one) for one in self._reachable(function))

    def touches_memory(self, stmt: ast.AST) -> bool:
        """Whether a statement, or a function that it calls, loads, stores or makes a descriptor."""
        return any(self._accesses(one) for one in self._reachable(stmt))

    def defaults(self, function: ast.FunctionDef) -> dict[str, ast.expr]:
        """Integer default, or the first autotune configuration's value, of each parameter that has one."""
        found = {name: value for name, value in defaults_of(function).items() if _is_integer(value)}
        tuned: dict[str, ast.expr] = {}
        for one in function.decorator_list:
            for call in ast.walk(one):
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Config") and call.args and not tuned:
                    tuned = _literals(call.args[0])
        return found | tuned

    def launch(self, function: ast.FunctionDef, answers: list[str], axes: int, known: dict[str, ast.expr]) -> str:
        """Launch grid in the kernel's sizes, where it says ``num_pid_m`` and ``num_pid_n`` (or x, y, z) once each."""
        names = {one.arg for one in parameters_of(function)} | set(known)
        assigned = [
            one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        ]
        sides = {}
        for stmt in function.body:
            match stmt:
                case ast.Assign([ast.Name(name)], value) if assigned.count(name) == 1 and _over(value, names):
                    sides[name] = ast.unparse(_Filled(known).visit(copy.deepcopy(value)))
        wanted = [f"num_{name}" for name in answers]
        if not all(name in sides for name in wanted) or len(wanted) < 2:
            return ""
        return (" * " if axes == 1 else ", ").join(f"({sides[name]})" for name in wanted)

    def _accesses(self, root: ast.AST) -> bool:
        names = (node.attr for node in ast.walk(root) if isinstance(node, ast.Attribute))
        return any(name in _MEMORY or name.startswith("atomic_") for name in names)

    def _reachable(self, root: ast.AST) -> list[ast.AST]:
        found, names = [root], set()
        for one in found:
            for node in ast.walk(one):
                if isinstance(node, ast.Name) and node.id in self.functions and node.id not in names:
                    names.add(node.id)
                    found.append(self.functions[node.id])
        return found


class _Filled(ast.NodeTransformer):
    """Puts known values in place of names."""

    def __init__(self, known: dict[str, ast.expr]):
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.known.get(node.id, node)


def printable(line: str) -> str:
    """Line of a file as an error shows it: nothing that a terminal obeys, and not if it is very long."""
    return "".join(c if c.isprintable() else " " for c in line) if len(line) <= _LONGEST_SHOWN else ""


def read_module(path: str | Path) -> Module:
    """Parse a file.

    Raises
    ------
    LanguageError
        With code ``file`` if it cannot be read, ``syntax`` if it is no Python.
    """
    filename = str(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        tree = ast.parse(text)
    except OSError as error:
        raise LanguageError(f"cannot be read ({error.strerror})", filename=filename, code="file") from None
    except UnicodeDecodeError as error:
        raise LanguageError(f"not UTF-8 text (byte {error.start})", filename=filename, code="file") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 0) or 0
        raise LanguageError(f"no Python: {error}", filename=filename, line=line, column=1, code="syntax") from None
    spelling = Spelling(tree)
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    jit = {node.name: node for node in found if spelling.is_jit(node)}
    others = {node.name: node for node in found if node.name not in jit}
    for node in jit.values():
        node.body = [spelling.visit(stmt) for stmt in node.body]
    constants = _constants(tree, spelling)
    builtin = ast.parse(_BUILTIN).body[0]
    assert isinstance(builtin, ast.FunctionDef)
    return Module(filename, tuple(text.splitlines()), {"swizzle2d": builtin, **jit}, others, constants, spelling)


def _constants(tree: ast.Module, spelling: Spelling) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    twice = set()
    for stmt in tree.body:
        match stmt:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                twice |= {name} & found.keys()
                found[name] = spelling.visit(value)
    return {name: value for name, value in found.items() if name not in twice and _is_integer(value)}


def _is_integer(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _literals(node: ast.expr) -> dict[str, ast.expr]:
    """Integers of a dict display or of ``dict(...)``."""
    if isinstance(node, ast.Dict):
        pairs = [
            (key.value, value)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        ]
    else:
        pairs = [(one.arg, one.value) for one in node.keywords] if isinstance(node, ast.Call) else []
    return {str(name): value for name, value in pairs if _is_integer(value)}


def _over(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression reads only these names."""
    return all(
        one.id in names or one.id in ("tl", "cdiv", "min", "max") for one in ast.walk(node) if isinstance(one, ast.Name)
    ) and not any(
        isinstance(one, ast.Call) and ast.unparse(one.func) not in ("tl.cdiv", "cdiv") for one in ast.walk(node)
    )
