"""Expressions of C in Python's syntax tree: integers, the ids and counts of a launch, calls of known functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tree_sitter import Node

_Tree = TypeVar("_Tree", bound=ast.AST)
UNREAD = "unread"  # the call that stands for what has no counterpart
_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.FloorDiv, "%": ast.Mod, "<<": ast.LShift, ">>": ast.RShift,
    "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor,
}  # fmt: skip
_COMPARE: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "==": ast.Eq, "!=": ast.NotEq,
}  # fmt: skip
_UNARY: dict[str, type[ast.unaryop]] = {"-": ast.USub, "~": ast.Invert, "!": ast.Not}
_RECORDS = {"blockIdx": "program_id", "gridDim": "num_programs"}
_ID_CALL = re.compile(r"^(?:__builtin_amdgcn_workgroup_id|block_id|hipBlockIdx|get_block_id|blockIdx)_([xyz])$")
_COUNT_CALL = re.compile(r"^(?:grid_dim|hipGridDim|num_blocks|gridDim)_([xyz])$")
_AXIS_CALLS = {"get_group_id": "program_id", "__ockl_get_group_id": "program_id", "get_num_groups": "num_programs"}
_NUMBER = re.compile(r"^(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*$")
_CEIL = re.compile(r"^(ceil_?div|div_?up|cdiv|ceil_div_?\w*|div_round_up|divup|integer_divide_ceil)$", re.IGNORECASE)
_SAME = {
    "__builtin_amdgcn_readfirstlane", "readfirstlane", "amd_wave_read_first_lane", "static_cast", "int", "unsigned",
    "uint32_t", "int32_t", "size_t", "long", "index_t",
}  # fmt: skip
_MADE = re.compile(r"^(make_(u?int|u?long|tuple|pair|coord)\w*|dim3|u?int[234]|tuple|pair|make_multi_index)$")


class Calls:
    """Functions of a file, as far as calls of them need to know."""

    def __init__(self, templates: Mapping[str, Mapping[str, Any]]):
        self.templates = templates
        self.outputs: dict[str, tuple[str, ...]] = {}  # parameters through which a function hands out values


def text_of(node: Node) -> str:
    """Text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def placed(tree: _Tree, node: Node) -> _Tree:
    """Syntax tree at the line and column of a node, its parts too where they have none."""
    row, column = node.start_point
    for part in ast.walk(tree):
        if isinstance(part, ast.expr | ast.stmt | ast.arg) and not hasattr(part, "lineno"):
            part.lineno = part.end_lineno = row + 1
            part.col_offset = part.end_col_offset = column
    return tree


def named(name: str, node: Node, context: ast.expr_context | None = None) -> ast.Name:
    """Name at a place."""
    return placed(ast.Name(name, context or ast.Load()), node)


def unread(node: Node) -> ast.expr:
    """What stands for an expression without a counterpart: a call that nothing knows, with its text."""
    text = " ".join(text_of(node).split())
    return placed(ast.Call(ast.Name(UNREAD, ast.Load()), [ast.Constant(text[:80])], []), node)


def expression(node: Node, calls: Calls) -> ast.expr:
    """Expression in Python; `unread` where there is none."""
    reader = _READERS.get(node.type)
    found = reader(node, calls) if reader and not node.has_error else None
    return placed(found, node) if found is not None else unread(node)


def _field(node: Node, name: str, calls: Calls) -> ast.expr:
    child = node.child_by_field_name(name)
    return expression(child, calls) if child is not None else unread(node)


def _number(node: Node, calls: Calls) -> ast.expr | None:
    match = _NUMBER.match(text_of(node))
    if match is None:
        return None
    digits = match.group(1).replace("'", "")
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    return ast.Constant(int(digits, 8 if octal else 0))


def _binary(node: Node, calls: Calls) -> ast.expr | None:
    operator = node.child_by_field_name("operator")
    op = text_of(operator) if operator is not None else ""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if op == "/" and left is not None and right is not None:
        sides = re.fullmatch(r"(?:\w+::)*grid_size_([xyz])\(\)", text_of(left))
        if sides and text_of(right).endswith(f"block_size_{sides.group(1)}()"):  # work-items over those of a workgroup
            return _launch("num_programs", sides.group(1))
    a, b = _field(node, "left", calls), _field(node, "right", calls)
    if op in _BINARY:
        return ast.BinOp(a, _BINARY[op](), b)
    if op in _COMPARE:
        return ast.Compare(a, [_COMPARE[op]()], [b])
    return ast.BoolOp(ast.And() if op == "&&" else ast.Or(), [a, b]) if op in ("&&", "||") else None


def _unary(node: Node, calls: Calls) -> ast.expr | None:
    operator = node.child_by_field_name("operator")
    op = text_of(operator) if operator is not None else ""
    value = _field(node, "argument", calls)
    return value if op == "+" else ast.UnaryOp(_UNARY[op](), value) if op in _UNARY else None


def _choice(node: Node, calls: Calls) -> ast.expr:
    return ast.IfExp(*(_field(node, part, calls) for part in ("condition", "consequence", "alternative")))


def _parenthesized(node: Node, calls: Calls) -> ast.expr | None:
    inner = [one for one in node.named_children if one.type != "comment"]
    return expression(inner[0], calls) if len(inner) == 1 else None


def _record_field(node: Node, calls: Calls) -> ast.expr | None:
    """``blockIdx.x``, or a field of a record of arguments, by its name."""
    record, field = node.child_by_field_name("argument"), node.child_by_field_name("field")
    if record is None or field is None:
        return None
    what, name = text_of(record), text_of(field)
    if what in _RECORDS and name in ("x", "y", "z"):
        return _launch(_RECORDS[what], name)
    if what == "threadIdx" or not name.isidentifier():
        return None
    return ast.Name(f"{what}_{name}" if what == "blockDim" else name, ast.Load())


def _identifier(node: Node, calls: Calls) -> ast.expr | None:
    name = text_of(node).rpartition("::")[2]
    for pattern, what in ((_ID_CALL, "program_id"), (_COUNT_CALL, "num_programs")):
        if match := pattern.match(name):
            return _launch(what, match.group(1))
    return ast.Name(name, ast.Load()) if name.isidentifier() else None


def _call(node: Node, calls: Calls) -> ast.expr | None:
    function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or listed is None:
        return None
    template: list[Node] = []
    if function.type in ("template_function", "qualified_identifier") and "<" in text_of(function):
        inner = next((one for one in [function, *function.named_children] if one.type == "template_function"), function)
        found = inner.child_by_field_name("arguments")
        template = list(found.named_children) if found is not None else []
        function = inner.child_by_field_name("name") or inner
    name = text_of(function).rpartition("::")[2]
    args = [expression(one, calls) for one in listed.named_children if one.type != "comment"]
    return _known_call(name, args) or _own_call(name, args, template, calls)


def _known_call(name: str, args: list[ast.expr]) -> ast.expr | None:
    """Call of what every GPU program knows."""
    axis = _ID_CALL.match(name) or _COUNT_CALL.match(name)
    if axis and not args:
        return _launch("program_id" if _ID_CALL.match(name) else "num_programs", axis.group(1))
    if name in _AXIS_CALLS and len(args) == 1 and isinstance(args[0], ast.Constant):
        return _launch(_AXIS_CALLS[name], "xyz"[int(str(args[0].value))])
    if name in _SAME and len(args) == 1:
        return args[0]
    if name in ("min", "max", "abs"):
        return ast.Call(ast.Name(name, ast.Load()), args, [])
    return ast.Tuple(args, ast.Load()) if _MADE.match(name) and args else None


def _own_call(name: str, args: list[ast.expr], template: list[Node], calls: Calls) -> ast.expr | None:
    """Call of a function of the file, a template's numbers by their names; or of a ceiling division by its name."""
    if name in calls.templates:
        numbers = [expression(_inside(one), calls) for one in template]
        keywords = [ast.keyword(known, value) for known, value in zip(calls.templates[name], numbers, strict=False)]
        return ast.Call(ast.Name(name, ast.Load()), args, keywords)
    if _CEIL.match(name) and len(args) == 2:
        return ast.Call(ast.Name("cdiv", ast.Load()), args, [])
    return ast.Call(ast.Name(name, ast.Load()), args, []) if name.isidentifier() else None


def _inside(node: Node) -> Node:
    """Name or number of a template's argument, which the grammar may take for a type."""
    return node.named_children[0] if node.type == "type_descriptor" and node.named_children else node


def _cast(node: Node, calls: Calls) -> ast.expr:
    return _field(node, "value", calls)


def _listed(node: Node, calls: Calls) -> ast.expr | None:
    parts = [expression(one, calls) for one in node.named_children if one.type != "comment"]
    return ast.Tuple(parts, ast.Load()) if len(parts) > 1 else parts[0] if parts else None


def _made(node: Node, calls: Calls) -> ast.expr | None:
    """``dim3{a, b, c}``, ``int2{a, b}``."""
    value = node.child_by_field_name("value")
    return _listed(value, calls) if value is not None else None


def _launch(what: str, axis: str) -> ast.expr:
    """``tl.program_id(k)`` or ``tl.num_programs(k)``."""
    function = ast.Attribute(ast.Name("tl", ast.Load()), what, ast.Load())
    return ast.Call(function, [ast.Constant("xyz".index(axis))], [])


_READERS: dict[str, Callable[[Node, Calls], ast.expr | None]] = {
    "number_literal": _number,
    "true": lambda node, calls: ast.Constant(1),
    "false": lambda node, calls: ast.Constant(0),
    "identifier": _identifier,
    "type_identifier": _identifier,
    "qualified_identifier": _identifier,
    "binary_expression": _binary,
    "unary_expression": _unary,
    "conditional_expression": _choice,
    "parenthesized_expression": _parenthesized,
    "condition_clause": _parenthesized,
    "field_expression": _record_field,
    "call_expression": _call,
    "cast_expression": _cast,
    "initializer_list": _listed,
    "compound_literal_expression": _made,
}
