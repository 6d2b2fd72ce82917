"""Helpers that a kernel imports and that call ``tl.program_id``: copied into its file, so that they can be handed ids.

The file that they come from stays as it is, since other kernels use them too.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from swizzle_sim.capture.sliced_module import module_name
from swizzle_sim.rewrite.source import EditableSource
from swizzle_sim.triton_source.imports import Imports
from swizzle_sim.triton_source.source_file import SourceFile, literal_axis, parameters_of, parse_source
from xcd_model.errors import RewriteError

_Renamed = tuple[ast.expr, str]  # a mention of a name, and what stands there in the copy


def with_own_helpers(path: Path, text: bytes, kernel: str) -> bytes:
    """Text of a file in which a kernel calls copies of the imported helpers that read a program id."""
    source = EditableSource(path, text, kernel)
    copies = _Copies(source)
    reached = source.facts.reachable(source.function)
    mentions = [one for function in reached for one in copies.mentions(function, source.facts)]
    if not mentions:
        return text
    for node, new in mentions:
        source.replace(node, new)
    blocks = [*filter(None, ["\n".join(copies.imports)]), *copies.texts]
    source.before(source.function, [line for block in blocks for line in ("", "", *block.split("\n"))])
    return source.apply()


class _Copies:
    """Copies of helpers for one file, and the imports that they need."""

    def __init__(self, source: EditableSource):
        self.source, self.fresh = source.facts, source.fresh
        self.names: dict[tuple[str, str], str] = {}
        self.texts: list[str] = []
        self.imports: list[str] = []

    def mentions(self, function: ast.AST, source: SourceFile) -> Iterator[_Renamed]:
        """Yield each mention of another file's helper that reads a program id, with the name of its copy."""
        calls = {id(node.func): node for node in ast.walk(function) if isinstance(node, ast.Call)}
        for node in _named(function):
            home = Imports.of(source).resolve(ast.unparse(node))
            if home is None or not _reads_ids(*home):
                continue
            call = calls.get(id(node))
            if call and not _says_axes(*home) and (text := self._inlined(call, *home)):
                yield call, text
                continue
            if home[0] is self.source:
                continue
            if home[1] not in home[0].functions:
                raise RewriteError(
                    f"{home[1]} of {Path(home[0].filename).name} calls tl.program_id and is no function of a module",
                    path=Path(source.filename),
                    line=node.lineno,
                )
            yield node, self._copied(*home)

    def _inlined(self, call: ast.Call, source: SourceFile, name: str) -> str:
        """Text of a call of a helper that only returns an id of a given axis, ``id_of(0)``; empty for any other."""
        function = source.functions.get(name)
        given: dict[int | str | None, ast.expr] = dict(enumerate(call.args))
        given |= {one.arg: one.value for one in call.keywords}
        if function is None or call.lineno != call.end_lineno:
            return ""
        values = {one.arg: given.get(i, given.get(one.arg)) for i, one in enumerate(parameters_of(function))}
        body = [one for one in function.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
        if not all(isinstance(value, ast.Constant) for value in values.values()) or len(body) != 1 or not values:
            return ""
        if not isinstance(body[0], ast.Return) or body[0].value is None:
            return ""
        found = ast.parse(ast.unparse(body[0].value), mode="eval")
        for node in ast.walk(found):
            if isinstance(node, ast.Name):
                known = values.get(node.id)
                here = self.source.aliases.name_of(source.aliases.top.get(node.id, ""))
                if known is None and here is None:
                    return ""
                node.id = ast.unparse(known) if known is not None else str(here)
        return ast.unparse(found)

    def _copied(self, source: SourceFile, name: str) -> str:
        """Name of the copy of a function, made the first time."""
        if (source.filename, name) in self.names:
            return self.names[source.filename, name]
        copy = self.names[source.filename, name] = self.fresh(name)
        edited = EditableSource(Path(source.filename), Path(source.filename).read_bytes(), name)
        source, function = edited.facts, edited.function
        renamed = list(self.mentions(function, source))
        renamed += self._globals(function, source, {id(one) for node, _ in renamed for one in ast.walk(node)})
        for node, new in renamed:
            edited.replace(node, new)
        jit = source.aliases.jit_decorator(function)
        own = next(one for one in function.decorator_list if any(node is jit for node in ast.walk(one)))
        lines = parse_source(edited.apply(), source.filename).lines
        kept = [*lines[own.lineno - 1 : own.end_lineno], *lines[function.lineno - 1 : function.end_lineno]]
        text = textwrap.dedent("\n".join(kept))
        self.texts.append(re.sub(rf"^def {name}\b", f"def {copy}", text, count=1, flags=re.MULTILINE))
        return copy

    def _globals(self, function: ast.FunctionDef, source: SourceFile, done: set[int]) -> Iterator[_Renamed]:
        """Other names of its module that a helper reads, by what they are called in the kernel's file."""
        nodes = list(ast.walk(function))
        own = {one.arg for one in nodes if isinstance(one, ast.arg)}
        own |= {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        for node in nodes:
            if isinstance(node, ast.Name) and id(node) not in done and node.id not in own | set(dir(builtins)):
                meaning = source.aliases.top.get(node.id)
                if meaning is None or self.source.aliases.top.get(node.id) != meaning:
                    here = self.source.aliases.name_of(meaning) if meaning else None  # the same under another name
                    yield node, here or self._imported(source, node.id)

    def _imported(self, source: SourceFile, name: str) -> str:
        """Name in the kernel's file for a global of another: imported from there."""
        if name in self.names.values() and (source.filename, name) not in self.names:
            return name  # the copy itself, which calls itself
        if (source.filename, name) not in self.names:
            found = self.names[source.filename, name] = self.fresh(name)
            alias = f" as {found}" if found != name else ""
            self.imports.append(f"from {module_name(Path(source.filename))} import {name}{alias}")
        return self.names[source.filename, name]


def _reads_ids(source: SourceFile, name: str) -> bool:
    """Whether a Triton function calls ``tl.program_id``, itself or in what it calls."""
    if not source.is_read(name):
        return False
    for one in source.reachable(source.every_function[name]):
        if source.id_calls(one):
            return True
        for node in _named(one):
            home = Imports.of(source).resolve(ast.unparse(node))
            if home is not None and home[0] is not source and _reads_ids(*home):
                return True
    return False


def _says_axes(source: SourceFile, name: str) -> bool:
    """Whether the axis of each id that a function reads itself is a literal."""
    return all(literal_axis(call) is not None for call in source.id_calls(source.every_function[name]))


def _named(function: ast.AST) -> Iterator[ast.expr]:
    """Names and dotted names in the body of a function, the longest of each."""
    todo: list[ast.AST] = list(function.body) if isinstance(function, ast.FunctionDef) else []
    for node in todo:  # grows
        if isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node)):
            yield node
        else:
            todo.extend(ast.iter_child_nodes(node))


def _is_dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node.value))
