"""Functions of C, C++, CUDA and HIP as Python's syntax tree, which the one reader of prologues reads.

Nothing is compiled or preprocessed. Tree-sitter parses what a file says, macros and all; `c_statements` says it in
Python, with the lines of the file. A function-like macro is a function, an object-like one a constant, a template's
numbers are parameters. What has no counterpart is kept as `c_expressions.unread`, and refused where a tile needs it.
"""

from __future__ import annotations

import ast
import re
from functools import cache

from tree_sitter import Language, Node, Parser

from swizzle_sim.triton_source.c_expressions import Calls, expression, named, placed, text_of
from swizzle_sim.triton_source.c_statements import Statements
from xcd_model.errors import LanguageError

# Words of CUDA, HIP and libraries before a function, which the grammar of C++ does not know: blanked, so that columns
# stay.
_WORDS = re.compile(
    r"__(?:global|device|host|forceinline|inline|noinline|restrict|constant|shared)__"
    r"|__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)|__attribute__\s*\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)"
    r"|\b(?:[A-Z][A-Z0-9_]*_)?(?:DEVICE|HOST_DEVICE|HOST|FORCEINLINE|INLINE|HD)\b|\bOPUS_(?:D|H|H_D)\b"
    r"|#pragma[^\n]*"
)
_MOST_BYTES = 4_000_000


def tree_of_c(text: str, filename: str) -> ast.Module:
    """Functions and constants of a file, as Python's syntax tree says them."""
    if len(text) > _MOST_BYTES:
        raise LanguageError(f"{len(text)} characters: no source that people write", filename=filename, code="limit")
    if "\0" in text:
        raise LanguageError("no C: it has a null byte", filename=filename, code="syntax")
    plain = _WORDS.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    root = _parser().parse(plain.encode("utf-8")).root_node
    return _File(root).module()


@cache
def _parser() -> Parser:
    import tree_sitter_cpp  # noqa: PLC0415 - with its compiled grammar

    return Parser(Language(tree_sitter_cpp.language()))


class _File:
    """Functions and constants of one parsed file."""

    def __init__(self, root: Node):
        self.definitions = [node for node in _walk(root) if node.type == "function_definition"]
        self.macros = [node for node in _walk(root) if node.type in ("preproc_function_def", "preproc_def")]
        self.declared = [node for node in _walk(root, inside_functions=False) if node.type == "declaration"]
        self.calls = Calls({name: _template_of(node) for node in self.definitions if (name := _name_of(node))})
        self.calls.outputs |= {
            name: _references(node) for node in self.definitions if (name := _name_of(node)) and _returns_nothing(node)
        }

    def module(self) -> ast.Module:
        body: list[ast.stmt] = []
        for node in sorted([*self.declared, *self.macros], key=lambda one: one.start_byte):
            is_macro = node.type.startswith("preproc")
            body += self._macro(node) if is_macro else Statements(self.calls).statement(node)
        seen: dict[str, int] = {}
        for node in self.definitions:
            name = _name_of(node)
            if name and (block := node.child_by_field_name("body")) is not None:
                seen[name] = seen.get(name, 0) + 1
                unique = name if seen[name] == 1 else f"{name}_{seen[name]}"
                body += self._function(node, unique, block)
        return ast.Module(body, [])

    def _function(self, node: Node, name: str, block: Node) -> list[ast.stmt]:
        outputs = self.calls.outputs.get(_name_of(node), ())
        statements = Statements(self.calls, outputs)
        body = statements.block(block)
        if outputs:
            body.append(statements.result(block))
        parameters = [one for one in _parameters(node) if one[0] not in outputs]
        plain = _function_def(name, [*parameters, *_template_of(node).items()], body or [ast.Pass()], node)
        return [*statements.functions, plain]

    def _macro(self, node: Node) -> list[ast.stmt]:
        """Function or constant of a macro whose text is one expression."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None:
            return []
        found = parsed_expression(text_of(value), self.calls)
        if found is None:
            return []
        for part in ast.walk(found):
            if hasattr(part, "lineno"):
                part.lineno = node.start_point[0] + 1
        parameters = node.child_by_field_name("parameters")
        if parameters is None:
            return [placed(ast.Assign([named(text_of(name), node, ast.Store())], found), node)]
        given: list[tuple[str, ast.expr | None]] = [(text_of(one), None) for one in parameters.named_children]
        return [_function_def(text_of(name), given, [placed(ast.Return(found), node)], node)]


def parsed_expression(text: str, calls: Calls) -> ast.expr | None:
    """Expression of a macro's text; None where it is no expression."""
    root = _parser().parse(f"int macro = ({text});".encode()).root_node
    if root.has_error:
        return None
    found = next((node for node in _walk(root) if node.type == "init_declarator"), None)
    value = found.child_by_field_name("value") if found is not None else None
    return expression(value, calls) if value is not None else None


def _walk(root: Node, *, inside_functions: bool = True) -> list[Node]:
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        found.append(node)
        if inside_functions or node.type != "function_definition":
            todo += reversed(node.named_children)
    return found


def _declarator(node: Node) -> Node | None:
    """Declarator of a function, below those of pointers and references."""
    found = node.child_by_field_name("declarator")
    while found is not None and found.type != "function_declarator":
        found = found.child_by_field_name("declarator") or next(
            (one for one in found.named_children if one.type.endswith("declarator")), None
        )
    return found


def _name_of(node: Node) -> str:
    declarator = _declarator(node)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    last = text_of(name).rpartition("::")[2].strip() if name is not None else ""
    return last if last.isidentifier() else ""


def _parameters(node: Node) -> list[tuple[str, ast.expr | None]]:
    """Name and default of each parameter."""
    declarator = _declarator(node)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    return [] if listed is None else [one for child in listed.named_children if (one := _parameter(child))]


def _parameter(node: Node) -> tuple[str, ast.expr | None] | None:
    if node.type not in ("parameter_declaration", "optional_parameter_declaration"):
        return None
    name, default = node.child_by_field_name("declarator"), node.child_by_field_name("default_value")
    while name is not None and name.type != "identifier":
        inner = name.child_by_field_name("declarator")
        name = inner or next((one for one in name.named_children if one.type != "type_qualifier"), None)
    if name is None:
        return None
    return text_of(name), expression(default, Calls({})) if default is not None else None


def _template_of(node: Node) -> dict[str, ast.expr | None]:
    """Numbers that a template is made with, and their defaults."""
    parent = node.parent
    if parent is None or parent.type != "template_declaration":
        return {}
    listed = parent.child_by_field_name("parameters")
    found = [_parameter(one) for one in listed.named_children] if listed is not None else []
    return dict(one for one in found if one)


def _returns_nothing(node: Node) -> bool:
    kind = node.child_by_field_name("type")
    return kind is not None and text_of(kind) == "void"


def _references(node: Node) -> tuple[str, ...]:
    """Parameters through which a function hands out values."""
    declarator = _declarator(node)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    found = []
    for one in listed.named_children if listed is not None else ():
        inner = one.child_by_field_name("declarator")
        of_type = one.child_by_field_name("type")
        kind = text_of(of_type) if of_type is not None else ""
        if inner is not None and inner.type == "reference_declarator" and "const" not in text_of(one):
            name = next((child for child in inner.named_children if child.type == "identifier"), None)
            if name is not None and re.fullmatch(
                r"(unsigned |signed )?(int|long|short|unsigned|u?int\d+_t|size_t|index_t)", kind
            ):
                found.append(text_of(name))
    return tuple(found)


def _function_def(
    name: str, parameters: list[tuple[str, ast.expr | None]], body: list[ast.stmt], node: Node
) -> ast.FunctionDef:
    args = [placed(ast.arg(one), node) for one, _ in parameters]
    given = ast.arguments([], [], None, args, [default for _, default in parameters], None, [])
    return placed(ast.FunctionDef(name, given, body, []), node)
