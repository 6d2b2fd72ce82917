"""A kernel's file to edit: where each node stands in its text, its program ids, and the pieces of text that change."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

from swizzle_sim.triton_source import SourceFile, parse_source
from swizzle_sim.triton_source.source_file import ProgramId, defaults_of, opened, parameters_of
from xcd_model.errors import LanguageError, RewriteError

_BLOCKS = (ast.FunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try)
_LINE_END = re.compile("\r\n|\r|\n")
_BLANK = re.compile(r"(?:\s|#[^\r\n]*|\\\r?\n)*")  # white space and comments, over lines
_LINE_REST = re.compile(r"[ \t]*(,?)[ \t]*(?:#[^\r\n]*)?(?=[\r\n])")


class EditableSource:
    """One Python file with a kernel in it."""

    def __init__(self, path: Path, data: bytes, kernel: str):
        self.facts = read_kernel(path, data, kernel)
        self.path, self.kernel, self.text = path, self.facts.inner(kernel), self.facts.text
        self.functions = self.facts.functions
        self.encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        ends = list(_LINE_END.finditer(self.text))
        self.newline = ends[0].group() if ends else "\n"
        self._begins = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(self.text)]
        self._parents = {inner: node for node in nodes(self.facts.tree) for inner in ast.iter_child_nodes(node)}
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        self._pieces: list[tuple[int, int, str]] = []  # of the edits: first character, end, text in their place
        self._names = {token.string for token in tokens if token.type == tokenize.NAME}

    @property
    def function(self) -> ast.FunctionDef:
        """The kernel."""
        return self.functions[self.kernel]

    @property
    def indent(self) -> str:
        """One level of the file's indentation: that of its first block."""
        blocks = [node.body for node in self.facts.tree.body if isinstance(node, _BLOCKS)]
        return next((indent for body in blocks if (indent := self.indent_of(body[0]))), "    ")

    def refuse(self, message: str, node: ast.expr | ast.stmt) -> RewriteError:
        """Error that names the line of a node."""
        return RewriteError(message, path=self.path, line=node.lineno)

    def span(self, node: ast.expr | ast.stmt | ast.arg) -> tuple[int, int]:
        """First character of a node, and the one after its last."""
        if any(isinstance(holder, ast.JoinedStr) for holder in self.holders(node)):
            message = f"{ast.unparse(node)} stands inside a text here: give its value to a name first"
            raise RewriteError(message, path=self.path, line=node.lineno)
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def bracketed(self, node: ast.expr) -> tuple[int, int]:
        """Span of a node that is no sole argument of a call, with the brackets around it."""
        begin, end = self.span(node)
        while (before := self.text[:begin].rstrip()).endswith("(") and (rest := self.text[end:].lstrip())[:1] == ")":
            begin, end = len(before) - 1, len(self.text) - len(rest) + 1
        return begin, end

    def code(self, node: ast.expr) -> str:
        """Text of a node, without brackets around it."""
        begin, end = self.span(node)
        return self.text[begin:end]

    def line(self, number: int) -> str:
        """Text of a line, counted from 1, without its end."""
        return self.text[self._begins[number - 1] : self._ends[number - 1]]

    def line_end(self, number: int) -> int:
        """Character after the last of a line, before the characters that end it."""
        return self._ends[number - 1]

    def indent_of(self, node: ast.stmt | ast.arg) -> str:
        """White space before a node; empty where something else is on the same line before it."""
        before = self.text[self._begins[node.lineno - 1] : self._at(node.lineno, node.col_offset)]
        return before if not before.strip() else ""

    def has_own_lines(self, stmt: ast.stmt) -> bool:
        """Whether a statement shares no line with another."""
        assert stmt.end_lineno is not None
        begin, end = self.span(stmt)
        before, after = (
            self.text[self._begins[stmt.lineno - 1] : begin],
            self.text[end : self.line_end(stmt.end_lineno)],
        )
        return not before.strip() and after.lstrip(" \t;")[:1] in ("", "#")

    def is_commented(self, stmt: ast.stmt) -> bool:
        """Whether a comment is beside a statement, or above it after blank lines at most."""
        assert stmt.end_lineno is not None
        beside = self.text[self.span(stmt)[1] : self.line_end(stmt.end_lineno)]
        return "#" in beside or self.line(self.line_above(stmt.lineno)).lstrip().startswith("#")

    def line_above(self, number: int, comments: str = "") -> int:
        """Last line above one that is not blank; 0 where there is none.

        With ``comments`` it is no comment line either: of those that begin so, or with ``#`` of any indentation.
        """
        above = number - 1
        while above:
            line = self.line(above).lstrip() if comments == "#" else self.line(above)
            if line.strip() and not (comments and line.startswith(comments)):
                break
            above -= 1
        return above

    def parent(self, node: ast.AST) -> ast.AST:
        """Node that directly holds another."""
        return self._parents[node]

    def holders(self, node: ast.AST) -> Iterator[ast.AST]:
        """Nodes around one, the innermost first, up to the function."""
        outer = self._parents.get(node)
        while outer is not None and not isinstance(outer, ast.FunctionDef | ast.Module):
            yield outer
            outer = self._parents.get(outer)

    def fresh(self, name: str) -> str:
        """Return ``name``, numbered where the file or an earlier call of this uses it."""
        found, number = name, 1
        while found in self._names:
            found, number = f"{name}_{number}", number + 1
        self._names.add(found)
        return found

    def program_ids(self) -> list[ProgramId]:
        """Calls of ``tl.program_id`` in the kernel and in what it calls."""
        kernel = self.function
        for mention in self.facts.passed_on(kernel):
            raise self.refuse("tl.program_id is not called here but passed on: call it where it is used", mention)
        found = sorted(self.facts.program_ids(kernel), key=lambda one: (one.line, one.call.col_offset))
        for one in found:
            text = self.code(one.call)
            if one.axis not in (0, 1, 2):
                raise self.refuse(f"{text}: only a literal axis 0, 1 or 2 can be remapped", one.call)
        return found

    def calls_of(self, function: str) -> Iterator[tuple[ast.Call, str]]:
        """Yield each call of a helper with the function it stands in."""
        reached = [one for one in self.facts.reachable(self.function) if isinstance(one, ast.FunctionDef)]
        within = {node: one.name for one in reached for node in nodes(one)}
        for node in nodes(self.facts.tree):
            if not (isinstance(node, ast.Name) and node.id == function):
                continue
            parent = self.parent(node)
            if not (isinstance(parent, ast.Call) and parent.func is node and node in within):
                raise self.refuse(
                    f"{function} calls tl.program_id and is used here outside {self.kernel}: give it a copy of its own",
                    node,
                )
            yield parent, within[node]

    # edits: what changes in the file

    def apply(self) -> bytes:
        """Return the file with every edit made; of two at one place the earlier stands first."""
        text, done, found = self.text, 0, []
        for begin, end, new in sorted(self._pieces, key=lambda one: one[:2]):
            found += [text[done:begin], new]
            done = end
        return "".join([*found, text[done:]]).encode(self.encoding)

    def replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        """Put other text where a node is."""
        begin, end = self.span(node)
        self._put(begin, end, text)

    def remove(self, stmt: ast.stmt) -> None:
        """Take a statement away that has lines of its own, and the blank lines above it."""
        begin = self.line_end(self.line_above(stmt.lineno))
        self._put(begin, self.line_end(stmt.end_lineno or 0), "")

    def after(self, stmt: ast.stmt, spelled: Callable[[str], str]) -> None:
        """Put a statement after another, indented as it is; ``spelled`` gives its text behind an indentation."""
        indent = self.indent_of(stmt)
        self._below(stmt.end_lineno or 0, [indent + spelled(indent)])

    def before(self, function: ast.FunctionDef, lines: list[str]) -> None:
        """Put lines before a function, its decorators and the comments above it."""
        indent = self.indent_of(function)
        new = [f"{indent}{line}" if line else "" for line in lines]
        self._below(self.line_above(first_line(function), f"{indent}#"), new)

    def import_lines(self, lines: list[str]) -> None:
        """Put lines after the last import at the top level, or a text that begins the file."""
        body = self.facts.tree.body
        first = body[:1] if ast.get_docstring(self.facts.tree, clean=False) is not None else []
        last = [*first, *(one for one in body if isinstance(one, ast.Import | ast.ImportFrom))][-1:]
        self._below((last[0].end_lineno or 0) if last else self.line_above(body[0].lineno), lines)

    def at_top(self, block: ast.FunctionDef | ast.For | ast.While, spelled: Callable[[str], str]) -> None:
        """Put a statement first in a function (after its docstring) or loop, as `after` does."""
        first = block.body[0]
        if not (indent := self.indent_of(first)):  # "for ...: one; two": give it lines
            indent = self.indent_of(block) + self.indent
            for k, stmt in enumerate(block.body):
                begin = self.span(stmt)[0]
                new = f"{self.newline}{indent}{spelled(indent)}" if k == 0 else ""
                self._put(len(self.text[:begin].rstrip(" \t;")), begin, f"{new}{self.newline}{indent}")
            return
        if isinstance(block, ast.FunctionDef) and ast.get_docstring(block, clean=False) is not None:
            head = first.end_lineno or 0
        else:
            head = self.line_above(first_line(first), "#")
        self._below(head, [indent + spelled(indent)])

    def last_parameter(self, function: ast.FunctionDef, text: str) -> None:
        """Append a parameter such as ``NUM_XCDS: tl.constexpr = 8``, laid out as the last one is.

        It is on a line of its own where those before have one; a comment beside the last one stays there.
        """
        given = function.args
        listed = given.kwonlyargs or ([given.vararg] if given.vararg else []) or given.args or given.posonlyargs
        if not listed:
            return self.put_first(function, [text])
        default = defaults_of(function).get(listed[-1].arg)
        end = self.bracketed(default)[1] if default else self.span(listed[-1])[1]
        if given.posonlyargs == listed:
            end = self.text.index("/", end) + 1
        indents = [self.indent_of(one) for one in (*reversed(listed), parameters_of(function)[0])]
        indent = next(filter(None, indents), None)
        if indent is None:
            return self._put(end, end, f", {text}")
        rest = _LINE_REST.match(self.text, end)
        if rest is None:
            return self._put(end, end, f",{self.newline}{indent}{text}")
        if not rest[1]:
            self._put(end, end, ",")
        self._put(rest.end(), rest.end(), f"{self.newline}{indent}{text}{rest[1]}")

    def put_first(self, node: ast.Call | ast.FunctionDef, names: list[str]) -> None:
        """Put names before a call's own arguments, or before a function's own parameters."""
        at = self.span(node.func)[1] if isinstance(node, ast.Call) else self.span(node)[0]
        opened = self.text.index("(", at) + 1
        rest = _BLANK.sub("", self.text[opened:], count=1)
        begin, more = (opened, "") if rest.startswith(")") else (len(self.text) - len(rest), ", ")
        self._put(begin, begin, ", ".join(names) + more)

    def _below(self, number: int, lines: list[str]) -> None:
        """Put lines below one, counted from 1; 0 puts them first in the file."""
        end = self.newline
        at = self.line_end(number) if number else 0
        self._put(at, at, "".join(f"{end}{line}" if number else f"{line}{end}" for line in lines))

    def _put(self, begin: int, end: int, text: str) -> None:
        self._pieces.append((begin, end, text))

    def _at(self, line: int, column: int) -> int:
        """Index of a character; ``ast`` counts columns in bytes of UTF-8."""
        text = self.line(line)
        return self._begins[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))


def read_kernel(path: Path, data: bytes, kernel: str) -> SourceFile:
    """Read a file that has a kernel."""
    try:
        found = opened(parse_source(data, str(path)))
    except LanguageError as error:
        raise RewriteError(error.message, path=path, line=error.line) from None
    if found.inner(kernel) not in found.functions:
        raise RewriteError(f"has no function {kernel!r} at its top level", path=path)
    return found


def nodes(*roots: ast.AST) -> Iterator[ast.AST]:
    """Every node of some trees, in text order but for decorators."""
    todo = list(reversed(roots))
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed(list(ast.iter_child_nodes(node))))


def first_line(stmt: ast.stmt) -> int:
    """Line that a statement begins on, its decorators included."""
    return min([stmt.lineno, *(one.lineno for one in getattr(stmt, "decorator_list", []))])
