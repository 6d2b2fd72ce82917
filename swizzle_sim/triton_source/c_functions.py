"""Heads of functions of C: names, parameters, numbers of templates, and what is returned."""

from __future__ import annotations

import ast
import re

from tree_sitter import Node

from swizzle_sim.triton_source.c_expressions import converted, value_of
from swizzle_sim.triton_source.c_names import Calls, Function, Names, Variable, placed, unread
from swizzle_sim.triton_source.c_types import (
    BOOL,
    DEDUCED,
    INT,
    RECORD,
    UNKNOWN,
    UNSIGNED,
    fields,
    inside,
    kind_of_type,
    last_name,
    listed_kinds,
    parts,
    said,
    text_of,
)

_STANDARD = re.compile(r"\{ return \(?(\w+) ?([<>]=?) ?(\w+)\)? ?\? ?(\w+) ?: ?(\w+)\)?; \}$")
_PARAMETERS = ("parameter_declaration", "optional_parameter_declaration")


def function_of(node: Node, calls: Calls) -> Function:
    """What a definition of a function says of its calls."""
    known = [parameter_of(one, calls) for one in listed(node)]
    template = [parameter_of(one, calls) for one in template_nodes(node)]
    numbers = [one if one is not None and one.kind in (INT, UNSIGNED, BOOL) else None for one in template]
    parameters = [one for one in known if one is not None]
    types = {text_of(part) for one in template_nodes(node) for part in parts(one) if part.type == "type_identifier"}
    copied = {known.name for one, known in zip(listed(node), known, strict=True)
              if known is not None and text_of(one.child_by_field_name("type")) in {*types, "auto"}}  # fmt: skip
    return Function(name_of(node), node, parameters, numbers, _result(node, calls), len(parameters) == len(known),
                    frozenset(copied), (*listed_kinds(_type_of_result(node), calls.aliases),))  # fmt: skip


def is_standard(name: str, function: Function) -> bool:
    """Whether a function is what everybody means by its name: the smaller or the larger of its two parameters."""
    found = _STANDARD.search(said(function.node))
    if found is None or len(function.parameters) != 2:
        return False
    left, op, right, yes, no = found.groups()
    smaller = (left, right) if "<" in op else (right, left)
    return {left, right} == {one.name for one in function.parameters} and (
        (yes, no) == (smaller if name == "min" else smaller[::-1])
    )


def parameter_of(node: Node, calls: Calls) -> Variable | None:
    """Parameter of a function or lambda; None for what is none. Its ``why`` says why it is not read."""
    if node.type not in _PARAMETERS:
        return None
    declarator, of_type = fields(node, "declarator", "type")
    name = declarator
    while name is not None and name.type != "identifier":
        inner = name.child_by_field_name("declarator")
        name = inner or next((one for one in name.named_children if one.type != "type_qualifier"), None)
    if name is None or declarator is None or of_type is None:
        return Variable(f"unnamed_{node.start_byte}", UNKNOWN, is_const=True)
    words = {text_of(one) for one in node.named_children if one.type == "type_qualifier"}
    is_reference = declarator.type == "reference_declarator"
    is_const = "const" in words and not (is_reference and calls.casts)
    kind = kind_of_type(text_of(of_type), calls.aliases)
    if text_of(of_type) == "auto" and (is_const or not is_reference):
        kind = UNSIGNED  # of whichever sign: no launch passes where it matters
    made = Variable(text_of(name), kind, is_const, by_reference=is_reference)
    if not kind and (declarator.type == "identifier" or is_reference):
        if is_reference or not (narrow := of_type.type in ("primitive_type", "sized_type_specifier")):
            return made._replace(kind=UNKNOWN if text_of(of_type) in calls.aliases and not is_reference else RECORD)
        return made._replace(why=said(node) * narrow)
    if not (declarator.type == "identifier" or is_reference) or words - {"const", "constexpr"}:
        return Variable(
            text_of(name), UNKNOWN, why=f"pointer {said(node)}", by_reference="reference" in declarator.type
        )
    return made


def declarator_of(node: Node) -> Node | None:
    """Declarator of a function, below those of pointers and references."""
    found = node.child_by_field_name("declarator")
    while found is not None and not found.type.endswith("function_declarator"):  # or that of a lambda, abstract
        found = found.child_by_field_name("declarator") or next(
            (one for one in found.named_children if one.type.endswith("declarator")), None
        )
    return found


def name_of(node: Node) -> str:
    """Name of a function; empty where it is none."""
    declarator = declarator_of(node)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    if name is not None and name.type == "template_function":
        name = name.child_by_field_name("name") or name
    last = text_of(name).rpartition("::")[2].strip()
    return last if last.isidentifier() else ""


def signature(node: Node) -> str:
    """Types of a function's parameters, as they are written."""
    kinds = []
    for one in listed(node):
        name, kind = fields(one, "declarator", "type")
        marks = re.sub(r"\w+", "", text_of(name).partition("=")[0])
        kinds.append(f"{text_of(kind)}{marks}".replace(" ", ""))
    return ",".join(kinds)


def listed(node: Node) -> list[Node]:
    """Parameters of a function as they stand."""
    declarator = declarator_of(node)
    return parts(declarator.child_by_field_name("parameters")) if declarator is not None else []


def template_nodes(node: Node) -> list[Node]:
    """Parameters of a function's template as they stand."""
    parent = node.parent
    is_template = parent is not None and parent.type == "template_declaration"
    return parts(parent.child_by_field_name("parameters")) if parent is not None and is_template else []


def of_class(node: Node, calls: Calls) -> list[Variable]:
    """Numbers that the templates of the classes around a function are made with, which hide what the file has."""
    found: list[Variable] = []
    parent = node.parent
    while parent is not None:
        if parent.type == "template_declaration" and node.parent != parent:
            made = [parameter_of(one, calls) for one in parts(parent.child_by_field_name("parameters"))]
            found += [one._replace(kind=UNSIGNED) for one in made if one is not None and one.kind in (INT, UNSIGNED)]
        parent = parent.parent
    return found


def around(node: Node | None) -> Node | None:
    """Class that a node stands in."""
    while node is not None and node.type not in ("class_specifier", "struct_specifier"):
        node = node.parent
    return node


def class_of(node: Node) -> str:
    """Name of the class that a declaration stands in."""
    found = around(node)
    return last_name(found.child_by_field_name("name")) if found is not None else ""


def _type_of_result(node: Node) -> str:
    """Type that a function says it returns, before its name or behind its parameters."""
    behind = next((one for one in parts(declarator_of(node)) if one.type == "trailing_return_type"), None)
    return said(behind).removeprefix("->").strip() if behind else text_of(node.child_by_field_name("type"))


def _result(node: Node, calls: Calls) -> str | None:
    """Kind of what a function returns: empty for nothing or a list of integers, None for what is not read."""
    kind, outer = fields(node, "type", "declarator")
    text = _type_of_result(node)
    if kind is None or text in ("void", "auto") or listed_kinds(text, calls.aliases):
        return "" if text != "auto" else DEDUCED
    if outer is not None and outer.type != "function_declarator":  # a pointer or a reference
        return None
    return kind_of_type(text, calls.aliases) or None


def unmodelled(function: Function) -> tuple[str, int] | None:
    """Construct of a function that it cannot be read with, and its line."""
    node = function.node
    if function.result is None:
        return text_of(node.child_by_field_name("type")), node.start_point[0] + 1
    for one in inside(node):
        odd = one.type in ("attribute_specifier", "attribute_declaration", "ms_declspec_modifier")
        odd = odd or one.type == "parameter_pack_expansion" or one.type.startswith("variadic")
        if odd or one.type == "ERROR" or one.is_missing:
            return said(one)[:60] or "a missing bracket", one.start_point[0] + 1
    return None


def definition(function: Function, name: str, handed: dict[str, ast.expr], body: list[ast.stmt]) -> ast.FunctionDef:
    """Function of Python; the template's numbers, and what it hands out, are parameters by name."""
    node = function.node
    parameters = [one.name for one in function.parameters if one.name not in handed]
    numbers = [*(one.name for one in function.template if one is not None), *handed]
    defaults = dict(handed)
    for one in [*listed(node), *template_nodes(node)]:
        known, value = parameter_of(one, Calls()), one.child_by_field_name("default_value")
        if known is not None and value is not None:
            names = Names(Calls())
            tree = converted(value_of(value, names), known.kind, value, names)
            defaults[known.name] = tree if not names.before else unread(value)
    plain, keywords = ([placed(ast.arg(one), node) for one in part] for part in (parameters, numbers))
    last = [defaults[one] for one in parameters if one in defaults]
    given = ast.arguments([], plain, None, keywords, [defaults.get(one) for one in numbers], None, last)
    return placed(ast.FunctionDef(name, given, body, []), node)
