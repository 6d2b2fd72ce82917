"""What a piece of C may change beside its value: names that it assigns, hands on by reference, or lets escape.

An allow-list: below a node that is not on it every name counts as changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from swizzle_sim.triton_source.c_calls import PURE, called, divided
from swizzle_sim.triton_source.c_expressions import apart
from swizzle_sim.triton_source.c_names import Names
from swizzle_sim.triton_source.c_types import (
    INT,
    UNSIGNED,
    fields,
    identifiers,
    inside,
    kind_of_type,
    listed_kinds,
    said,
    text_of,
)

ASSIGNS = ("assignment_expression", "update_expression")
MEMORY = ("subscript_expression", "pointer_expression", "field_expression")
_PLAIN = re.compile(
    r"(?:statement|declaration|declarator|literal|identifier|specifier|type|clause|descriptor|qualifier|designator"
    r"|_list|initializer_pair|character|content|sequence|string|comment)$|^(?:true|false|null|this|auto)$"
    r"|^(?:binary|unary|conditional|parenthesized|cast|comma|subscript|field|pointer|sizeof|alignof|call|assignment|update"
    r"|lambda|new|compound_literal)_expression$"
)
_DECLARES = ("function_definition", "function_declarator")  # as which the grammar takes ``f(a) = b``
_LEAVES = {
    "goto_statement", "labeled_statement", "try_statement", "throw_statement", "co_return_statement",
    "co_yield_statement", "co_await_expression", "statement_identifier", "seh_try_statement", "return_statement",
}  # fmt: skip
_ENDS_IN_ASM = re.compile(r"endpgm|\bexit\b|\bret\b|branch|\bbra\b|trap|setpc", re.IGNORECASE)
_HOLDS = re.compile(r"(?:std\s*::\s*)?(addressof|ref|tie|forward_as_tuple)\b")


def target_of(node: Node) -> Node | None:
    """Place that an assignment or a step stores to."""
    return node.child_by_field_name("left" if node.type == "assignment_expression" else "argument")


def stored_names(target: Node | None) -> list[str]:
    """Names that a store to a place changes: all in brackets or a choice, none of an element's or a field's address."""
    return identifiers(target) if target is not None and target.type not in MEMORY else []


def changed(root: Node | None, names: Names) -> Iterator[tuple[str, Node]]:
    """Names that a part of a function may change where it stands, and what changes each."""
    todo = [root] if root is not None else []
    while todo:
        node = todo.pop()
        if node.type in ASSIGNS:
            yield from ((name, node) for name in stored_names(target_of(node)))
        elif node.type == "call_expression":
            yield from ((name, node) for name in _by_call(node, names))
        elif node.type in ("argument_list", "initializer_list"):
            yield from ((name, node) for name in (_bound(node) if _makes_an_object(node, names) else ()))
        elif node.type == "binary_expression" and text_of(node.child_by_field_name("operator")) == ">>":
            left, right = fields(node, "left", "right")
            if not apart(left, names)[0].kind:  # a stream
                yield from ((name, node) for name in _bound(right))
        elif node.type in _DECLARES or not _PLAIN.search(node.type):
            yield from ((text_of(one), node) for one in inside(node) if one.type in ("identifier", "type_identifier"))
            continue
        todo += reversed(node.named_children)


def _by_call(node: Node, names: Names) -> list[str]:
    """Names that a call may change, as it takes them by reference, or since it assigns what the file has."""
    name, given, _ = called(node)
    if (name in PURE and name not in names.calls.unread and names.find(name) is None) or divided(
        node, names
    ) is not None:
        return []
    outside = [*names.outside]
    own = names.own_function(name)
    if own is not None:
        if own.is_whole:
            given = [one for one, wanted in zip(given, own.parameters, strict=False) if not own.keeps(wanted)]
        return [] if handed_out(node, names) else [one for part in given for one in _bound(part)] + outside
    found = names.calls.included(name) if name and names.find(name) is None else None
    if found is not None and not getattr(found, "by_reference", True):
        return outside
    return [one for part in given for one in _bound(part)] + outside


def handed_out(node: Node, names: Names) -> list[str]:
    """Names that a call by itself of a function of the file assigns, which is read; none of any other call."""
    name, given, _ = called(node)
    own = names.own_function(name)
    if own is None or not own.is_whole or own.result or not own.outputs or own.outputs != own.changed:
        return []
    if node.parent is None or node.parent.type != "expression_statement" or len(given) != len(own.parameters):
        return []
    pairs = [*zip(given, own.parameters, strict=True)]
    targets = [text_of(one) for one, wanted in pairs if wanted.name in own.outputs]
    others = [text_of(one).strip("() ") for one, wanted in pairs if wanted.by_reference]
    for one, wanted in pairs:
        variable = names.find(text_of(one))
        if wanted.name in own.outputs and (variable is None or not variable.is_integer or variable.kind != wanted.kind):
            return []
    return targets if len({*others}) == len(others) else []  # two names of one variable


def _bound(node: Node | None) -> list[str]:
    """Names that a reference to a value may be bound to."""
    if node is None or node.type == "identifier":
        return [text_of(node)] if node is not None else []
    if node.type in ("parenthesized_expression", "conditional_expression", "comma_expression", "initializer_list",
                     "argument_list", "call_expression", "cast_expression", "pointer_expression", *ASSIGNS,
                     "compound_literal_expression", "parameter_pack_expansion", "condition_clause"):  # fmt: skip
        return [name for one in node.named_children for name in _bound(one)]
    return []


def _makes_an_object(node: Node, names: Names) -> bool:
    """Whether a list is what an object of an unknown class is made from."""
    parent = node.parent
    if parent is None or parent.type not in ("init_declarator", "compound_literal_expression", "new_expression"):
        return False
    holder = parent.parent if parent.type == "init_declarator" else parent
    kind = text_of(holder.child_by_field_name("type")) if holder is not None else ""
    return not (kind_of_type(kind, names.calls.aliases) or listed_kinds(kind, names.calls.aliases))


def escaped(body: Node, names: Names) -> Iterator[tuple[str, str, Node]]:
    """Names that something else than their own statements may change at any time, and what."""
    numbers = _numbers(body, names)
    for node in inside(body):
        target, value = fields(node, "declarator", "value")
        found: list[str] = []
        whole = node
        if node.type == "pointer_expression" and text_of(node).startswith("&"):
            found = _bound(node.child_by_field_name("argument"))
            listed = node.parent if node.parent is not None and node.parent.type == "argument_list" else None
            whole = listed.parent if listed is not None and listed.parent is not None else node
        elif node.type == "for_range_loop":
            found = _bound(node.child_by_field_name("right"))
        elif node.type == "init_declarator" and target is not None and _may_hold(node, target, names, numbers):
            found = _bound(value)
        elif node.type == "call_expression" and _HOLDS.match(text_of(node)):
            found = identifiers(node)
        elif node.type == "template_function" and text_of(node).startswith("const_cast") and node.parent is not None:
            found = [text_of(one) for one in inside(node.parent) if one.type.endswith("identifier")]  # const ones, too
        elif node.type == "lambda_expression":
            own = {text_of(one) for part in inside(node) for one in part.children_by_field_name("declarator")}
            found = [name for name, _ in changed(node.child_by_field_name("body"), names) if name not in own]
            found += [one for part in inside(node.child_by_field_name("captures")) if part.type.endswith("initializer")
                      and text_of(part).startswith("&") for one in identifiers(part)]  # fmt: skip
        yield from ((name, said(whole)[:80], node) for name in found)


def _numbers(body: Node, names: Names) -> set[str]:
    """Names of integers alone: parameters, constants of the file, and what every declaration gives such a type."""
    found = {one.name for one in names.scopes[0].values() if one.kind in (INT, UNSIGNED)} | names.calls.constants.keys()
    odd: set[str] = set()
    for node in inside(body):
        kind = kind_of_type(text_of(node.child_by_field_name("type")), names.calls.aliases)
        for one in node.children_by_field_name("declarator") if node.type.endswith("declaration") else ():
            plain = one.child_by_field_name("declarator") if one.type == "init_declarator" else one
            is_number = plain is not None and plain.type == "identifier" and kind in (INT, UNSIGNED)
            (found if is_number else odd).update(identifiers(plain)[:1])
    return found - odd


def _may_hold(node: Node, target: Node, names: Names, numbers: set[str]) -> bool:
    """Whether what is declared may hold a reference to what it is made from."""
    if "reference" in target.type or "pointer" in target.type:
        return True
    kind = text_of(node.parent.child_by_field_name("type")) if node.parent is not None else ""
    value = node.child_by_field_name("value")
    if kind == "auto" and value is not None and value.type == "call_expression":
        own = names.own_function(called(value)[0])  # an object, where something is called of it or with it
        return not (own is not None and own.result) and _is_used_as_object(node, text_of(target))
    if kind == "auto" and value is not None and value.type in ("identifier", "conditional_expression"):
        sides = [value] if value.type == "identifier" else fields(value, "consequence", "alternative")
        return any(text_of(one) not in numbers for one in sides)  # else a copy of a number
    return not (kind_of_type(kind, names.calls.aliases) or listed_kinds(kind, names.calls.aliases))


def _is_used_as_object(node: Node, name: str) -> bool:
    while node.parent is not None and node.type != "function_definition":
        node = node.parent
    return re.search(rf"\b{re.escape(name)}\s*(?:\.|->|\()|[(,]\s*{re.escape(name)}\s*[,)]", text_of(node)) is not None


def function_around(node: Node) -> Node:
    """Function or lambda that a node stands in."""
    parent = node.parent
    return (
        node if parent is None or node.type in ("function_definition", "lambda_expression") else function_around(parent)
    )


def leaving(node: Node) -> Node | None:
    """Part of a statement that may leave the function, or that a macro may be which does."""
    for one in inside(node):
        if one.type == "return_statement" and function_around(one).type == "lambda_expression":
            continue
        if one.type in _LEAVES or ("asm" in one.type and _ENDS_IN_ASM.search(text_of(one))):
            return one
        if one.type == "expression_statement" and [part.type for part in one.named_children] == ["identifier"]:
            return one
    return None
