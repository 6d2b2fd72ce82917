"""A candidate's text, and errors that point into it."""

from __future__ import annotations

import ast
import re
import textwrap
from typing import NoReturn

from swizzle_sim.swizzle.rules import MAX_DEPTH, MAX_NODES, MAX_TEXT_BYTES
from xcd_model.errors import LanguageError

# A binary operator at the end of a line with no comment or string. Python wants a bracket or a backslash there;
# papers and chat replies wrap long formulas without one, and no valid program has such a line.
_OPEN_END = re.compile(r"""^([^#'"\\]*[-+*/%&|^<>])[ \t]*$""", re.MULTILINE)
_LONGEST_SHOWN = 200


class Source:
    """The text of one candidate.

    Parameters
    ----------
    text : str
    filename : str
        Name for messages.
    """

    def __init__(self, text: str, filename: str):
        self.filename = filename
        self.lines = re.split(r"\r\n|\r|\n", text)
        self._check_text(text)
        self.text = textwrap.dedent(text)
        shown = re.split(r"\r\n|\r|\n", self.text)
        # What dedent took away, so that a column counts in the text as it was given.
        self._margin = max((len(a) - len(b) for a, b in zip(self.lines, shown, strict=False) if b.strip()), default=0)

    def refuse(self, message: str, code: str, line: int = 0, column: int = 0) -> NoReturn:
        """Raise a `LanguageError` at a place counted from 1."""
        shown = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        shown = "".join(c if c.isprintable() else " " for c in shown) if len(shown) <= _LONGEST_SHOWN else ""
        raise LanguageError(
            message, filename=self.filename, line=line, column=max(column, 1), source_line=shown, code=code
        )

    def refuse_node(self, node: ast.AST, message: str, code: str = "node") -> NoReturn:
        """Raise a `LanguageError` where an ast node begins."""
        line = getattr(node, "lineno", 0)
        # ast counts columns in bytes of UTF-8
        text = self.lines[line - 1][self._margin :] if line else ""
        before = text.encode("utf-8", "replace")[: getattr(node, "col_offset", 0)]
        self.refuse(message, code, line, self._margin + len(before.decode("utf-8", "replace")) + 1)

    def column_of(self, name: str, line: int) -> int:
        """Column of a name in a line, 1 where it does not stand in it."""
        found = re.search(rf"\b{re.escape(name)}\b", self.lines[line - 1]) if 0 < line <= len(self.lines) else None
        return found.start() + 1 if found else 1

    def parse(self) -> ast.Module:
        """Return the syntax tree, checked for size and depth; nothing of it is ever executed."""
        try:
            tree = self._ast(self.text)
        except SyntaxError as error:
            try:
                tree = self._ast(_OPEN_END.sub(r"\1 \\", self.text))
            except SyntaxError:
                self._refuse_syntax(error)
        self._check_size(tree)
        return tree

    def _ast(self, text: str) -> ast.Module:
        """``ast.parse`` whose ways to run out of room are one error."""
        try:
            return ast.parse(text)
        except (RecursionError, MemoryError):
            self.refuse(f"the text nests deeper than {MAX_DEPTH} levels: use variables for parts of it", "limit")
        except ValueError as error:  # characters that no encoding has
            self.refuse(f"cannot be read: {error}", "syntax")

    def _check_text(self, text: str) -> None:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_TEXT_BYTES:
            self.refuse(f"the text has {size} bytes; at most {MAX_TEXT_BYTES} are read", "limit")
        if "\0" in text:
            line = text[: text.index("\0")].count("\n") + 1
            self.refuse("the text has a null byte: remove it", "syntax", line)

    def _refuse_syntax(self, error: SyntaxError) -> NoReturn:
        line = min(error.lineno or 0, len(self.lines))
        message = error.msg.split(": value has", maxsplit=1)[0].removesuffix(". Perhaps you forgot a comma?")
        code = "limit" if "too many" in message or "digits" in message else "syntax"
        self.refuse(f"not Python: {message}", code, line, self._margin + (error.offset or 1))

    def _check_size(self, tree: ast.Module) -> None:
        """Refuse a tree that is too big or too deep, without recursion of our own."""
        count = 0
        todo: list[tuple[ast.AST, int]] = [(tree, 0)]
        while todo:
            node, depth = todo.pop()
            count += isinstance(node, ast.expr | ast.stmt)
            if count > MAX_NODES:
                self.refuse_node(node, f"the text has more than {MAX_NODES} parts: make it shorter", "limit")
            if depth > MAX_DEPTH:
                self.refuse_node(node, f"nested deeper than {MAX_DEPTH} levels: use variables for parts of it", "limit")
            todo.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
