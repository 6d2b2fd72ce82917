"""What may give a name of a Python file another meaning than the one statement that is read for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from swizzle_sim.triton_source.aliases import LANGUAGES, Aliases

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
IMPORTS = re.compile(r"(from \S+ )?import ")
ANYTHING = "*"  # bound by what may bind every name


def bindings(module: ast.Module) -> dict[str, list[str]]:
    """What binds each name of a file: the statement as text for imports and assignments, else its kind and line.

    Two bindings that say the same are one. What only a type checker sees, and what stands in for an import that fails,
    binds nothing.
    """
    found: dict[str, list[str]] = {}
    outside = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for name, said in [*bound(module.body), *(one for inner in outside for one in _from_inside(inner))]:
        if said not in found.setdefault(name, []):
            found[name].append(said)
    for name, said in [*(one for node in ast.walk(module) for one in _changed(node)), *_handed_on(module)]:
        found.setdefault(name, []).append(said)
    for name, every in found.items():  # what is called, divided by or read of None fails
        found[name] = [one for one in every if one != f"{name} = None"] or every
    return found


def local_names(function: ast.FunctionDef) -> set[str]:
    """Names that are a function's own: parameters, and whatever its statements bind; those that it calls global not."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    own = {one.arg for one in every if one is not None}
    own |= {name for name, said in bound(function.body) if not IMPORTS.match(said)}
    return own - {name for stmt in _own(function) if isinstance(stmt, ast.Global) for name in stmt.names}


def changed_inside(function: ast.FunctionDef) -> set[str]:
    """Names of a function that functions inside it change."""
    inner = [node for node in ast.walk(function) if isinstance(node, ast.FunctionDef) and node is not function]
    return {name for one in inner for stmt in _own(one) if isinstance(stmt, ast.Nonlocal) for name in stmt.names}


def bound(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Names that statements of one scope bind, with what."""
    for stmt in body:
        match stmt:
            case ast.If(ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), _, orelse):
                yield from bound(orelse)
            case ast.Try(inner, handlers, orelse, final):
                yield from bound([*inner, *orelse, *final])
                imported = {name for name, said in bound(inner) if IMPORTS.match(said)}
                handled = [one for handler in handlers for one in bound(handler.body)]
                handled += [(handler.name, f"line {handler.lineno}") for handler in handlers if handler.name]
                yield from (one for one in handled if one[0] not in imported)
            case _:
                yield from _of_one(stmt)
                yield from bound([one for one in _below(stmt) if isinstance(one, ast.stmt)])


def _of_one(stmt: ast.stmt) -> Iterator[tuple[str, str]]:
    """Names that one statement binds, without those of statements inside it."""
    said = ast.unparse(stmt) if isinstance(stmt, ast.Import | ast.ImportFrom | ast.Assign) else f"line {stmt.lineno}"
    if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield stmt.name, ast.dump(stmt)
        return
    if isinstance(stmt, ast.Import | ast.ImportFrom):
        of = f"from {'.' * stmt.level}{stmt.module or ''} " if isinstance(stmt, ast.ImportFrom) else ""
        for one in (one for one in stmt.names if one.name != "*"):
            yield (one.asname or one.name.partition(".")[0]), f"{of}import {one.name if one.asname or of else ''}"
    todo: list[ast.AST] = [one for one in _below(stmt) if not isinstance(one, ast.stmt)]
    for node in todo:
        match node:
            case ast.Name(name, ast.Store() | ast.Del()):
                yield name, said
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name, f"line {stmt.lineno}"
        if not isinstance(node, _SCOPES):
            todo += [one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.stmt)]


def _below(stmt: ast.stmt) -> Iterator[ast.AST]:
    """Parts of a statement in its own scope; of ``match`` those of its cases."""
    if not isinstance(stmt, _SCOPES):
        for one in ast.iter_child_nodes(stmt):
            yield from ast.iter_child_nodes(one) if isinstance(one, ast.match_case) else [one]


def _own(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Nodes of a function, without those of functions inside it."""
    todo: list[ast.AST] = list(function.body)
    for node in todo:
        yield node
        if not isinstance(node, _SCOPES):
            todo += ast.iter_child_nodes(node)


def _from_inside(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """Names of the file that a function binds when it is called, and what it imports, as if the file did."""
    outside = {name for stmt in _own(function) if isinstance(stmt, ast.Global) for name in stmt.names}
    for name, said in bound(function.body):
        if name in outside:
            yield name, f"{function.name}: {said}"
        elif IMPORTS.match(said):
            yield name, said


def _handed_on(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Places where Triton's language is handed on or changed by another name than ``tl``: any of its names may be."""
    meaning, kept = Aliases(module), set()
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value, attr, ast.Load()) if not attr.startswith("__"):
                kept.add(id(value))
            case ast.Attribute(ast.Name("tl") as value, _, ast.Store() | ast.Del()) | ast.Assign([ast.Name()], value):
                kept.add(id(value))
            case ast.Call(ast.Name("getattr" | "hasattr" | "setattr" | "delattr"), [ast.Name("tl") as value, *_]):
                kept.add(id(value))
    for node in ast.walk(module):
        texts = [one.value for one in ast.iter_child_nodes(node) if isinstance(one, ast.Constant)]
        is_named = isinstance(node, ast.Call | ast.Subscript) and any("triton.language" in str(one) for one in texts)
        is_value = isinstance(getattr(node, "ctx", None), ast.Load) and id(node) not in kept
        if is_named or (is_value and meaning.dotted(node).removesuffix(".core").removesuffix(".standard") in LANGUAGES):
            yield ANYTHING, f"line {getattr(node, 'lineno', 0)}"


def _changed(node: ast.AST) -> Iterator[tuple[str, str]]:
    """What is changed of a module: ``tl.cdiv = ...``, ``setattr(tl, "cdiv", ...)``; or any name at all."""
    match node:
        case ast.Attribute(value, attr, ast.Store() | ast.Del()) if isinstance(value, ast.Name):
            yield f"{value.id}.{attr}", f"line {node.lineno}"
        case ast.Call(ast.Name("setattr" | "delattr"), [ast.Name(name), named, *_]):
            yield (f"{name}.{named.value!s}" if isinstance(named, ast.Constant) else name), f"line {node.lineno}"
        case ast.Call(ast.Name("setattr" | "delattr"), [ast.Subscript(), *_]) | ast.Call(ast.Name("exec" | "eval")):
            yield ANYTHING, f"line {node.lineno}"
        case ast.Call(ast.Name(name), [ast.Name("tl" | "triton" as given), *_]) if name not in ("getattr", "hasattr"):
            yield given, f"line {node.lineno}"
        case ast.Subscript(ast.Call(ast.Name("globals" | "vars")), _, ast.Store() | ast.Del()):
            yield ANYTHING, f"line {node.lineno}"
        case ast.Call(ast.Attribute(ast.Call(ast.Name("globals" | "vars")), "update" | "pop" | "setdefault")):
            yield ANYTHING, f"line {node.lineno}"
