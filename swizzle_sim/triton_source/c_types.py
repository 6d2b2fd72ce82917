"""Nodes of the parser, and types that the reader models: what a value of each is in a signed 32-bit integer.

A value of an unsigned type is the same number as long as it is not negative; where a program may make it negative the
reader puts a guard (see `c_expressions`). Narrow types wrap, floats round: none of these is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from tree_sitter import Language, Node, Parser

OPEN = "unread_macro__"  # before the name of a macro whose value nothing decides
INT, UNSIGNED, BOOL = "int", "unsigned", "bool"
RECORD = "record"  # of a class that is not known: its fields are read, itself it is no number
UNKNOWN = ""
DEDUCED = "auto"  # of a function whose type its returns decide, until they are read
_INT = {
    "int", "signed", "signed int", "int32_t", "long", "long int", "signed long", "long long", "long long int",
    "signed long long", "int64_t", "ptrdiff_t", "intptr_t", "ssize_t", "index_t", "long_index_t", "i32", "i64",
}  # fmt: skip
_UNSIGNED = {
    "unsigned", "unsigned int", "uint", "uint32_t", "unsigned long", "unsigned long int", "unsigned long long",
    "unsigned long long int", "ulong", "uint64_t", "size_t", "uintptr_t", "u32", "u64",
}  # fmt: skip
_LISTED = re.compile(r"^(?:dim3|u?int[234]|(?:Gemm|Matrix)Coord|(?:tuple|pair)<(.*)>)$")
_QUALIFIERS = re.compile(r"\b(?:const|constexpr|inline|typename|std|ck|ck_tile|cute|cutlass|static|register)\b|::")
CASTS = (*(_INT | _UNSIGNED), "bool")


def plain_type(text: str) -> str:
    """Type without qualifiers, in single spaces."""
    return " ".join(_QUALIFIERS.sub(" ", text).split())


def kind_of_type(text: str, aliases: Mapping[str, str]) -> str:
    """Kind of values of a type; `UNKNOWN` for every type that is not on the list."""
    name = plain_type(text)
    for _ in range(8):
        if name not in aliases:
            break
        name = plain_type(aliases[name])
    if name == "bool":
        return BOOL
    return INT if name in _INT else UNSIGNED if name in _UNSIGNED else UNKNOWN


def listed_kinds(text: str, aliases: Mapping[str, str]) -> list[str]:
    """Kinds of a list of integers, such as ``dim3`` or ``pair<int, int>``; none of any other type."""
    name = plain_type(text).replace(" ", "")
    match = _LISTED.match(name)
    if match is None or name in aliases:
        return []
    if match.group(1) is None:
        return [UNSIGNED if name[0] in "du" else INT] * 4
    kinds = [kind_of_type(part, aliases) for part in match.group(1).split(",")]
    return kinds if all(kinds) else []


def aliases_in(text: str) -> dict[str, str]:
    """Names that ``using`` and ``typedef`` give to types; of a name with two meanings, one that is no type."""
    found: dict[str, str] = {}
    pairs = [*re.findall(r"\busing\s+(\w+)\s*=\s*([^;{}()]+);", text)]
    pairs += [(name, what) for what, name in re.findall(r"\btypedef\s+([^;{}()]+?)\s+(\w+)\s*;", text)]
    for name, what in pairs:
        known = plain_type(what)
        found[name] = known if found.get(name, known) == known else "?"
    defined = re.findall(r"\b(?:class|struct)\s+(\w+)(?:\s*final)?\s*[:{]", text)
    return found | {
        name: "?" for name in defined if listed_kinds(name, {})
    }  # the file's own, of which nothing is known


def divmods_in(text: str, word: str = r"FastDivmod\w*") -> frozenset[str]:
    """Names of objects that divide by a number of theirs, of a library's types: CUTLASS's, or CK's ``MDiv``."""
    if re.search(rf"\b(?:class|struct)\s+{word}", text):
        return frozenset()
    listed = re.findall(rf"\b{word}\s+(?:const\b\s*)?&?\s*((?:\w+\s*,\s*)*\w+)\s*[;,)({{=]", text)
    return frozenset(name for names in listed for name in re.split(r"\s*,\s*", names))


def text_of(node: Node | None) -> str:
    """Text of a node; of none, none."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def said(node: Node | None) -> str:
    """Text of a node in single spaces."""
    return " ".join(text_of(node).split())


def last_name(node: Node | None) -> str:
    """Name at the end of ``a::b::name<numbers>``."""
    return text_of(node).partition("<")[0].rpartition("::")[2].strip()


def fields(node: Node, *names: str) -> list[Node | None]:
    """Parts of a node by the grammar's names for them."""
    return [node.child_by_field_name(name) for name in names]


def parts(node: Node | None) -> list[Node]:
    """Parts of a node, without comments; of none, none."""
    return [one for one in node.named_children if one.type != "comment"] if node is not None else []


def inside(root: Node | None) -> Iterator[Node]:
    """Every node below one, itself first, in the order of the text."""
    todo = [root] if root is not None else []
    while todo:
        node = todo.pop()
        yield node
        todo += reversed(node.named_children)


def identifiers(root: Node | None) -> list[str]:
    """Names of variables that stand below a node."""
    return [text_of(one) for one in inside(root) if one.type == "identifier"]


@cache
def parser() -> Parser:
    """Parser of C++."""
    import tree_sitter_cpp  # noqa: PLC0415 - with its compiled grammar

    return Parser(Language(tree_sitter_cpp.language()))
