"""The preprocessor of C, as far as a file and the headers beside it decide: comments out, macros in their places.

A condition that nothing decides (``#if defined(__gfx90a__)``) keeps all its branches and their lines are noted: what
stands there is not read. A macro that such a condition, or ``##``, leaves open becomes a name that nothing knows.
Lines stay where they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tree_sitter import Node

from swizzle_sim.triton_source.c_types import fields, inside, parser, parts, text_of
from xcd_model.errors import LanguageError
from xcd_model.files import read_bytes

OPEN = "unread_macro__"  # before the name of a macro whose value nothing decides
_HIGHEST = 8  # folders above a file in which its headers are looked for
_MOST_HEADERS = 200
_MOST_CHARACTERS = 8_000_000  # with macros in their places
_DEEPEST = 60  # macros in macros
_SPLICE = "\x01"  # a line that goes on in the next
_SPLICED = re.compile(r"\\[ \t]*\r?\n")
_CUT = re.compile(r"[^\s\x01]+(?:\x01+[^\s\x01]+)+")
_BEFORE_PARENTHESIS = re.compile(r"\b(\w+)\s*\(")
_COMMENT = re.compile(
    r'R"([^()\s\\]{0,16})\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'(?!\w)|//[^\n]*|/\*.*?(?:\*/|\Z)',
    re.DOTALL,
)
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\.?\d(?:[\w.\']|[eEpP][+-])*|[A-Za-z_]\w*')
_DIRECTIVE = re.compile(r"^[ \t\x01]*#[ \t\x01]*(\w*)([^\n]*)\n?", re.MULTILINE)
_DEFINE = re.compile(r"\s*([A-Za-z_]\w*)(\(([^()]*)\))?(.*)", re.DOTALL)
_INCLUDES = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_INCLUDE = re.compile(r"\s*[<\"]([^>\"\n]+)[>\"]")
# Words before a function that say where it runs and whether it is inlined, and macros of libraries for them.
WHERE = re.compile(
    r"\b(?:__(?:global|device|host|forceinline|inline|noinline|restrict|grid_constant)__|forceinline|__inline|__restrict"
    r"|inline|(?:[A-Z][A-Z0-9_]*_)?(?:DEVICE|HOST_DEVICE|HOST|FORCEINLINE|INLINE|HD)|OPUS_(?:D|H|H_D))\b"
)
_HIP = ("__HIP_DEVICE_COMPILE__", "__HIPCC__", "__HIP__", "__cplusplus")
_CUDA = ("__CUDACC__", "__cplusplus")


class Macro(NamedTuple):
    """One macro; ``body`` is None where nothing decides it."""

    parameters: tuple[str, ...] | None
    body: str | None


Macros = Iterable[tuple[str, Macro]]
Headers = dict[Path, dict[str, Macro]]  # files that one includes, each with the macros that it is included among
# What finds a function of headers by its name: `imports`, once it is there.
FINDERS: list[Callable[[str, Headers], ast.FunctionDef | None] | None] = [None]


class Region(NamedTuple):
    """Lines of one branch of a condition that nothing decides; regions of one condition have its first line."""

    condition: str
    first: int
    begin: int
    end: int


@dataclass
class Preprocessed:
    """Text with macros in their places, and what is left open."""

    text: str
    regions: list[Region] = field(default_factory=list)
    headers: Headers = field(default_factory=dict)


class _Branch(NamedTuple):
    taken: bool | None  # None: nothing decides
    any_taken: bool  # of the branches of this condition so far
    is_open: bool  # whether a branch so far was undecided
    first: int
    begin: int
    condition: str


class Preprocessor:
    """State of the preprocessor in one file and the headers that it includes."""

    def __init__(self, path: Path, given: Macros = ()):
        self.path = path
        self.gone: set[str] = set()  # undefined by the file itself
        known = _CUDA if path.suffix in (".cu", ".cuh") else _HIP
        self.macros = {name: Macro(None, f"{OPEN}value" if name == "__cplusplus" else "1") for name in known}
        self.macros.update(given)
        self.headers: Headers = {}
        self.regions: list[Region] = []
        self._stack: list[_Branch] = []
        self._room = _MOST_CHARACTERS

    def run(self, text: str) -> Preprocessed:
        """Text without comments and directives, with macros in their places."""
        plain = without_comments(re.sub(r"(?m)^([ \t]*)%:", r"\1# ", text))
        found: list[str] = []
        end, line = 0, 1
        for one in _DIRECTIVE.finditer(plain):
            code = plain[end : one.start()]
            found.append(self._code(code))
            line += _lines(code)
            self._directive(one, plain, line)
            inside = one.group(1) == "include" and not self._skipping() and self._is_open("".join(found))
            found.append(f" {OPEN}include; " * inside + "\n" * _lines(one.group()))
            line += _lines(one.group())
            end = one.end()
        found.append(self._code(plain[end:]))
        for branch in self._stack:
            self._close(branch, line)
        return Preprocessed("".join(found).replace(_SPLICE, "\n"), self.regions, self.headers)

    @staticmethod
    def _is_open(text: str) -> bool:
        """Whether a text ends within braces: what is included there are statements."""
        return text.count("{") > text.count("}")

    def _skipping(self) -> bool:
        return any(branch.taken is False for branch in self._stack)

    def _code(self, code: str) -> str:
        if self._skipping():
            return "\n" * _lines(code)
        found = self.expand(code, frozenset(), 0)
        self._room -= len(found)
        if self._room < 0:
            raise LanguageError("its macros make it too long to read", filename=str(self.path), code="limit")
        return found

    def _directive(self, found: re.Match[str], plain: str, line: int) -> None:
        word, rest = found.group(1), found.group(2).replace(_SPLICE, " ")
        if word in ("if", "ifdef", "ifndef"):
            self._begin(word, rest, line, plain[found.end() : found.end() + 400])
        elif word in ("elif", "else", "elifdef", "elifndef", "endif"):
            self._next(word, rest, line)
        elif not self._skipping():
            undecided = any(branch.taken is None for branch in self._stack)
            if word == "define":
                self.define(rest, undecided=undecided)
            elif word == "undef":
                self.macros.pop(rest.strip(), None)
                self.gone.add(rest.strip())
                if undecided:
                    self.macros[rest.strip()] = Macro(None, None)
            elif word == "include":
                self._include(rest, undecided=undecided)
            elif word == "pragma" and (named := re.search(r'(?:push|pop)_macro\s*\(\s*"(\w+)"', rest)):
                self.macros[named.group(1)] = Macro(None, None)

    def define(self, rest: str, *, undecided: bool = False) -> None:
        """Take one ``#define``."""
        match = _DEFINE.match(rest)
        if match is None:
            return
        name, listed, names, body = match.groups()
        if WHERE.fullmatch(name) and not WHERE.sub("", body).strip():
            return  # a word before functions that says where they run: left where it stands
        parameters = tuple(part.strip() for part in names.split(",") if part.strip()) if listed else None
        odd = undecided or "#" in body or (parameters and not all(part.isidentifier() for part in parameters))
        self.macros[name] = Macro(parameters, None if odd else body.strip())

    def _include(self, rest: str, *, undecided: bool) -> None:
        match = _INCLUDE.match(rest)
        path = header(match.group(1), self.path) if match else None
        if path is None or path in self.headers or len(self.headers) >= _MOST_HEADERS:
            return
        self.headers[path] = dict(self.macros)
        here, stack, self._stack = self.path, self._stack, [_Branch(None, False, True, 0, 0, "")] if undecided else []
        regions, self.path = list(self.regions), path
        for found, plain in directives(path):
            self._directive(found, plain, 0)
        self.path, self._stack, self.regions = here, stack, regions

    def _begin(self, word: str, rest: str, line: int, after: str) -> None:
        name = rest.strip()
        if word == "if":
            value = self._truth(rest)
        else:
            given = self._defined(name)
            default = rf"\s*(#\s*define\s+|((static|inline)\s+)*const(expr)?\s[\w\s:]*?\b){re.escape(name)}\b"
            if given is None and word == "ifndef" and re.match(default, after):
                given = False  # a guard, or a default that nothing has given
            value = given if word == "ifdef" or given is None else not given
        self._stack.append(_Branch(value, bool(value), value is None, line, line, f"#{word} {name}"))

    def _next(self, word: str, rest: str, line: int) -> None:
        if not self._stack:
            return
        branch = self._stack.pop()
        self._close(branch, line)
        if word == "endif":
            return
        value: bool | None = True
        if word != "else":
            name = rest.strip()
            given = self._truth(rest) if word == "elif" else self._defined(name)
            value = given if word != "elifndef" or given is None else not given
        if branch.any_taken:
            value = False
        elif branch.is_open and value:
            value = None
        condition = branch.condition if word == "else" else f"#{word} {rest.strip()}"
        is_open = branch.is_open or value is None
        self._stack.append(_Branch(value, branch.any_taken or bool(value), is_open, branch.first, line, condition))

    def _close(self, branch: _Branch, line: int) -> None:
        if branch.taken is None and not self._skipping():
            self.regions.append(Region(branch.condition, branch.first, branch.begin, line))

    def _defined(self, name: str) -> bool | None:
        if name in self.macros:
            found = self.macros[name]
            return None if found.body is None and found.parameters is None else True
        return False if name in self.gone else None

    def _truth(self, text: str) -> bool | None:
        def known(match: re.Match[str]) -> str:
            value = self._defined(match.group(1) or match.group(2))
            return f" {OPEN}d " if value is None else f" {int(value)} "

        plain = re.sub(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))", known, text)
        plain = self.expand(plain, frozenset(), 0)
        root = parser().parse(f"int x = ({plain});".encode()).root_node
        found = next((one for one in inside(root) if one.type == "init_declarator"), None)
        value = _value(found.child_by_field_name("value")) if found is not None and not root.has_error else None
        return None if value is None else bool(value)

    def expand(self, text: str, hidden: frozenset[str], depth: int) -> str:
        """Text with macros in their places, the lines that an invocation takes behind it."""
        parts: list[str] = []
        end = 0
        while (found := _TOKEN.search(text, end)) is not None:
            name = found.group()
            parts.append(text[end : found.start()])
            end = found.end()
            macro = self.macros.get(name) if name not in hidden else None
            if macro is None:
                parts.append(name)
            elif macro.body is None or depth > _DEEPEST:
                parts.append(OPEN + name)
            elif macro.parameters is None:
                parts.append(f" {self.expand(macro.body, hidden | {name}, depth + 1)} ".replace("\n", " "))
            else:
                given = _arguments(text, end)
                if given is None:  # a name without brackets is no invocation
                    parts.append(name)
                    continue
                arguments, after = given
                gone = _lines(text[end:after])
                parts.append(self._called(name, macro, arguments, hidden, depth) + "\n" * gone)
                end = after
            if sum(map(len, parts[-1:])) > self._room:
                raise LanguageError("its macros make it too long to read", filename=str(self.path), code="limit")
        parts.append(text[end:])
        return "".join(parts)

    def _called(self, name: str, macro: Macro, arguments: list[str], hidden: frozenset[str], depth: int) -> str:
        assert macro.parameters is not None and macro.body is not None
        wanted = len(macro.parameters)
        if len(arguments) != wanted and not (wanted == 0 and not "".join(arguments).strip()):
            return f"{OPEN}{name}({','.join(arguments)})"
        full = [self.expand(one, hidden, depth + 1).replace("\n", " ").replace(_SPLICE, " ") for one in arguments]
        values = dict(zip(macro.parameters, full, strict=False))
        body = _TOKEN.sub(lambda one: values.get(one.group(), one.group()), macro.body)
        if len(body) > self._room:
            raise LanguageError("its macros make it too long to read", filename=str(self.path), code="limit")
        return f" {self.expand(body, hidden | {name}, depth + 1)} "


def without_comments(text: str) -> str:
    """Text with spaces for comments, and a mark where a line goes on in the next, behind the word that it cuts."""

    def kept(found: re.Match[str]) -> str:
        whole = found.group()  # a comment over lines is one space, in a directive too
        return " " + _SPLICE * _lines(whole) if whole[:2] in ("//", "/*") else whole

    plain = _SPLICED.sub(_SPLICE, text.replace(_SPLICE, " "))
    return _COMMENT.sub(
        kept, _CUT.sub(lambda one: one.group().replace(_SPLICE, "") + _SPLICE * _lines(one.group()), plain)
    )


def _lines(text: str) -> int:
    return text.count("\n") + text.count(_SPLICE)


def _arguments(text: str, start: int) -> tuple[list[str], int] | None:
    """Arguments of an invocation, and where it ends; None where no bracket follows."""
    match = re.compile(r"[\s\x01]*\(").match(text, start)
    if match is None:
        return None
    parts, depth = [""], 1
    for found in re.compile(r'"(?:[^"\\\n]|\\.)*"|.', re.DOTALL).finditer(text, match.end()):
        letter = found.group()
        depth += (letter in "([{") - (letter in ")]}") if len(letter) == 1 else 0
        if depth == 0:
            return parts, found.end()
        if letter == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += letter
    return None


def _value(node: Node | None) -> int | None:  # noqa: PLR0911 - one a kind
    """Value of a condition; None where a name in it decides, or a type does."""
    if node is None or node.type in ("true", "false", "number_literal"):
        digits = re.fullmatch(r"(0[xXbB]\w+|[1-9]\d*|0[0-7]*)[lL]{0,2}", text_of(node).replace("'", ""))
        try:
            value = int(re.sub(r"^0(?=\d)", "0o", digits.group(1)), 0) if digits else int(text_of(node) == "true")
        except ValueError:
            return None
        return value if (digits or node is None or node.type != "number_literal") and value < 2**63 else None
    if node.type == "parenthesized_expression":
        return _value(parts(node)[0])
    if node.type == "conditional_expression":
        test, yes, no = fields(node, "condition", "consequence", "alternative")
        known = _value(test)
        return None if known is None else _value(yes if known else no)
    op = text_of(node.child_by_field_name("operator"))
    if node.type == "unary_expression":
        inner = _value(node.child_by_field_name("argument"))
        rules = {
            "!": lambda a: int(not a),
            "not": lambda a: int(not a),
            "-": lambda a: -a,
            "+": lambda a: a,
            "~": lambda a: ~a,
        }
        return rules[op](inner) if inner is not None and op in rules else None
    if node.type != "binary_expression":
        return None
    a, b = (_value(one) for one in fields(node, "left", "right"))
    if op in ("&&", "and", "||", "or"):
        ends = op in ("||", "or")
        if any(one is not None and bool(one) is ends for one in (a, b)):
            return int(ends)
        return None if None in (a, b) else int(not ends)
    if a is None or b is None or (op in ("/", "%", "<<", ">>") and (b <= 0 or a < 0 or b > 62)):
        return None
    rules_of_two = {
        "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b, "+": a + b, "-": a - b,
        "*": a * b, "&": a & b, "|": a | b, "^": a ^ b, "/": a // (b or 1), "%": a % (b or 1),
    }  # fmt: skip
    found = (a << b if op == "<<" else a >> b) if op in ("<<", ">>") else rules_of_two.get(op)
    return int(found) if found is not None and abs(found) < 2**63 else None


@lru_cache(maxsize=1000)
def directives(path: Path) -> tuple[tuple[re.Match[str], str], ...]:
    """Directives of a header, each with the text that it stands in."""
    plain = without_comments(text_of_file(path))
    return tuple((found, plain) for found in _DIRECTIVE.finditer(plain))


@lru_cache(maxsize=1000)
def text_of_file(path: Path) -> str:
    """Text of a header; empty where it cannot be read."""
    try:
        return read_bytes(path).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:
        return ""


@lru_cache(maxsize=4000)
def header(name: str, path: Path) -> Path | None:
    """Header that a file includes: in its own folder, in those above it, and in their folders ``include``."""
    for folder in list(path.parents)[:_HIGHEST]:
        for below in ("", "include"):
            if (found := folder / below / name).is_file():
                return found.resolve()
    return None


@lru_cache(maxsize=1000)
def headers_of(path: Path) -> tuple[Path, ...]:
    """Headers of the user's tree that a file includes, and those that they include."""
    found = [path]
    for one in found:  # grows
        names = _INCLUDES.findall(text_of_file(one))
        known = [other for name in names if (other := header(name, one)) is not None and other not in found]
        found += known[: max(_MOST_HEADERS - len(found), 0)]
    return tuple(found[1:])


@lru_cache(maxsize=1000)
def words_in(path: Path) -> frozenset[str]:
    """Words of a file."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", text_of_file(path)))


def macros_for(path: Path, macros: dict[str, Macro]) -> frozenset[tuple[str, Macro]]:
    """Macros that a header, or one that it includes, mentions; not the one that guards it from a second reading."""
    guard = re.search(
        r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)\s+#[ \t]*define[ \t]+\1[ \t]*$", text_of_file(path), re.MULTILINE
    )
    words = [words_in(one) for one in (path, *headers_of(path))]
    own = {guard.group(1)} if guard else set()
    return frozenset(
        (name, one) for name, one in macros.items() if name not in own and any(name in part for part in words)
    )


@lru_cache(maxsize=1000)
def called_in(path: Path) -> frozenset[str]:
    """Names that stand before a parenthesis in a header."""
    return frozenset(_BEFORE_PARENTHESIS.findall(text_of_file(path)))
