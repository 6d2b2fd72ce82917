"""What a function of C hands out through its parameters, other than by plain references.

A pointer to an integer that is only ever dereferenced is a reference under another spelling: the text is put as one,
with its columns. What is handed out by a vector or an array (``int2& out``, ``int (&out)[2]``) is not read, but named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from swizzle_sim.triton_source.c_types import INT, UNSIGNED, inside, kind_of_type, text_of

_KERNEL = re.compile(r"__global__|__kernel\b|\b[A-Z]+_GLOBAL\b")


def as_references(root: Node, text: str, written: str) -> str:
    """Text in which ``int* p`` that is only used as ``*p`` is ``int& p``, and ``&a`` in its place of a call is ``a``.

    ``written`` is the text with the words that the grammar does not know; its lines are the same.
    """
    data, lines = bytearray(text.encode("utf-8")), written.split("\n")
    places: dict[str, set[int]] = {}  # of such parameters of each function
    for one in inside(root):
        if one.type == "function_definition" and not is_kernel(one, lines):
            name, found = _put(one, data)
            places[name] = places[name] & found if name in places else found
    for one in inside(root):
        function, listed = one.child_by_field_name("function"), one.child_by_field_name("arguments")
        if one.type != "call_expression" or function is None or listed is None:
            continue
        given = [part for part in listed.named_children if part.type != "comment"]
        for k in places.get(text_of(function), ()):
            inner = given[k].child_by_field_name("argument") if k < len(given) else None
            if inner is not None and inner.type == "identifier" and text_of(given[k]).startswith("&"):
                data[given[k].start_byte] = ord(" ")
    return data.decode("utf-8")


def is_kernel(node: Node, lines: Sequence[str]) -> bool:
    """Whether a function is a kernel, by the words before it, whose pointers are of memory."""
    before = node.prev_sibling.end_point[0] if node.prev_sibling is not None else 0
    return _KERNEL.search("\n".join(lines[before : node.start_point[0] + 1])) is not None


def _put(function: Node, data: bytearray) -> tuple[str, set[int]]:
    """Put the pointers of one function as references; returns its name, and which parameters they are."""
    body, declarator = function.child_by_field_name("body"), function.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    found: set[int] = set()
    if body is None or name is None or listed is None or name.type != "identifier":
        return "", found
    for k, one in enumerate(part for part in listed.named_children if part.type != "comment"):
        pointer, kind = one.child_by_field_name("declarator"), one.child_by_field_name("type")
        inner = pointer.child_by_field_name("declarator") if pointer is not None else None
        if pointer is None or kind is None or inner is None or pointer.type != "pointer_declarator":
            continue
        uses = [use for use in inside(body) if use.type == "identifier" and text_of(use) == text_of(inner)]
        stars = [use.parent for use in uses if use.parent is not None and use.parent.type == "pointer_expression"
                 and text_of(use.parent).startswith("*")]  # fmt: skip
        is_set = any(star.parent is not None and star.parent.type == "assignment_expression"
                     and star.parent.child_by_field_name("left") == star for star in stars)  # fmt: skip
        is_plain = is_set and inner.type == "identifier" and kind_of_type(text_of(kind), {}) in (INT, UNSIGNED)
        if is_plain and "const" not in text_of(one) and len(stars) == len(uses):
            data[pointer.start_byte] = ord("&")
            for star in stars:
                data[star.start_byte] = ord(" ")
            found.add(k)
    return text_of(name), found


def handed_out(body: Node, parameters: set[str]) -> list[Node]:
    """Stores to two parts of a parameter or more, ``out.x = a``, ``out[0] = a``, or of a list, ``out.at = {a, b}``."""
    found = []
    for one in inside(body):
        target = one.child_by_field_name("left") if one.type == "assignment_expression" else None
        if target is None or target.type not in ("field_expression", "subscript_expression", "pointer_expression"):
            continue
        base = next((part for part in inside(target) if part.type in ("identifier", "this")), None)
        others = [part for part in inside(target) if part.type == "identifier"]
        if base is not None and text_of(base) in parameters and len(others) == 1:
            found.append(one)
    values = [one.child_by_field_name("right") for one in found]
    lists = [value for value in values if value is not None and value.type == "initializer_list"]
    return found if len(found) > 1 or lists else []


def handed_name(node: Node) -> str:
    """Name of Python for the part of a parameter that an assignment stores to."""
    return re.sub(r"\W+", "_", text_of(node.child_by_field_name("left"))).strip("_")
