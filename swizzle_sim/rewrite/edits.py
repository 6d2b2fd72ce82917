"""Edits of one file: pieces of text put in place of others, which leave all else as it was."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from swizzle_sim.rewrite.source import EditableSource, first_line
from swizzle_sim.triton_source.source_file import defaults_of, parameters_of

_BLANK = re.compile(r"(?:\s|#[^\r\n]*|\\\r?\n)*")  # white space and comments, over lines
_LINE_REST = re.compile(r"[ \t]*(,?)[ \t]*(?:#[^\r\n]*)?(?=[\r\n])")


class Edits:
    """What changes in a file."""

    def __init__(self, source: EditableSource):
        self.source = source
        self._pieces: list[tuple[int, int, str]] = []

    def apply(self) -> bytes:
        """Return the file with every edit made; of two at one place the earlier stands first."""
        text, done, found = self.source.text, 0, []
        for begin, end, new in sorted(self._pieces, key=lambda one: one[:2]):
            found += [text[done:begin], new]
            done = end
        return "".join([*found, text[done:]]).encode(self.source.encoding)

    def replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        """Put other text where a node is."""
        begin, end = self.source.span(node)
        self._put(begin, end, text)

    def remove(self, stmt: ast.stmt) -> None:
        """Take a statement away that has lines of its own, and the blank lines above it."""
        begin = self.source.line_end(self.source.line_above(stmt.lineno))
        self._put(begin, self.source.line_end(stmt.end_lineno or 0), "")

    def after(self, stmt: ast.stmt, spelled: Callable[[str], str]) -> None:
        """Put a statement after another, indented as it is; ``spelled`` gives its text behind an indentation."""
        indent = self.source.indent_of(stmt)
        self._below(stmt.end_lineno or 0, [indent + spelled(indent)])

    def before(self, function: ast.FunctionDef, lines: list[str]) -> None:
        """Put lines before a function, its decorators and the comments above it."""
        indent = self.source.indent_of(function)
        new = [f"{indent}{line}" if line else "" for line in lines]
        self._below(self.source.line_above(first_line(function), f"{indent}#"), new)

    def import_lines(self, lines: list[str]) -> None:
        """Put lines after the last import at the top level, or a text that begins the file."""
        body = self.source.facts.tree.body
        first = body[:1] if ast.get_docstring(self.source.facts.tree, clean=False) is not None else []
        last = [*first, *(one for one in body if isinstance(one, ast.Import | ast.ImportFrom))][-1:]
        self._below((last[0].end_lineno or 0) if last else self.source.line_above(body[0].lineno), lines)

    def at_top(self, block: ast.FunctionDef | ast.For | ast.While, spelled: Callable[[str], str]) -> None:
        """Put a statement first in a function (after its docstring) or loop, as `after` does."""
        source, first = self.source, block.body[0]
        if not (indent := source.indent_of(first)):  # "for ...: one; two": give it lines
            indent = source.indent_of(block) + source.indent
            for k, stmt in enumerate(block.body):
                begin = source.span(stmt)[0]
                new = f"{source.newline}{indent}{spelled(indent)}" if k == 0 else ""
                self._put(len(source.text[:begin].rstrip(" \t;")), begin, f"{new}{source.newline}{indent}")
            return
        if isinstance(block, ast.FunctionDef) and ast.get_docstring(block, clean=False) is not None:
            head = first.end_lineno or 0
        else:
            head = source.line_above(first_line(first), "#")
        self._below(head, [indent + spelled(indent)])

    def first_arguments(self, call: ast.Call, names: list[str]) -> None:
        """Put names before a call's own arguments."""
        self._first(self.source.span(call.func)[1], names)

    def first_parameters(self, function: ast.FunctionDef, names: list[str]) -> None:
        """Put positional parameters before a function's own."""
        self._first(self.source.span(function)[0], names)

    def last_parameter(self, function: ast.FunctionDef, text: str) -> None:
        """Append a parameter such as ``NUM_XCDS: tl.constexpr = 8``, laid out as the last one is.

        It is on a line of its own where those before have one; a comment beside the last one stays there.
        """
        source, given = self.source, function.args
        listed = given.kwonlyargs or ([given.vararg] if given.vararg else []) or given.args or given.posonlyargs
        if not listed:
            return self._first(source.span(function)[0], [text])
        default = defaults_of(function).get(listed[-1].arg)
        end = source.bracketed(default)[1] if default else source.span(listed[-1])[1]
        if given.posonlyargs == listed:
            end = source.text.index("/", end) + 1
        indents = [source.indent_of(one) for one in (*reversed(listed), parameters_of(function)[0])]
        indent = next(filter(None, indents), None)
        if indent is None:
            return self._put(end, end, f", {text}")
        rest = _LINE_REST.match(source.text, end)
        if rest is None:
            return self._put(end, end, f",{source.newline}{indent}{text}")
        if not rest[1]:
            self._put(end, end, ",")
        self._put(rest.end(), rest.end(), f"{source.newline}{indent}{text}{rest[1]}")

    def _first(self, at: int, names: list[str]) -> None:
        """Put names first in the brackets that open at or after a character."""
        opened = self.source.text.index("(", at) + 1
        rest = _BLANK.sub("", self.source.text[opened:], count=1)
        begin, more = (opened, "") if rest.startswith(")") else (len(self.source.text) - len(rest), ", ")
        self._put(begin, begin, ", ".join(names) + more)

    def _below(self, number: int, lines: list[str]) -> None:
        """Put lines below one, counted from 1; 0 puts them first in the file."""
        end = self.source.newline
        at = self.source.line_end(number) if number else 0
        self._put(at, at, "".join(f"{end}{line}" if number else f"{line}{end}" for line in lines))

    def _put(self, begin: int, end: int, text: str) -> None:
        self._pieces.append((begin, end, text))
