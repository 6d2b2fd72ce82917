"""A Python file with Triton kernels in it, parsed and never imported."""

from __future__ import annotations

import ast
import copy
import io
import re
import textwrap
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from swizzle_sim.triton_source.aliases import Aliases, top_level
from swizzle_sim.triton_source.bindings import ANYTHING, bindings, bound
from swizzle_sim.triton_source.wrapped import TUNERS, Wrapped, wrapped
from xcd_model.errors import LanguageError
from xcd_model.files import read_bytes

_MEMORY = ("load", "store", "make_block_ptr", "make_tensor_descriptor", "gather", "scatter", "advance")
SOURCES = (".py", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".cu", ".cuh", ".hip", ".inl")
_LINE_END = re.compile("\r\n|\r|\n")
_LONGEST_SHOWN = 200


@dataclass(frozen=True, eq=False)
class ProgramId:
    """One call of ``tl.program_id``."""

    call: ast.Call
    axis: int | None  # none where it is no integer literal
    function: str  # function of the file that it stands in

    @property
    def line(self) -> int:
        """Line, counted from 1."""
        return self.call.lineno


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One file."""

    filename: str
    text: str
    tree: ast.Module  # of Python, or what C says in Python

    @property
    def in_c(self) -> bool:
        """Whether it is a file of C or C++."""
        return Path(self.filename).suffix != ".py"

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Lines as the parser counts them."""
        return tuple(_LINE_END.split(self.text))

    @cached_property
    def aliases(self) -> Aliases:
        """What the file's names mean."""
        return Aliases(self.tree)

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """All functions at the top level by name; of two with one name, the Triton function, else the last."""
        found: dict[str, ast.FunctionDef] = {}
        for node in top_level(self.tree.body):
            if isinstance(node, ast.FunctionDef) and (self._is_jit(node) or not self._is_jit(found.get(node.name))):
                found[node.name] = node
        return found

    @cached_property
    def _every_binding(self) -> dict[str, list[str]]:
        return {} if self.in_c else bindings(self.tree)

    def _is_bound_once(self, name: str) -> bool:
        return len(self._every_binding.get(name, ())) < 2 and ANYTHING not in self._every_binding

    @cached_property
    def bindings(self) -> dict[str, list[str]]:
        """What binds each name of a file of Python; a function that is jitted or tuned by assignment once."""
        found = dict(self._every_binding)
        for name, one in self.wrapped.items():
            makers = [self.aliases.dotted(call.func) for call in one.around]
            plain = all(made.rpartition(".")[2] in TUNERS and made not in found for made in makers)
            if name in found and plain:
                found[name] = [said for said in found[name] if not said.startswith(f"{name} = ")] or found[name]
        return found

    def doubt(self, name: str) -> str:
        """Why a name of the file, or ``module.name``, may mean something else than is read; empty where it does not."""
        if ANYTHING in self.bindings:
            return f"{name}, and {self.bindings[ANYTHING][0]} may change any name,"
        said = self.bindings.get(name, ())
        if len(said) > 1:
            return f"{name}, which is bound {len(said)} times,"
        parts = name.split(".")
        changed = next((whole for k in range(2, len(parts) + 1) if (whole := ".".join(parts[:k])) in self.bindings), "")
        return f"{changed}, which {self.bindings[changed][0]} changes," if changed else ""

    @cached_property
    def named(self) -> dict[str, ast.FunctionDef]:
        """`functions`, also by the names that assignments such as ``tile = tile_v1`` give them."""
        again = {name: value.id for name, value in self.constants.items() if isinstance(value, ast.Name)}
        return {**{name: self.functions[was] for name, was in again.items() if was in self.functions}, **self.functions}

    @cached_property
    def every_function(self) -> dict[str, ast.FunctionDef]:
        """Functions of the file: those of `functions`, and ``Class.method``, ``outer.inner`` ... below them."""
        found = dict(self.functions)
        outside: list[ast.ClassDef | ast.FunctionDef] = list(self.functions.values())
        outside += [node for node in top_level(self.tree.body) if isinstance(node, ast.ClassDef)]
        todo: list[tuple[str, ast.ClassDef | ast.FunctionDef]] = [(one.name, one) for one in outside]
        for name, outer in todo:
            for inner in _nested(outer):
                found.setdefault(f"{name}.{inner.name}", inner)
                todo.append((f"{name}.{inner.name}", inner))
        return found

    @property
    def stem(self) -> str:
        """Name of the file without its folder and suffix."""
        return Path(self.filename).stem

    def is_read(self, name: str) -> bool:
        """Whether a function is read in any case: Triton's (or Gluon's). Others are where they look like a remap."""
        return self._is_jit(self.every_function[name]) and not self.in_c

    def between(self, begin: int, end: int, name: str) -> SourceFile:
        """File whose only function holds the statements between two lines, at their own lines."""
        lines = [""] * (begin - 1) + ["void {}() {{" if self.in_c else "def {}():"] + list(self.lines[begin : end - 1])
        lines[begin - 1] = lines[begin - 1].format(name)
        if self.in_c:
            lines.append("}")
        else:
            inner = textwrap.dedent("\n".join(lines[begin:])).splitlines()
            lines[begin:] = ["    " + line for line in inner]
            lines.append("    pass")
        found = parse_source("\n".join(lines).encode(), self.filename)
        return SourceFile(self.filename, self.text, _with_imports(found.tree, self.tree))

    @cached_property
    def wrapped(self) -> dict[str, Wrapped]:
        """What assignments such as ``kernel = triton.jit(function)`` make, by its name."""
        again: dict[str, ast.expr] = {}  # of a name that is wrapped step by step: ``f = triton.jit(f)`` and more
        for stmt in top_level(self.tree.body):
            match stmt:
                case ast.Assign([ast.Name(name)], ast.Call(args=[ast.Name(inner)]) as value) if name == inner:
                    again[name] = ast.Call(value.func, [again.get(name, ast.Name(name))], value.keywords)
        return wrapped({**self.constants, **again}, self.aliases)

    @cached_property
    def kernels(self) -> dict[str, ast.FunctionDef]:
        """The ``@triton.jit`` functions at the top level, kernels and their helpers; by all names that they have."""
        found = {name: node for name, node in self.functions.items() if self._is_jit(node)}
        made = {name: one.function for name, one in self.wrapped.items() if one.is_jitted}
        return found | {name: found[function] for name, function in made.items() if function in found}

    def inner(self, name: str) -> str:
        """Name of the function that ``kernel = triton.jit(function)`` stands for; any other name itself."""
        made = self.wrapped.get(name)
        return made.function if made and made.is_jitted else name

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Values assigned to a name at the top level, of names that are assigned once."""
        found: dict[str, ast.expr] = {}
        twice: set[str] = set()
        for stmt in top_level(self.tree.body):
            match stmt:
                case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                    twice |= {name} & found.keys()
                    found[name] = value
        return {name: value for name, value in found.items() if name not in twice and self._is_bound_once(name)}

    def function(self, name: str) -> ast.FunctionDef:
        """Return any function by name, ``Class.method`` and ``outer.inner`` too."""
        if name not in self.every_function:
            there = ", ".join(self.every_function) or "none"
            raise LanguageError(f"no function {name}; there is {there}", filename=self.filename, code="file")
        return self.every_function[name]

    def kernel(self, name: str) -> ast.FunctionDef:
        """Return a Triton function by name."""
        if name not in self.kernels:
            there = ", ".join(self.kernels) or "none"
            raise LanguageError(
                f"no @triton.jit function {name} at the top level; there is {there}",
                filename=self.filename,
                code="file",
            )
        return self.kernels[name]

    def error(self, node: ast.AST, message: str, code: str = "node") -> LanguageError:
        """Error that shows the line of a node."""
        line = getattr(node, "lineno", 0)
        shown = printable(self.lines[line - 1]) if 0 < line <= len(self.lines) else ""
        column = getattr(node, "col_offset", 0) + 1
        return LanguageError(message, filename=self.filename, line=line, column=column, source_line=shown, code=code)

    def reachable(self, root: ast.AST) -> list[ast.AST]:
        """Return a node, and the functions of the file that it names, however deep."""
        found, names = [root], set()
        for one in found:
            for node in _inside(one):
                if isinstance(node, ast.Name) and node.id in self.named and node.id not in names:
                    names.add(node.id)
                    if self.named[node.id] is not root:
                        found.append(self.named[node.id])
        return found

    def program_ids(self, function: ast.FunctionDef) -> list[ProgramId]:
        """Calls of ``tl.program_id`` in a function and in the functions that it calls."""
        return [
            ProgramId(call, literal_axis(call), one.name)
            for one in self.reachable(function)
            if isinstance(one, ast.FunctionDef)
            for call in self.id_calls(one)
        ]

    def passed_on(self, function: ast.FunctionDef) -> list[ast.expr]:
        """Mentions of ``tl.program_id`` without a call, in a function and in the functions that it calls."""
        called = {id(one.call.func) for one in self.program_ids(function)}
        return [
            node
            for one in self.reachable(function)
            for node in _inside(one)
            if isinstance(node, ast.expr) and self._is_id_name(node) and id(node) not in called
        ]

    def is_id(self, node: ast.AST) -> bool:
        """Whether a node is a call of ``tl.program_id``."""
        return isinstance(node, ast.Call) and self._is_id_name(node.func)

    def id_calls(self, root: ast.AST) -> list[ast.Call]:
        """Calls of ``tl.program_id`` in a tree."""
        return [one for one in _inside(root) if isinstance(one, ast.Call) and self.is_id(one)]

    def touches_memory(self, stmt: ast.AST) -> bool:
        """Whether a statement, or a function that it calls, loads, stores or makes a descriptor."""
        return any(self._accesses(node) for one in self.reachable(stmt) for node in _inside(one))

    def waiting_loop(self, function: ast.FunctionDef) -> int:
        """Line of a ``while`` whose condition reads memory, as that of a spin lock does; 0 where there is none."""
        for one in self.reachable(function):
            for node in _inside(one):
                if isinstance(node, ast.While) and any(map(self._reads_memory, ast.walk(node.test))):
                    return node.lineno
        return 0

    def _is_jit(self, node: ast.FunctionDef | None) -> bool:
        if node is None or self.aliases.jit_decorator(node) is not None:
            return node is not None
        return any(one.is_jitted and one.function == node.name for one in self.wrapped.values())

    def _is_id_name(self, node: ast.AST) -> bool:
        return self.aliases.language_name(node) == "program_id"

    def _reads_memory(self, node: ast.AST) -> bool:
        name = self.aliases.language_name(node)
        return name == "load" or name.startswith("atomic_")

    def _accesses(self, node: ast.AST) -> bool:
        name = node.attr if isinstance(node, ast.Attribute) else self.aliases.language_name(node)
        return name in _MEMORY or name.startswith("atomic_")


def read_source(path: str | Path, macros: Iterable[tuple[str, Any]] = ()) -> SourceFile:
    """Parse a file; of C, among the macros of what includes it."""
    try:
        data = read_bytes(path)
    except OSError as error:
        raise LanguageError(f"cannot be read ({error.strerror})", filename=str(path), code="file") from None
    return parse_source(data, str(path), macros)


def parse_source(data: bytes, filename: str, macros: Iterable[tuple[str, Any]] = ()) -> SourceFile:
    """Parse the bytes of a file, in the encoding that it declares."""
    try:
        if Path(filename).suffix in SOURCES[1:]:
            from swizzle_sim.triton_source.c_source import tree_of_c  # noqa: PLC0415 - few need its parser

            text = data.decode("utf-8-sig")
            return SourceFile(filename, text, tree_of_c(text, filename, macros))
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
        tree = ast.parse(text)
    except UnicodeDecodeError as error:
        raise LanguageError(f"not UTF-8 text (byte {error.start})", filename=filename, code="file") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 0) or 0
        raise LanguageError(f"no Python: {error}", filename=filename, line=line, column=1, code="syntax") from None
    return SourceFile(filename, text, tree)


def opened(source: SourceFile) -> SourceFile:
    """File whose one function that defines kernels is opened: what it holds is read as if it stood outside.

    Not where a name would mean two things then; parameters are what their defaults say.
    """
    plain = [one for one in source.tree.body if isinstance(one, ast.FunctionDef) and not _jits(one)]
    makers = [one for one in plain if any(map(_jits, _nested(one)))]
    if len(makers) != 1 or source.in_c:
        return source
    (maker,) = makers
    values = [ast.Assign([ast.Name(name, ast.Store())], value) for name, value in defaults_of(maker).items()]
    inside: list[ast.stmt] = [ast.fix_missing_locations(ast.copy_location(one, maker)) for one in values]
    inside += map(_Unreturned().visit, copy.deepcopy(maker.body))
    outside = [one for one in source.tree.body if one is not maker]
    said = dict(bound(outside))
    if any(said.get(name, text) != text for name, text in bound(inside)):
        return source
    at = source.tree.body.index(maker)
    return SourceFile(source.filename, source.text, ast.Module([*outside[:at], *inside, *outside[at:]], []))


def _jits(function: ast.FunctionDef) -> bool:
    return any(re.search(r"\bjit\b", ast.unparse(one)) for one in function.decorator_list)


class _Unreturned(ast.NodeTransformer):
    """Takes returns out of statements that no function is around any more."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)


def _with_imports(tree: ast.Module, whole: ast.Module) -> ast.Module:
    """Tree with the imports and constants of a whole file in front."""
    kept = [stmt for stmt in top_level(whole.body) if isinstance(stmt, ast.Import | ast.ImportFrom | ast.Assign)]
    functions = [stmt for stmt in whole.body if isinstance(stmt, ast.FunctionDef)]
    return ast.Module([*kept, *functions, *tree.body], [])


def literal_axis(call: ast.Call) -> int | None:
    """Axis of a call of ``tl.program_id``; None where it is no integer literal."""
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "axis")]
    if len(given) != 1 or len(call.args) + len(call.keywords) != 1:
        return None
    value = given[0].value if isinstance(given[0], ast.Constant) else None
    return value if type(value) is int else None


def parameters_of(function: ast.FunctionDef) -> list[ast.arg]:
    """Parameters of a function, in order."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def defaults_of(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Default of each parameter that has one."""
    given = function.args
    positional = [one.arg for one in (*given.posonlyargs, *given.args)]
    found = dict(zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True))
    return found | {one.arg: value for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}


def is_constexpr(parameter: ast.arg) -> bool:
    """Whether a parameter is annotated ``tl.constexpr``."""
    return parameter.annotation is not None and "constexpr" in ast.unparse(parameter.annotation)


def tuned_values(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Values of the first autotune configuration, where it is written out at the function."""
    return next(iter(_configurations(function)), {})


def decided_names(function: ast.FunctionDef) -> set[str]:
    """Parameters whose value another than their default may be: of heuristics, and of configurations that differ."""
    found: set[str] = set()
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("heuristics") and decorator.args:
            found |= _entries(decorator.args[0]).keys()
    each = _configurations(function)
    for name in {name for one in each for name in one}:
        if len({ast.unparse(one[name]) if name in one else "" for one in each}) > 1:
            found.add(name)
    return found


def _configurations(function: ast.FunctionDef) -> list[dict[str, ast.expr]]:
    """Values of each autotune configuration that is written out at a function."""
    calls = [call for one in function.decorator_list for call in ast.walk(one)]
    given = [_entries(call.args[0]) for call in calls
             if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Config") and call.args]  # fmt: skip
    return [one for one in given if one]


def printable(line: str) -> str:
    """Line of a file as an error shows it: without control characters, and not if it is very long."""
    return "".join(c if c.isprintable() else " " for c in line) if len(line) <= _LONGEST_SHOWN else ""


def is_integer(node: ast.expr) -> bool:
    """Whether an expression is an integer literal, with a sign or without."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _entries(node: ast.expr) -> dict[str, ast.expr]:
    """Values by key of a dict display or of ``dict(...)``."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
    return {one.arg: one.value for one in node.keywords if one.arg} if isinstance(node, ast.Call) else {}


def _nested(outer: ast.ClassDef | ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    """Functions directly in a class, or anywhere in a function but not in one of its functions' own."""
    todo: list[ast.AST] = list(outer.body)
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.FunctionDef):
            yield node
        elif not isinstance(node, ast.ClassDef):
            todo += ast.iter_child_nodes(node)


def _inside(root: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a tree; of a function only its body, not decorators and defaults, which are no code of the kernel."""
    if isinstance(root, ast.FunctionDef):
        for stmt in root.body:
            yield from ast.walk(stmt)
    else:
        yield from ast.walk(root)
