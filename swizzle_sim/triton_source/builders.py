"""Calls of builders of index arithmetic, in Python's own operators: FlyDSL and MLIR's ``arith``, tilelang's ``T``.

These DSLs run Python to build a program, and their integers overload the operators; what they spell as calls is here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from swizzle_sim.triton_source.aliases import Aliases

_OPERATORS: dict[str, type[ast.operator]] = {
    **dict.fromkeys(("addi", "add"), ast.Add),
    **dict.fromkeys(("subi", "sub"), ast.Sub),
    **dict.fromkeys(("muli", "mul"), ast.Mult),
    **dict.fromkeys(("divui", "divsi", "floordivsi", "floordiv", "truncdiv", "udiv"), ast.FloorDiv),
    **dict.fromkeys(("remui", "remsi", "floormod", "truncmod", "umod", "urem"), ast.Mod),
    **dict.fromkeys(("andi",), ast.BitAnd),
    **dict.fromkeys(("ori",), ast.BitOr),
    **dict.fromkeys(("xori",), ast.BitXor),
    **dict.fromkeys(("shli",), ast.LShift),
    **dict.fromkeys(("shrui", "shrsi"), ast.RShift),
}
_CALLS = {
    **dict.fromkeys(("minui", "minsi", "min", "minimum"), "min"),
    **dict.fromkeys(("maxui", "maxsi", "max", "maximum"), "max"),
    **dict.fromkeys(("ceildivui", "ceildivsi", "ceildiv", "ceil_div", "cdiv", "div_up", "divup"), "cdiv"),
}
# What only says of which type a value is, or that it is the same in all lanes.
_SAME = {
    "Int32", "Int64", "UInt32", "Uint32", "Index", "Integer", "int32", "int64", "index", "index_cast", "index_castui",
    "extsi", "extui", "constant", "unwrap", "_raw", "const_expr", "constexpr", "readfirstlane", "assume",
    "Cast", "cast",
}  # fmt: skip
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq,
    "ne": ast.NotEq,
    **dict.fromkeys(("slt", "ult"), ast.Lt),
    **dict.fromkeys(("sle", "ule"), ast.LtE),
    **dict.fromkeys(("sgt", "ugt"), ast.Gt),
    **dict.fromkeys(("sge", "uge"), ast.GtE),
}
_IDS = {"block_idx": "program_id", "block_id": "program_id", "grid_dim": "num_programs"}
_NARROW = re.compile(r"\b(u?int(1|8|16)|[iu](1|8|16))\b", re.IGNORECASE)  # a type in which numbers wrap
_LANGUAGE = ("tl", "triton", "self")


def as_expression(node: ast.Call | ast.Attribute, aliases: Aliases) -> ast.expr | None:
    """Same value in Python's operators; None for what is no such call.

    Only what a module spells counts (``arith.remui``, ``fx.block_idx.x``, ``T.floordiv``), or a name imported from one.
    """
    if isinstance(node, ast.Attribute):
        match node:
            case ast.Attribute(ast.Attribute(_, "block_idx" | "grid_dim" as which), "x" | "y" | "z" as axis):
                return _id(which, axis, node)
        return None
    match node:
        case ast.Call(ast.Attribute(condition, "select"), [yes, no], []):  # of a condition itself
            return ast.copy_location(ast.IfExp(condition, yes, no), node)
    built = _built(node, aliases)
    return None if built is None else ast.copy_location(built, node)


def _built(node: ast.Call, aliases: Aliases) -> ast.expr | None:
    whole = aliases.dotted(node.func)
    module, _, name = whole.rpartition(".")
    if not module and not (isinstance(node.func, ast.Name) and node.func.id in ("_raw", "const_expr")):
        return None
    if whole.partition(".")[0] in _LANGUAGE or (isinstance(node.func, ast.Name) and node.func.id in _CALLS.values()):
        return None  # in the language's spelling as it is
    make = _maker(name if module else whole)
    return make(node) if make else None


def _maker(name: str) -> Callable[[ast.Call], ast.expr | None] | None:
    if name in _OPERATORS:
        return lambda node: ast.BinOp(node.args[0], _OPERATORS[name](), node.args[1]) if len(node.args) == 2 else None
    if name in _CALLS:
        return lambda node: _plain_call(_CALLS[name], node)
    if name in _SAME:
        return lambda node: (
            node.args[-1 if name in ("Cast",) else 0]
            if node.args and not _NARROW.search(" ".join(map(ast.unparse, [*node.args, *node.keywords])))
            else None
        )
    return {"select": _choice, "if_then_else": _choice, "Select": _choice, "cmpi": _compared}.get(name) or (
        _of_id(name) if name in _IDS else None
    )


def _plain_call(name: str, node: ast.Call) -> ast.expr | None:
    return ast.Call(ast.copy_location(ast.Name(name, ast.Load()), node), node.args, []) if len(node.args) > 1 else None


def _choice(node: ast.Call) -> ast.expr | None:
    return ast.IfExp(node.args[0], node.args[1], node.args[2]) if len(node.args) == 3 else None


def _compared(node: ast.Call) -> ast.expr | None:
    if len(node.args) != 3:
        return None
    which = node.args[0]
    word = which.value if isinstance(which, ast.Constant) else getattr(which, "attr", "")
    op = _COMPARISONS.get(str(word))
    return ast.Compare(node.args[1], [op()], [node.args[2]]) if op else None


def _of_id(name: str) -> Callable[[ast.Call], ast.expr | None]:
    def made(node: ast.Call) -> ast.expr | None:
        if not node.args and not node.keywords:  # all three, to be unpacked
            return ast.Tuple([_id(name, axis, node) for axis in "xyz"], ast.Load())
        axis = node.args[0] if len(node.args) == 1 else None
        word = axis.value if isinstance(axis, ast.Constant) else getattr(axis, "attr", "")
        return _id(name, str(word), node) if str(word) in ("x", "y", "z", "0", "1", "2") else None

    return made


def _id(which: str, axis: str, node: ast.AST) -> ast.expr:
    """``tl.program_id(k)`` at the place of a node."""
    number = int(axis) if axis.isdigit() else "xyz".index(axis)
    function = ast.Attribute(ast.Name("tl", ast.Load()), _IDS[which], ast.Load())
    found = ast.Call(function, [ast.Constant(number)], [])
    return ast.fix_missing_locations(ast.copy_location(found, node))
