"""Is a function a remap? It puts a workgroup's id together anew from quotients and remainders of it.

``pid // n`` and ``pid % n`` alone take an id apart, as every kernel with two axes in one does: that is a decode. A
remap multiplies, adds or compares what it took apart. A called name with ``xcd`` or ``chiplet`` in it tells too.
"""

from __future__ import annotations

import ast
import re

from swizzle_sim.language.rules import RESERVED
from swizzle_sim.triton_source.answers import names_of_tile
from swizzle_sim.triton_source.imports import Imports
from swizzle_sim.triton_source.slices import loaded, slice_of, stored
from swizzle_sim.triton_source.source_file import SourceFile, parameters_of
from swizzle_sim.triton_source.tile_flow import TileFlow

_NAMED = re.compile(
    r"(^|_)n?xcds?(_|$)|chiplet|remap_?(pid|wg|workgroup|block)|pid_remap|swizzle_?(pid|tile|block)|swizzle2d|hilbert|morton|z_?order|peano"
)
_IDS = (
    r"pid|wid|wgid|bid|wg_?id|(orig|old|linear|start|flat)?_?(pid|tile_?(id|idx)|block_?(id|idx)|workgroup_?id|program_?id|"
    r"linear_?id)|tile_in_\w+|bx|by|xy|fid"
)
_ID = re.compile(rf"^({_IDS})$", re.IGNORECASE)
_APART = (ast.FloorDiv, ast.Mod, ast.RShift, ast.BitAnd)
_TOGETHER = (ast.Add, ast.Sub, ast.Mult, ast.BitXor, ast.BitOr, ast.LShift)
_APART_CALLS = ("remui", "remsi", "divui", "divsi", "divmod", "floordiv", "floormod", "_umod", "_udiv")
_TOGETHER_CALLS = ("addi", "muli", "subi", "xori", "min", "minimum", "minui", "minsi")
_OF_THREADS = re.compile(r"thread|lane|warp|wave|tid|offset|byte|elem|row|col", re.IGNORECASE)
_WHOLE, _PART, _TOGETHER_AGAIN = 1, 2, 3
_ID_CALLS = ("program_id", "block_idx", "block_id", "block_id_x", "blockIdx", "RematerializeBlockIdxX")
# Bytes without which a Python file has neither an id, as a call or a parameter, nor a comment of ours.
MAY_HOLD_A_REMAP = re.compile(rf"{'|'.join(_ID_CALLS)}|swizzle|\b({_IDS})\s*[,:)=]".encode(), re.IGNORECASE)


def likeness(source: SourceFile, name: str, depth: int = 3) -> str:
    """What a function of a file is, by its form and names: ``remap``, ``decode`` or nothing."""
    function = source.function(name)
    body = [stmt for stmt in function.body if not isinstance(stmt, ast.FunctionDef | ast.ClassDef)]
    returned = [one.value for stmt in body for one in ast.walk(stmt) if isinstance(one, ast.Return) and one.value]
    ids = {one.arg for one in parameters_of(function) if _ID.match(one.arg)} | _ids_by_use(body, returned)
    reads_id = any(_is_id(node) for stmt in body for node in ast.walk(stmt))
    if (not reads_id and not (ids and returned)) or any(map(_is_no_number, returned)):
        return ""
    if returned and all(isinstance(value, ast.Constant) for value in returned):  # ``return true``: no id comes back
        return ""
    if returned:
        needed, coordinates = body, max(len(getattr(value, "elts", ())) for value in returned)
    else:
        answers = names_of_tile(body, [], source) or TileFlow(body, source).coordinates()
        needed, coordinates = slice_of(_flat(body), set(answers))[0], len(answers)
        ids |= {name for stmt in needed for name in stored(stmt) if _ID.match(name)}
    kind = _most(needed, returned, ids)
    if kind == _TOGETHER_AGAIN or _calls_a_remap(source, needed, depth):
        return "remap"
    return "decode" if kind == _PART and coordinates > 1 else ""


def _ids_by_use(body: list[ast.stmt], returned: list[ast.expr]) -> set[str]:
    """Names, and fields of records, that are an id by their name, or since two results come of both their parts."""
    assigned = {name for stmt in body for name in stored(stmt)}
    fields = {one.attr for stmt in body for one in ast.walk(stmt) if isinstance(one, ast.Attribute)}
    loose = {name for stmt in body for name in loaded(stmt)} - assigned
    found = {name for name in fields | loose if _ID.match(name)}
    if not any(len(getattr(value, "elts", ())) > 1 for value in returned):
        return found
    plain = {stmt.targets[0].id for outer in body for stmt in ast.walk(outer) if isinstance(stmt, ast.Assign)
             and isinstance(stmt.targets[0], ast.Name) and isinstance(stmt.value, ast.Name)}  # fmt: skip
    parts: dict[str, set[str]] = {}
    for node in (node for stmt in body for node in ast.walk(stmt)):
        match node:
            case ast.BinOp(ast.Name(name), ast.FloorDiv() | ast.Mod() as op):
                parts.setdefault(name, set()).add(type(op).__name__)
            case ast.Call(ast.Name("divmod"), [ast.Name(name), _]):
                parts[name] = {"FloorDiv", "Mod"}
    return found | {name for name, both in parts.items() if len(both) == 2
                    and (name in plain or name not in assigned) and not _OF_THREADS.search(name)}  # fmt: skip


def _is_no_number(value: ast.expr) -> bool:
    """Whether a returned value is none, a text or a collection, as of what writes a program."""
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    words = (ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.Lambda)
    return any(isinstance(one, words) or (isinstance(one, ast.Constant) and not _is_int(one)) for one in values)


def _is_int(node: ast.Constant) -> bool:
    return isinstance(node.value, int)


def _calls_a_remap(source: SourceFile, body: list[ast.stmt], depth: int) -> bool:
    for name in {ast.unparse(node.func) for stmt in body for node in ast.walk(stmt) if isinstance(node, ast.Call)}:
        if _NAMED.search(name.rpartition(".")[2].lower()):
            return True
        if name in RESERVED or name.startswith(("tl.", "triton.")):
            continue
        home = Imports.of(source).resolve(name) if depth else None
        if home is not None and likeness(*home, depth - 1) == "remap":
            return True
    return False


def _is_id(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Name("unread"), [ast.Constant(str(text)), *_]):  # of C, as `c_expressions` leaves it
            return "blockIdx" in text or "block_id" in text
        case ast.Call(func):
            return _last(func) in _ID_CALLS
        case ast.Attribute(_, name):
            return name in _ID_CALLS
    return False


def _names_an_id(node: ast.AST, whole: set[str]) -> int:
    """Whether what is not read of C names an id."""
    match node:
        case ast.Call(ast.Name("unread"), [ast.Constant(str(text)), *_]):
            return _WHOLE * any(word in whole for word in re.findall(r"\w+", text))
    return 0


def _flat(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements, those inside loops in their place: a loop over tiles has the remap in it."""
    found: list[ast.stmt] = []
    for stmt in body:
        if isinstance(stmt, ast.For) and isinstance(stmt.iter, ast.Call) and stmt.iter.args:
            found.append(ast.copy_location(ast.Assign([stmt.target], stmt.iter.args[0]), stmt))  # its first index
        found += _flat(stmt.body) if isinstance(stmt, ast.For | ast.While | ast.With) else [stmt]
    return found


def _most(body: list[ast.stmt], returned: list[ast.expr], ids: set[str]) -> int:
    """The furthest that statements and returned values go with an id."""
    whole, parts, most = set(ids), set[str](), 0
    for stmt in [one for outer in _flat(body) for one in ast.walk(outer)]:
        if not isinstance(stmt, ast.Assign | ast.AnnAssign | ast.AugAssign) or stmt.value is None:
            continue
        kind = _kind(stmt.value, whole, parts)
        if isinstance(stmt, ast.AugAssign):  # ``a += b`` is ``a = a + b``
            kind = _kind(ast.BinOp(ast.Name(ast.unparse(stmt.target)), stmt.op, stmt.value), whole, parts)
        if kind in (_WHOLE, _PART):
            (parts if kind == _PART else whole).update(stored(stmt))
        most = max(most, kind)
    return max([most, *(_kind(value, whole, parts) for value in returned)])


def _kind(node: ast.AST, whole: set[str], parts: set[str]) -> int:
    """What a value holds of the id: nothing, all of it, a part of it, or parts put together."""
    if isinstance(node, ast.Name):
        return _PART if node.id in parts else _WHOLE * (node.id in whole)
    if _is_id(node) or (isinstance(node, ast.Attribute) and node.attr in whole):
        return _WHOLE
    below = max([_names_an_id(node, whole), *(_kind(one, whole, parts) for one in ast.iter_child_nodes(node))])
    called = _last(node.func) if isinstance(node, ast.Call) else ""
    op = node.op if isinstance(node, ast.BinOp) else None
    if below in (_WHOLE, _PART) and (isinstance(op, _APART) or called in _APART_CALLS):
        return _PART
    if below == _PART and (isinstance(op, _TOGETHER) or called in _TOGETHER_CALLS):
        return _TOGETHER_AGAIN
    return below


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
