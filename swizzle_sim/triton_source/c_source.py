"""Functions of C, C++, CUDA and HIP as Python's syntax tree, which the one reader of prologues reads.

Nothing is compiled. `c_preprocessor` puts macros in their places, tree-sitter parses the rest, `c_statements` says what
it models in Python with the lines of the file. What has no counterpart is kept as `c_names.unread`, and refused where a
tile needs it; a function that cannot be read at all has the construct and its line in ``unmodelled``.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from pathlib import Path

from tree_sitter import Node

from swizzle_sim.triton_source.c_calls import BUILTINS
from swizzle_sim.triton_source.c_effects import ASSIGNS, target_of
from swizzle_sim.triton_source.c_expressions import LAUNCHED, expression, number_of
from swizzle_sim.triton_source.c_functions import (
    class_of,
    declarator_of,
    definition,
    function_of,
    is_standard,
    name_of,
    of_class,
    signature,
    unmodelled,
)
from swizzle_sim.triton_source.c_names import Calls, Function, Names, assigned, is_unread, named, placed, unread
from swizzle_sim.triton_source.c_outputs import as_references, handed_name, handed_out, is_kernel
from swizzle_sim.triton_source.c_preprocessor import FINDERS, Macros, Preprocessor, called_in
from swizzle_sim.triton_source.c_statements import Statements, within
from swizzle_sim.triton_source.c_types import (
    CASTS,
    INT,
    RECORD,
    UNKNOWN,
    UNSIGNED,
    aliases_in,
    divmods_in,
    fields,
    identifiers,
    inside,
    kind_of_type,
    parser,
    said,
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
    r"|\b(?:(?:[A-Z][A-Z0-9_]*_)?(?:DEVICE|HOST_DEVICE|HOST|FORCEINLINE|INLINE|HD)|[A-Z]+_GLOBAL|OPUS_(?:D|H|H_D))"
    r"(?=\s+[A-Za-z_\[])"  # in no expression, where it is a number's name
)
_STATIC = re.compile(r"(?:\bextern\s+)?__(?:shared|constant|managed)__|\bthread_local\b")
# A name alone in brackets before an operator, which the grammar takes for a cast: ``(a) + (b)`` of a macro.
_ALONE = re.compile(r"(?:\breturn\b|[=(,+\-*/%<>!&|?:;{}\[])\s*\(\s*([A-Za-z_]\w*)\s*\)(?=\s*[-+*&(])")
_OF_AN_ID = re.compile(r"block_?id|workgroup_?id|group_id|\bw?pid|_pid|tile|\bw?bid\b|wg_?id|xcd", re.IGNORECASE)
_ANY = ast.FunctionDef("any", ast.arguments([], [], None, [], [], None, []), [ast.Pass()], [])
# Casts by which what is const may be written to.
_CASTS_AWAY = re.compile(
    r"const_cast\s*<|(?:\(|reinterpret_cast\s*<|\btypedef|\busing\s+\w+\s*=)\s*(?:int|unsigned|long|u?int32_t)"
    r"\s*(?:int\s*)?[&*]"
)
_MOST_BYTES = 4_000_000


def tree_of_c(text: str, filename: str, given: Macros = ()) -> ast.Module:
    """Functions and constants of a file, as Python's syntax tree says them, among the macros of what includes it."""
    if len(text) > _MOST_BYTES:
        raise LanguageError(f"{len(text)} characters: no source that people write", filename=filename, code="limit")
    if "\0" in text:
        raise LanguageError("no C: it has a null byte", filename=filename, code="syntax")
    found = Preprocessor(Path(filename).resolve(), given)
    written = found.run(text)
    plain = _WORDS.sub(lambda word: re.sub(r"[^\n]", " ", word.group()), written)
    plain = _STATIC.sub(lambda word: "static".ljust(len(word.group())), plain)
    plain = _ALONE.sub(_no_cast, plain)
    plain = as_references(parser().parse(plain.encode("utf-8")).root_node, plain, written)
    return _File(parser().parse(plain.encode("utf-8")).root_node, plain, written.split("\n"), found).module()


def _no_cast(found: re.Match[str]) -> str:
    """``(a + 0)`` for ``(a)``, where ``a`` is no type."""
    name = found.group(1)
    is_type = name in CASTS or name in ("char", "short", "float", "double", "void", "half", "auto")
    return found.group() if is_type else f"{found.group()[: found.start(1) - found.start()]}{name} + 0)"


class _File:
    """Functions and constants of one parsed file."""

    def __init__(self, root: Node, text: str, lines: list[str], found: Preprocessor):
        self.found, self.lines, self.plain = found, lines, text.split("\n")
        self._numbers: dict[str, object] = {}  # of constants
        self._declared: dict[str, str] = {}  # how each was
        self._has_id = False  # of the function that is read
        self.calls = Calls(aliases=aliases_in(text), included=self._included, divmods=divmods_in(text))
        self.calls.magic = divmods_in(text, "MDiv2?")
        self.calls.casts = _CASTS_AWAY.search(text) is not None
        every = list(inside(root))
        self.definitions = [
            function_of(one, self.calls)
            for one in every
            if one.type == "function_definition" and name_of(one) and one.child_by_field_name("body")
        ]
        reads = {(text_of(part), text_of(record)) for record, part in
                 (fields(one, "argument", "field") for one in every if one.type == "field_expression")
                 if text_of(record) not in LAUNCHED}  # fmt: skip
        self.calls.vague = frozenset(name for name, count in Counter(name for name, _ in reads).items() if count > 1)
        self.outside = _outside(root)
        self.calls.functions = {one.name: one for one in self.definitions}
        self._ambiguous(every)
        self._written()

    def _included(self, name: str) -> ast.FunctionDef | None:
        """Function of a header; where no id is, any name that a header mentions is one, and not looked at."""
        if not self._has_id or FINDERS[-1] is None:
            return _ANY if any(name in called_in(path) for path in self.found.headers) else None
        return FINDERS[-1](name, self.found.headers)

    def _ambiguous(self, every: list[Node]) -> None:
        """Names of two functions, or of one that is declared with other parameters, are not read."""
        for name in BUILTINS:  # of types that a template chooses; of integers there is the compiler's
            if self._is_standard(name):
                self.calls.functions.pop(name, None)
            elif name in self.calls.functions and signature(self.calls.functions[name].node) not in ("int,int", "int"):
                self.calls.unread[name] = f"{name}, of which there are several"
        signs: dict[str, set[str]] = {}
        count = Counter(one.name for one in self.definitions)
        declared = [one for one in every if one.type in ("declaration", "field_declaration") and declarator_of(one)]
        for one in [*declared, *(function.node for function in self.definitions)]:
            signs.setdefault(name_of(one), set()).add(signature(one))
        for name, found in signs.items():
            is_own = name in self.calls.functions
            if (is_own and count[name] > 1) or (len(found) > 1 and (is_own or name not in BUILTINS)):
                self.calls.unread[name] = f"{name}, of which there are several"

    def _is_standard(self, name: str) -> bool:
        """Whether no function of a name that may take integers does anything else than the compiler's."""
        count = 1 if name == "abs" else 2
        every = [one for one in self.definitions if one.name == name and one.result != ""]  # not of nothing
        found = [one for one in every if one.is_whole and len(one.parameters) == count
                 and not any(variable.why for variable in one.parameters)]  # fmt: skip
        return all(is_standard(name, one) for one in found) and (bool(found) or all(one.is_whole for one in every))

    def _written(self) -> None:
        """Names from outside that functions assign are not read, whatever function it is."""
        for one in self.definitions:
            block = one.node.child_by_field_name("body")
            assert block is not None
            own = {variable.name for variable in one.parameters} | Statements(self.calls, block, []).names.declared
            for node in inside(block):
                target = target_of(node) if node.type in ASSIGNS else None
                if target is not None and target.type == "identifier" and text_of(target) not in own:
                    self.calls.unread.setdefault(text_of(target), f"{text_of(target)}, which functions assign")

    def module(self) -> ast.Module:
        """Constants, then functions, each under a name of its own."""
        body = [stmt for node in self.outside for stmt in self._constant(node)]
        seen: Counter[str] = Counter()
        for one in self.definitions:
            seen[one.name] += 1
            body += self._function(one, one.name if seen[one.name] == 1 else f"{one.name}_{seen[one.name]}")
        found = ast.Module(body, [])
        found.headers = self.found.headers  # type: ignore[attr-defined]
        return found

    def _constant(self, node: Node) -> list[ast.stmt]:
        """Constants outside of functions; every other variable there has no value that the file decides."""
        if node.type == "enumerator":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is None:
                return []
            base = node.parent and node.parent.parent and node.parent.parent.child_by_field_name("base")
            return self._given(text_of(name), value, UNSIGNED if base else INT, node)
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
                self.calls.owners.setdefault(text_of(target), class_of(node))
        return found

    def _given(self, name: str, value: Node | None, kind: str, node: Node) -> list[ast.stmt]:
        """Assignment of a constant's number; one that templates decide is an open name, the same in all workgroups."""
        text = f"{kind} {text_of(value)}" if value is not None else ""
        if text and self._declared.get(name) == text and (name not in self._numbers or not identifiers(value)):
            self.calls.alike = True
            return []
        again = name in self.calls.constants or name in self.calls.unread
        self._declared[name] = "" if again else text
        names = Names(self.calls)
        tree = expression(value, names) if value is not None else None
        number = number_of(tree, self._numbers) if tree is not None and not names.before else None
        plain = tree is not None and kind in (INT, UNSIGNED) and not (is_unread(tree) or again or node.has_error)
        is_fixed = "constexpr" in text_of(node).partition("=")[0].split() and kind in (INT, UNSIGNED) and not again
        if number is None and is_fixed and tree and identifiers(value) and (
            is_unread(tree) or loaded(tree) - self._numbers.keys()
        ):  # fmt: skip
            self.calls.constants[name] = kind
            return []
        if number is None or number < 0 or not plain:
            self.calls.unread.setdefault(name, f"{name}, a variable of the file")
            return []
        self.calls.constants[name], self._numbers[name] = kind, number
        return [assigned(name, ast.Constant(number), node)]

    def _function(self, function: Function, name: str) -> list[ast.stmt]:
        node, result = function.node, function.result
        block = node.child_by_field_name("body")
        assert block is not None
        self._has_id = _OF_AN_ID.search(text_of(node)) is not None
        outputs = () if result else function.outputs
        numbers = [one for one in function.template if one is not None]
        around = [one for one in of_class(node, self.calls) if one.name in self.calls.unread]
        records = {one.name for one in function.parameters if one.kind in (UNKNOWN, RECORD) and not one.is_const}
        handed = [] if result or outputs or is_kernel(node, self.lines) else handed_out(block, records)
        known = [*function.parameters, *numbers, *around]
        first, last = node.start_point[0] + 1, node.end_point[0] + 1
        inner = [one for one in self.found.regions if first <= one.end and one.begin <= last and not within(node, one)]
        torn = next((one for one in inner if _is_torn("".join(self.plain[one.begin : one.end - 1]))), None)
        statements = Statements(self.calls, block, known, outputs, result or "", inner, handed)
        statements.kinds = function.kinds
        body = statements.function_body(block)
        if self.calls.functions.get(function.name) is function:
            self.calls.functions[function.name] = statements.deduced(function)
        if handed:
            names: list[ast.expr] = [named(one, node) for one in dict.fromkeys(map(handed_name, handed))]
            body.append(placed(ast.Return(ast.Tuple(names, ast.Load())), node))
            statements.refused = (said(handed[0])[:60], handed[0].start_point[0] + 1)
        if outputs:  # of a function that is refused too: what it hands out tells that it is a remap
            body.append(statements.result(block))
        given = {one: unread(node, f"{one}, which has no value") for one in outputs}
        found = definition(function, name, given, _without_idle(body, statements.assumed) or [ast.Pass()])
        found.head = statements.deduced(function)  # type: ignore[attr-defined]
        found.said = said(node)  # type: ignore[attr-defined]
        odd = unmodelled(function) or (torn and (torn.condition, torn.begin))
        found.unmodelled = odd or statements.refused  # type: ignore[attr-defined]
        found.by_reference = bool(function.changed) or not function.is_whole  # type: ignore[attr-defined]
        found.is_standard = name in BUILTINS and self._is_standard(name)  # type: ignore[attr-defined]
        found.is_one_of_several = function.name in self.calls.unread  # type: ignore[attr-defined]
        found.assumed = tuple(statements.assumed)  # type: ignore[attr-defined]
        return [*statements.functions, found]


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


def _is_torn(text: str) -> bool:
    """Whether a branch of a condition has a bracket without its other."""
    depths = [0, *itertools.accumulate(1 if one in "{(" else -1 for one in re.findall(r"[{}()]", text))]
    return min(depths) < 0 or depths[-1] != 0


def _without_idle(
    body: list[ast.stmt], assumed: list[str], after: frozenset[str] = frozenset(), used: frozenset[str] = frozenset()
) -> list[ast.stmt]:
    """Statements without those by which a call would change a name that nothing reads after it, but to store there.

    Of such a name, which the caller mostly hands on by value, it is supposed that the call leaves it as it is.
    """
    found: list[ast.stmt] = []
    read, uses = set(after), set(used)
    for stmt in reversed(body):
        if getattr(stmt, "by_call", False) and not stored(stmt) & read:
            assumed += [f"line {stmt.lineno} leaves {name} as it is" for name in sorted(stored(stmt) & uses)]
            continue
        inner = {name for one in ast.walk(stmt) if isinstance(one, ast.Expr) for name in loaded(one)}
        if isinstance(stmt, ast.If):
            stmt.body = _without_idle(stmt.body, assumed, frozenset(read), frozenset(uses)) or [ast.Pass()]
            stmt.orelse = _without_idle(stmt.orelse, assumed, frozenset(read), frozenset(uses))
        elif isinstance(stmt, ast.For | ast.While):
            again = _read_first(stmt.body, {name for one in stmt.body for name in loaded(one)})
            again |= loaded(stmt.test if isinstance(stmt, ast.While) else stmt.iter)
            stmt.body = _without_idle(stmt.body, assumed, frozenset(read | again), frozenset(uses | inner)) or [
                ast.Pass()
            ]
        if not isinstance(stmt, ast.Expr):  # a use of the tile, which comes last
            read |= loaded(stmt)
        uses |= inner
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
