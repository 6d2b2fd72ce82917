"""Functions of C, C++, CUDA and HIP as Python's syntax tree, which the one reader of prologues reads.

Nothing is compiled. `c_preprocessor` puts macros in their places, tree-sitter parses the rest, `c_statements` says what
it models in Python with the lines of the file. What has no counterpart is kept as `c_expressions.unread`, and refused
where a tile needs it; a function that cannot be read at all has the construct and its line in ``unmodelled``.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tree_sitter import Language, Node, Parser

from swizzle_sim.triton_source.c_expressions import (
    BUILTINS,
    Calls,
    Names,
    Variable,
    expression,
    is_unread,
    named,
    number_of,
    placed,
    unread,
)
from swizzle_sim.triton_source.c_outputs import as_references, handed_out, inside, is_kernel
from swizzle_sim.triton_source.c_preprocessor import FINDERS, Preprocessed, Preprocessor, called_in, headers_of
from swizzle_sim.triton_source.c_statements import Refused, Statements, handed_name, parameter_of
from swizzle_sim.triton_source.c_types import (
    CASTS,
    INT,
    RECORD,
    UNKNOWN,
    UNSIGNED,
    aliases_in,
    divmods_in,
    is_listed,
    kind_of_type,
    text_of,
)
from swizzle_sim.triton_source.slices import loaded, slice_of, stored
from xcd_model.errors import LanguageError

# Words of CUDA, HIP and libraries before a function, which the grammar of C++ does not know: blanked, so that columns
# stay. Attributes that change nothing that a program computes; any other stays, and is not read.
_ATTRIBUTES = (
    r"(?:__)?(?:always_inline|noinline|unused|used|maybe_unused|nodiscard|hot|cold|flatten|pure|const|device|host|global"
    r"|amdgpu_\w+|visibility|launch_bounds)(?:__)?(?:\s*\([^()]*\))?"
)
_WORDS = re.compile(
    r"_Pragma\s*\(\s*\"[^\"]*\"\s*\)|__(?:global|device|host|forceinline|inline|noinline|restrict|grid_constant)__"
    r"|\b(?:forceinline|__inline|__restrict)\b"
    r"|__align__\s*\(\s*\d+\s*\)|__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)"
    rf"|__attribute__\s*\(\(\s*{_ATTRIBUTES}(?:\s*,\s*{_ATTRIBUTES})*\s*\)\)|\[\[\s*(?:\w+::)?{_ATTRIBUTES}\s*\]\]"
    r"|\b(?:[A-Z][A-Z0-9_]*_)?(?:DEVICE|HOST_DEVICE|HOST|FORCEINLINE|INLINE|HD)\b|\bOPUS_(?:D|H|H_D)\b"
)
_STATIC = re.compile(r"(?:\bextern\s+)?__(?:shared|constant|managed)__|\bthread_local\b")
# A name alone in brackets before an operator, which the grammar takes for a cast: ``(a) + (b)`` of a macro.
_ALONE = re.compile(r"(?:\breturn\b|[=(,+\-*/%<>!&|?:;{}\[])\s*\(\s*([A-Za-z_]\w*)\s*\)(?=\s*[-+*&(])")
_OF_AN_ID = re.compile(r"block_?id|workgroup_?id|group_id|\bw?pid|_pid|tile|\bw?bid\b|wg_?id|xcd", re.IGNORECASE)
_ANY = ast.FunctionDef("any", ast.arguments([], [], None, [], [], None, []), [ast.Pass()], [])
_MOST_BYTES = 4_000_000


def tree_of_c(text: str, filename: str) -> ast.Module:
    """Functions and constants of a file, as Python's syntax tree says them."""
    if len(text) > _MOST_BYTES:
        raise LanguageError(f"{len(text)} characters: no source that people write", filename=filename, code="limit")
    if "\0" in text:
        raise LanguageError("no C: it has a null byte", filename=filename, code="syntax")
    found = Preprocessor(Path(filename).resolve()).run(text)
    plain = _WORDS.sub(lambda word: re.sub(r"[^\n]", " ", word.group()), found.text)
    plain = _STATIC.sub(lambda word: "static".ljust(len(word.group())), plain)
    plain = _ALONE.sub(_no_cast, plain)
    plain = as_references(_parser().parse(plain.encode("utf-8")).root_node, plain, found.text)
    root = _parser().parse(plain.encode("utf-8")).root_node
    return _File(root, plain, found, headers_of(text, Path(filename).resolve())).module()


def _no_cast(found: re.Match[str]) -> str:
    """``(a + 0)`` for ``(a)``, where ``a`` is no type."""
    name = found.group(1)
    is_type = name in CASTS or name in ("char", "short", "float", "double", "void", "half", "auto")
    return found.group() if is_type else f"{found.group()[: found.start(1) - found.start()]}{name} + 0)"


@cache
def _parser() -> Parser:
    import tree_sitter_cpp  # noqa: PLC0415 - with its compiled grammar

    return Parser(Language(tree_sitter_cpp.language()))


class _File:
    """Functions and constants of one parsed file."""

    def __init__(self, root: Node, text: str, found: Preprocessed, headers: list[Path]):
        self.found, self.headers, self.lines = found, headers, found.text.split("\n")
        self._numbers: dict[str, object] = {}  # of constants
        self._has_id = False  # of the function that is read
        every = list(inside(root))
        self.definitions = [
            one
            for one in every
            if one.type == "function_definition" and _name_of(one) and one.child_by_field_name("body")
        ]
        self.outside = _outside(root)
        self.calls = Calls(aliases=aliases_in(text), included=self._included, divmods=divmods_in(text))
        kinds = {_name_of(one): _variables(one, self.calls) for one in self.definitions}
        self.calls.kinds = kinds
        self.calls.texts = {_name_of(one): " ".join(text_of(one).split()) for one in self.definitions}
        self.calls.templates = {_name_of(one): _template_of(one, self.calls) for one in self.definitions}
        self.calls.results = {_name_of(one): _result_kind(one, self.calls) or "" for one in self.definitions}
        self.calls.outputs = {
            _name_of(one): names for one in self.definitions if (names := _references(one, self.calls))
        }
        self.calls.references = {_name_of(one): _references(one, self.calls, every=True) for one in self.definitions}
        self._ambiguous(every)
        self._written()

    def _included(self, name: str) -> ast.FunctionDef | None:
        """Function of a header; where no id is, any name that a header mentions is one, and not looked at."""
        if not self._has_id or FINDERS[-1] is None:
            return _ANY if any(name in called_in(path) for path in self.headers) else None
        return FINDERS[-1](name, self.headers)

    def _ambiguous(self, every: list[Node]) -> None:
        """Names of two functions, or of one that is declared with other parameters, are not read."""
        for name in BUILTINS:  # for other types; of integers there is the compiler's
            if not any(_takes_integers(one, self.calls) for one in self.definitions if _name_of(one) == name):
                self.calls.kinds.pop(name, None)
        signs: dict[str, set[str]] = {}
        count = Counter(map(_name_of, self.definitions))
        for one in every:
            if one.type in ("declaration", "field_declaration") and _declarator(one) is not None:
                signs.setdefault(_name_of(one), set()).add(_signature(one))
        for one in self.definitions:
            signs.setdefault(_name_of(one), set()).add(_signature(one))
        for name in self.calls.kinds:
            if count[name] > 1 or len(signs[name]) > 1:
                self.calls.unread[name] = f"{name}, of which there are several"
        for name in [name for name in signs if name not in self.calls.kinds]:
            if len(signs[name]) > 1 and name not in BUILTINS:
                self.calls.unread[name] = f"{name}, of which there are several"

    def _written(self) -> None:
        """Names from outside that functions assign are not read, whatever function it is."""
        for one in self.definitions:
            block = one.child_by_field_name("body")
            assert block is not None
            own = {variable.name for variable in _variables(one, self.calls)}
            own |= Statements(self.calls, block, []).names.declared
            for node in inside(block):
                if node.type in ("assignment_expression", "update_expression"):
                    target = node.child_by_field_name("left" if node.type == "assignment_expression" else "argument")
                    if target is not None and target.type == "identifier" and text_of(target) not in own:
                        self.calls.unread.setdefault(text_of(target), f"{text_of(target)}, which functions assign")

    def module(self) -> ast.Module:
        body: list[ast.stmt] = []
        for node in self.outside:
            body += self._constant(node)
        seen: Counter[str] = Counter()
        for node in self.definitions:
            name = _name_of(node)
            seen[name] += 1
            unique = name if seen[name] == 1 else f"{name}_{seen[name]}"
            body += self._function(node, unique)
        return ast.Module(body, [])

    def _constant(self, node: Node) -> list[ast.stmt]:
        """Constants outside of functions; every other variable there has no value that the file decides."""
        if node.type == "enumerator":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is None:
                return []
            return self._given(text_of(name), value, INT, node)
        words = {
            text_of(one) for one in node.named_children if one.type in ("type_qualifier", "storage_class_specifier")
        }
        of_type = node.child_by_field_name("type")
        kind = kind_of_type(text_of(of_type), self.calls.aliases) if of_type is not None else UNKNOWN
        is_open = any(one.begin <= node.start_point[0] + 1 <= one.end for one in self.found.regions)
        found: list[ast.stmt] = []
        for one in node.children_by_field_name("declarator"):
            target = one.child_by_field_name("declarator") if one.type == "init_declarator" else one
            if target is None or target.type not in ("identifier", "field_identifier"):
                continue
            value = one.child_by_field_name("value") or node.child_by_field_name("default_value")
            if value is not None and value.type == "initializer_list" and len(value.named_children) == 1:
                value = value.named_children[0]
            fixed = words & {"const", "constexpr"} and words <= {"const", "constexpr", "static", "inline"}
            if node.type == "field_declaration" and "static" not in words:
                continue  # of a record: what it holds is the caller's
            found += self._given(text_of(target), value if fixed and not is_open else None, kind, node)
            if node.type == "field_declaration":
                self.calls.owners.setdefault(text_of(target), _class_of(node))
        return found

    def _given(self, name: str, value: Node | None, kind: str, node: Node) -> list[ast.stmt]:
        again = name in self.calls.constants or name in self.calls.unread
        names = Names(self.calls)
        tree = expression(value, names) if value is not None else None
        number = number_of(tree, self._numbers) if tree is not None and not names.before else None
        if (
            number is None
            or number < 0
            or tree is None
            or kind not in (INT, UNSIGNED)
            or is_unread(tree)
            or again
            or node.has_error
        ):
            self.calls.unread.setdefault(name, f"{name}, a variable of the file")
            return []
        self.calls.constants[name], self._numbers[name] = kind, number
        tree = placed(ast.Constant(number), node)
        target = placed(ast.Name(name, ast.Store()), node)
        return [placed(ast.Assign([target], tree), node)]

    def _function(self, node: Node, name: str) -> list[ast.stmt]:
        block = node.child_by_field_name("body")
        assert block is not None
        self._has_id = _OF_AN_ID.search(text_of(node)) is not None
        variables = _variables(node, self.calls)
        outputs = _references(node, self.calls)
        result = _result_kind(node, self.calls)
        template = [one for one in _template_variables(node, self.calls) if one is not None]
        plain = () if result else outputs
        around = [one for one in _of_class(node, self.calls) if one.name in self.calls.unread]
        known = [*variables, *template, *around]
        statements = Statements(self.calls, block, known, plain, result or "", self.found.regions)
        unmodelled = self._unmodelled(node, block, result)
        records = {one.name for one in variables if one.kind in (UNKNOWN, RECORD) and not one.is_const}
        parts = [] if result or plain or is_kernel(node, self.lines) else handed_out(block, records)
        body: list[ast.stmt] = []
        try:
            if parts:
                raise Refused(text_of(parts[0]), parts[0])
            body = statements.function_body(block)
        except Refused as refused:
            unmodelled = unmodelled or (" ".join(refused.what.split())[:60], refused.line)
            lenient = Statements(self.calls, block, known, is_lenient=True, handed=parts)
            body = lenient.function_body(block)
            if parts:
                names: list[ast.expr] = [named(name, node) for name in dict.fromkeys(map(handed_name, parts))]
                body.append(placed(ast.Return(ast.Tuple(names, ast.Load())), node))
        if plain:  # of a function that is refused too: what it hands out tells that it is a remap
            body.append(statements.result(block))
        body = _without_idle(body)
        parameters = [one for one in variables if one.name not in plain]
        handed = [one for one in variables if one.name in plain]
        defaults = dict(
            given for one in [*_listed(node), *_template_nodes(node)] if (given := _default(one)) is not None
        )
        defaults |= {one.name: unread(node, f"{one.name}, which has no value") for one in handed}
        found = _function_def(name, parameters, [*template, *handed], defaults, body or [ast.Pass()], node)
        found.said = self.calls.texts.get(_name_of(node), "")  # type: ignore[attr-defined]
        found.unmodelled = unmodelled  # type: ignore[attr-defined]
        found.by_reference = bool(self.calls.references[_name_of(node)])  # type: ignore[attr-defined]
        found.takes_integers = _takes_integers(node, self.calls)  # type: ignore[attr-defined]
        found.is_one_of_several = _name_of(node) in self.calls.unread  # type: ignore[attr-defined]
        found.assumed = tuple(statements.assumed)  # type: ignore[attr-defined]
        return [*statements.functions, found]

    def _unmodelled(self, node: Node, block: Node, result: str | None) -> tuple[str, int] | None:
        if result is None:
            kind = node.child_by_field_name("type")
            return (text_of(kind) if kind is not None else "its type"), node.start_point[0] + 1
        for one in inside(node):
            if one.type == "ERROR" or one.is_missing:
                return " ".join(text_of(one).split())[:60] or "a missing bracket", one.start_point[0] + 1
            if one.type in ("attribute_specifier", "attribute_declaration", "ms_declspec_modifier"):
                return text_of(one), one.start_point[0] + 1
            if one == block:
                continue
            if one.type == "parameter_pack_expansion" or one.type.startswith("variadic"):
                return text_of(one), one.start_point[0] + 1
        return None


def _class_of(node: Node) -> str:
    """Name of the class that a declaration stands in."""
    parent = node.parent.parent if node.parent is not None else None
    name = parent.child_by_field_name("name") if parent is not None else None
    return text_of(name).partition("<")[0] if name is not None else ""


def _outside(root: Node) -> list[Node]:
    """Declarations and enumerators that stand in no function."""
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        if node.type in ("declaration", "enumerator", "field_declaration"):
            found.append(node)
        if node.type != "function_definition":
            todo += reversed(node.named_children)
    return found


def _without_idle(body: list[ast.stmt], after: frozenset[str] = frozenset()) -> list[ast.stmt]:
    """Statements without those by which a call would change a name that nothing reads after it."""
    found: list[ast.stmt] = []
    read = set(after)
    for stmt in reversed(body):
        if getattr(stmt, "by_call", False) and not stored(stmt) & read:
            continue
        if isinstance(stmt, ast.If):
            stmt.body = _without_idle(stmt.body, frozenset(read)) or [ast.Pass()]
            stmt.orelse = _without_idle(stmt.orelse, frozenset(read))
        elif isinstance(stmt, ast.For | ast.While):
            again = _read_first(stmt.body, {name for one in stmt.body for name in loaded(one)})
            again |= loaded(stmt.test if isinstance(stmt, ast.While) else stmt.iter)
            stmt.body = _without_idle(stmt.body, frozenset(read | again)) or [ast.Pass()]
        if not isinstance(stmt, ast.Expr):  # a use of the tile, which comes last
            read |= loaded(stmt)
        found.append(stmt)
    return found[::-1]


def _read_first(body: list[ast.stmt], names: set[str]) -> set[str]:
    """Names that statements may read before they have assigned them."""
    every = [one for one in body if not isinstance(one, ast.Return)]
    last = [one for one in body if isinstance(one, ast.Return) and one.value is not None]
    wanted = {name for one in last for name in loaded(one)} or set(names)
    for stmt in body:
        wanted |= {name for one in ast.walk(stmt) if isinstance(one, ast.Expr | ast.Return) for name in loaded(one)}
    return slice_of(every, wanted)[1] & names


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
    if name is not None and name.type == "template_function":
        name = name.child_by_field_name("name") or name
    last = text_of(name).rpartition("::")[2].strip() if name is not None else ""
    return last if last.isidentifier() else ""


def _signature(node: Node) -> str:
    """Types of a function's parameters, as they are written."""
    declarator = _declarator(node)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    kinds = []
    for one in listed.named_children if listed is not None else ():
        name = one.child_by_field_name("declarator")
        kind = one.child_by_field_name("type")
        marks = re.sub(r"\w+", "", text_of(name).partition("=")[0]) if name is not None else ""
        kinds.append(f"{text_of(kind) if kind is not None else ''}{marks}".replace(" ", ""))
    return ",".join(kinds)


def _listed(node: Node) -> list[Node]:
    declarator = _declarator(node)
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    return [one for one in listed.named_children if one.type != "comment"] if listed is not None else []


def _variables(node: Node, calls: Calls) -> list[Variable]:
    """Parameters of a function."""
    return [one for node in _listed(node) if (one := parameter_of(node, calls)) is not None]


def _of_class(node: Node, calls: Calls) -> list[Variable]:
    """Numbers that the templates of the classes around a function are made with, which hide what the file has."""
    found: list[Variable] = []
    parent = (
        node.parent.parent if node.parent is not None and node.parent.type == "template_declaration" else node.parent
    )
    while parent is not None:
        if parent.type == "template_declaration":
            listed = parent.child_by_field_name("parameters")
            made = [parameter_of(one, calls) for one in (listed.named_children if listed is not None else [])]
            found += [one._replace(kind=UNSIGNED) for one in made if one is not None and one.kind in (INT, UNSIGNED)]
        parent = parent.parent
    return found


def _default(node: Node) -> tuple[str, ast.expr] | None:
    name, value = parameter_of(node, Calls()), node.child_by_field_name("default_value")
    return (name.name, expression(value, Names(Calls()))) if name is not None and value is not None else None


def _template_nodes(node: Node) -> list[Node]:
    parent = node.parent
    listed = (
        parent.child_by_field_name("parameters")
        if parent is not None and parent.type == "template_declaration"
        else None
    )
    return [one for one in listed.named_children if one.type != "comment"] if listed is not None else []


def _template_variables(node: Node, calls: Calls) -> list[Variable | None]:
    found = [parameter_of(one, calls) for one in _template_nodes(node)]
    return [one if one is not None and one.kind in (INT, UNSIGNED, "bool") else None for one in found]


def _template_of(node: Node, calls: Calls) -> list[str | None]:
    """Names of the numbers that a template is made with, in order; None for a type."""
    return [one.name if one is not None else None for one in _template_variables(node, calls)]


def _result_kind(node: Node, calls: Calls) -> str | None:
    """Kind of what a function returns: empty for nothing or a list of integers, None for what is not read."""
    kind = node.child_by_field_name("type")
    if kind is None:
        return ""
    text = text_of(kind)
    if text in ("void", "auto") or is_listed(text, calls.aliases):
        return "" if text != "auto" else INT
    outer = node.child_by_field_name("declarator")
    if outer is not None and outer.type != "function_declarator":  # a pointer or a reference
        return None
    return kind_of_type(text, calls.aliases) or None


def _references(node: Node, calls: Calls, *, every: bool = False) -> tuple[str, ...]:
    """Parameters of integers by which a function hands out values, or every one by which it may change something."""
    found = []
    for one in _listed(node):
        declarator, variable = one.child_by_field_name("declarator"), parameter_of(one, calls)
        if variable is None:
            continue
        is_reference = declarator is not None and "reference" in declarator.type and not variable.is_const
        if is_reference and (every or variable.kind in (INT, UNSIGNED)):
            found.append(variable.name)
    return tuple(found)


def _takes_integers(node: Node, calls: Calls) -> bool:
    """Whether a function's parameters are integers, none of which a template chooses."""
    return all(one.kind in (INT, UNSIGNED) for one in _variables(node, calls))


def _function_def(
    name: str,
    parameters: list[Variable],
    template: list[Variable],
    defaults: dict[str, ast.expr],
    body: list[ast.stmt],
    node: Node,
) -> ast.FunctionDef:
    """Function whose template's numbers are parameters by name."""
    plain, keywords = ([placed(ast.arg(one.name), node) for one in part] for part in (parameters, template))
    last = [defaults[one.name] for one in parameters if one.name in defaults]
    given = ast.arguments([], plain, None, keywords, [defaults.get(one.name) for one in template], None, last)
    return placed(ast.FunctionDef(name, given, body, []), node)
