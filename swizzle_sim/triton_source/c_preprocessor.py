"""The preprocessor of C, as far as a file and the headers beside it decide: comments out, macros in their places.

A condition that nothing decides (``#if defined(__gfx90a__)``) keeps all its branches and their lines are noted: what
stands there is not read. A macro that such a condition, or ``##``, leaves open becomes a name that nothing knows.
Lines stay where they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from swizzle_sim.triton_source.c_expressions import number_of, value_of
from swizzle_sim.triton_source.c_names import Calls, Names
from swizzle_sim.triton_source.c_types import OPEN, inside, parser
from xcd_model.errors import LanguageError
from xcd_model.files import read_bytes

_HIGHEST = 10  # folders above a file in which its headers are looked for
_MOST_HEADERS = 200
_MOST_CHARACTERS = 8_000_000  # with macros in their places
_DEEPEST = 60  # macros in macros
_SPLICE = "\x01"  # a line that goes on in the next
_SPLICED = re.compile(r"\\[ \t]*\r?\n")
_CUT = re.compile(r"[^\s\x01]+(?:\x01+[^\s\x01]+)+")
_BEFORE_PARENTHESIS = re.compile(r"\b(\w+)\s*\(")
_DEFINED = re.compile(r"\b(\w+)\s*\([^;{}]*\)[^;{}()]*\{")
_COMMENT = re.compile(
    r'R"([^()\s\\]{0,16})\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'(?!\w)|//[^\n]*|/\*.*?(?:\*/|\Z)',
    re.DOTALL,
)
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\.?\d(?:[\w.\']|[eEpP][+-])*|[A-Za-z_]\w*')
_DIRECTIVE = re.compile(r"^[ \t\x01]*#[ \t\x01]*(\w*)([^\n]*)\n?", re.MULTILINE)
_DEFINE = re.compile(r"\s*([A-Za-z_]\w*)(\(([^()]*)\))?(.*)", re.DOTALL)
_INCLUDES = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_INCLUDE = re.compile(r"\s*[<\"]([^>\"\n]+)[>\"]")
_GUARD = re.compile(r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)\s+#[ \t]*define[ \t]+\1[ \t]*$", re.MULTILINE)
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


class Context:
    """Macros among which a header is included."""

    def __init__(self, path: Path, macros: dict[str, Macro]):
        self.path, self.macros = path, macros

    @cached_property
    def given(self) -> frozenset[tuple[str, Macro]]:
        """Macros that the header, or one that it includes, mentions and does not define so by itself; not its guard."""
        own, guard = _alone(self.path), _GUARD.search(text_of_file(self.path))
        odd = [(name, one) for name, one in self.macros.items() if own.get(name) != one]
        words = [words_in(one) for one in (self.path, *headers_of(self.path))] if odd else []
        found = ((name, one) for name, one in odd if any(name in part for part in words))
        return frozenset((name, one) for name, one in found if guard is None or name != guard.group(1))


Headers = dict[Path, Context]  # files that one includes
# What finds a function of headers by its name: `imports`, once it is there.
FINDERS: list[Callable[[str, Headers], ast.FunctionDef | None] | None] = [None]


class Region(NamedTuple):
    """Lines of one branch of a condition that nothing decides; regions of one condition have its first line."""

    condition: str
    first: int
    begin: int
    end: int


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
        known = _CUDA if path.suffix in (".cu", ".cuh") or "__CUDACC__" in dict(given) else _HIP
        self.macros = {name: Macro(None, f"{OPEN}value" if name == "__cplusplus" else "1") for name in known}
        self.macros.update(given)
        self.headers: Headers = {}
        self.regions: list[Region] = []
        self._stack: list[_Branch] = []
        self._room = _MOST_CHARACTERS

    def run(self, text: str) -> str:
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
        return "".join(found).replace(_SPLICE, "\n")

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
        self.headers[path] = Context(path, dict(self.macros))
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
        return _truth_of(plain)

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


@lru_cache(maxsize=100_000)
def _truth_of(text: str) -> bool | None:
    """Whether a condition holds; None where a name in it decides, or a type."""
    root = parser().parse(f"int x = ({text});".encode()).root_node
    found = next((one for one in inside(root) if one.type == "init_declarator"), None)
    if found is None or root.has_error:
        return None
    names = Names(Calls())
    value = number_of(value_of(found.child_by_field_name("value"), names).tree)
    return None if value is None or names.before else bool(value)


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


@lru_cache(maxsize=1000)
def _alone(path: Path) -> dict[str, Macro]:
    """Macros behind a header that nothing includes."""
    state = Preprocessor(path)
    for found, plain in directives(path):
        state._directive(found, plain, 0)
    return state.macros


@lru_cache(maxsize=1000)
def called_in(path: Path) -> frozenset[str]:
    """Names that stand before a parenthesis in a header."""
    return frozenset(_BEFORE_PARENTHESIS.findall(text_of_file(path)))


@lru_cache(maxsize=1000)
def defined_in(path: Path) -> frozenset[str]:
    """Names that a header seems to define as functions."""
    return frozenset(_DEFINED.findall(text_of_file(path)))
