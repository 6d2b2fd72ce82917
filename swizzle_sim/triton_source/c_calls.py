"""Calls in expressions of C: functions of the file and its lambdas, casts, builtins, and objects that divide."""

from __future__ import annotations

import ast
import re

from tree_sitter import Node

from swizzle_sim.triton_source.c_expressions import (
    READERS,
    both,
    cast_to,
    converted,
    divisor,
    expression,
    launch,
    of_launch,
    tuple_of,
    value_of,
)
from swizzle_sim.triton_source.c_functions import around, of_class
from swizzle_sim.triton_source.c_names import Function, Names, Value, Variable, assigned, named, placed, unread
from swizzle_sim.triton_source.c_types import (
    BOOL,
    CASTS,
    DEDUCED,
    INT,
    OPEN,
    RECORD,
    UNKNOWN,
    UNSIGNED,
    fields,
    inside,
    kind_of_type,
    last_name,
    parts,
    said,
    text_of,
)

_AXIS_CALLS = {"get_group_id": "program_id", "__ockl_get_group_id": "program_id", "get_num_groups": "num_programs"}
_SAME = {"__builtin_amdgcn_readfirstlane", "readfirstlane", "amd_wave_read_first_lane"}
_MADE = re.compile(r"^(make_(u?int|u?long|tuple|pair|coord)[234]?|dim3|u?int[234]|tuple|pair|make_multi_index)$")
BUILTINS = ("min", "max", "abs")
_DIVIDES = {"": 3, "divmod": 2, "div": 1, "divide": 1, "rem": 1}  # arguments of each word
# Calls that leave their arguments as they are.
PURE = {
    *BUILTINS, "printf", "assert", "static_cast", "__builtin_expect", "__builtin_assume", *_SAME, *CASTS,
}  # fmt: skip


def called(node: Node) -> tuple[str, list[Node], list[Node]]:
    """Name of a called function, its arguments, and those of its template; no name for what has none."""
    function, listed = fields(node, "function", "arguments")
    while function is not None and function.type == "qualified_identifier":
        scope, function = fields(function, "scope", "name")
        if "<" in text_of(scope):  # of a class's template
            return "", parts(listed), []
    if function is None or function.type not in ("identifier", "template_function", "primitive_type"):
        return "", parts(listed), []
    return last_name(function), parts(listed), parts(function.child_by_field_name("arguments"))


def _call(node: Node, names: Names) -> Value | None:  # noqa: PLR0911 - one a kind
    if (by := _divided(node, names)) is not None:
        return by
    name, given, template = called(node)
    if name in names.calls.unread:
        return Value(unread(node, names.calls.unread[name]), UNKNOWN)
    own = names.own_function(name)
    if own is None:
        return _known_call(name, given, template, node, names) if name and names.find(name) is None else None
    other = names.calls.included(name) if names.find(name) is None else None
    if other is not None and getattr(other, "said", "") != " ".join(text_of(own.node).split()):
        return None
    keywords = numbers_of(own, template, names)
    is_of_template = names.calls.alike or bool(of_class(own.node, names.calls))
    of_other = is_of_template and around(own.node) not in (None, around(node))  # which has other numbers, maybe
    odd = own.changed or not own.is_whole or len(given) > len(own.parameters) or of_other or own.result == DEDUCED
    if odd or keywords is None or not agrees(own, given, names):
        return None
    values = [(value_of(one, names), parameter) for one, parameter in zip(given, own.parameters, strict=False)]
    if any(value.kind == BOOL and parameter.name in own.types for value, parameter in values):
        return None
    args = [given_to(parameter, value, node, names) for value, parameter in values]
    call = ast.Call(ast.Name(own.name, ast.Load()), args, keywords)
    call.kinds = own.kinds  # type: ignore[attr-defined]
    return Value(call, own.result if own.result and own.result != RECORD else UNKNOWN)


def agrees(own: Function, given: list[Node], names: Names) -> bool:
    """Whether each field that a called function reads is of the record that has its name in the caller, too."""
    same = all(wanted.kind != RECORD or text_of(one) == wanted.name
               for one, wanted in zip(given, own.parameters, strict=False))  # fmt: skip
    body = own.node.child_by_field_name("body")
    read = {text_of(one.child_by_field_name("field")) for one in inside(body) if one.type == "field_expression"}
    return not read or (same and not read & names.calls.vague)


def given_to(parameter: Variable, value: Value, node: Node, names: Names) -> ast.expr:
    """Argument as its parameter takes it."""
    return converted(value, parameter.kind, node, names) if value.kind and parameter.kind else value.tree


def numbers_of(function: Function, template: list[Node], names: Names) -> list[ast.keyword] | None:
    """Numbers that a function's template is given, by their names; None where they do not fit."""
    if len(template) > len(function.template):
        return None
    pairs = zip(function.template, template, strict=False)
    return [ast.keyword(known.name, given_to(known, value_of(_number_in(one), names), one, names))
            for known, one in pairs if known is not None]  # fmt: skip


def _number_in(node: Node) -> Node:
    """Name or number of a template's argument, which the grammar may take for a type."""
    return node.named_children[0] if node.type == "type_descriptor" and node.named_children else node


def _known_call(name: str, given: list[Node], template: list[Node], node: Node, names: Names) -> Value | None:  # noqa: PLR0911 - one a kind
    """Call of what every GPU program knows."""
    if not given and (found := launch(name)) is not None:
        return found
    args = [value_of(one, names) for one in given]
    if name in _AXIS_CALLS and len(args) == 1 and isinstance(args[0].tree, ast.Constant):
        number = args[0].tree.value
        return of_launch(_AXIS_CALLS[name], "xyz"[int(str(number))]) if number in (0, 1, 2) else None
    if name == "static_cast" and len(args) == len(template) == 1:
        return cast_to(text_of(template[0]), args[0], node, names)
    if name in CASTS and len(args) == 1 and not template:
        return cast_to(name, args[0], node, names)
    if any(not one.is_number for one in args) or not name.isidentifier() or name.startswith(OPEN):
        return None
    if _MADE.match(name) and args:
        kinds = [kind_of_type(text_of(one), names.calls.aliases) for one in template]
        if not all(kinds):
            return None
        return tuple_of(args, kinds or [UNSIGNED] * len(args) * bool(re.match("dim3|(make_)?u", name)), node, names)
    kind = INT
    for one in args:
        kind = both(kind, one.kind)
    if name in _SAME and len(args) == 1:
        return Value(args[0].tree, kind)
    head = getattr(names.calls.included(name), "head", None) if name not in BUILTINS else None
    if head is not None and head.result in (INT, UNSIGNED, BOOL, DEDUCED):  # of a header, with its types
        trees = [given_to(one, value, node, names) for one, value in zip(head.parameters, args, strict=False)]
        fits = len(trees) == len(args) and head.result != DEDUCED and not template
        return Value(ast.Call(ast.Name(name, ast.Load()), trees, []), head.result) if fits else None
    call = ast.Call(ast.Name(name, ast.Load()), [converted(one, kind, node, names) for one in args], [])
    if name in BUILTINS:
        other = names.calls.included(name)
        if other is not None and not getattr(other, "is_standard", False):
            return None
        call.is_builtin = True  # type: ignore[attr-defined]
    return Value(call, kind) if not template else None


def divided(node: Node | None, names: Names) -> tuple[ast.expr, list[Variable], Node, str] | None:
    """Divisor, variables that are assigned, number and word of a call of an object that divides; None of others.

    ``a.divmod(remainder, number)`` is the quotient, ``a(quotient, remainder, number)`` assigns both; ``a.div(number)``
    and ``a.rem(number)`` assign nothing: the library's own, by the names of its types. CK's
    ``a.divmod(number, quotient, remainder)`` assigns both, and may be told behind the number what it was made for.
    """
    if node is None or node.type != "call_expression" or names.has_lambda:
        return None
    of, listed = fields(node, "function", "arguments")
    word = ""
    if of is not None and of.type == "field_expression":
        inner, part = fields(of, "argument", "field")
        word = text_of(part) if text_of(part) in _DIVIDES else ""
        of = inner if word else of
    given, made_for = parts(listed), None
    name = text_of(of).rpartition(".")[2]
    if of is not None and name in names.calls.magic and word == "divmod" and len(given) in (3, 4):
        made_for, word, given = (given[1] if len(given) == 4 else None), "", [*given[-2:], given[0]]
    elif of is None or len(given) != _DIVIDES[word] or name not in names.calls.divmods | names.calls.magic:
        return None
    targets = [names.find(text_of(one)) for one in given[:-1]]
    known = [one for one in targets if one is not None and one.is_integer and not one.is_const]
    outer = node.parent
    while outer is not None and outer.type in ("parenthesized_expression", "argument_list"):
        outer = outer.parent
    alone = outer is not None and outer.type in ("init_declarator", "assignment_expression", "expression_statement")
    alone = alone or divided(outer, names) is not None
    if len(known) < len(targets) or len({*known}) < len(known) or (targets and not alone):
        return None
    by = expression(made_for, names) if made_for is not None else divisor(of, names)
    if by is not None and made_for is not None:
        by.believed = f"{name} was made for {said(made_for)}"  # type: ignore[attr-defined]
    return (by, known, given[-1], word) if by is not None else None


def _divided(node: Node, names: Names) -> Value | None:
    """Value of a call of an object that divides; what it assigns goes before."""
    found = divided(node, names)
    if found is None:
        return None
    by, targets, place, word = found
    number = named(names.set_before(converted(value_of(place, names), UNSIGNED, node, names), node), node)
    both_parts = [placed(ast.BinOp(number, op, by), node) for op in (ast.FloorDiv(), ast.Mod())]
    quotient = names.set_before(both_parts[word == "rem"], node)
    for variable, value in zip(targets, both_parts[1:] if word else both_parts, strict=False):
        names.before.append(assigned(variable.name, value, node))
    return Value(named(quotient, node), UNSIGNED)


READERS["call_expression"] = _call
