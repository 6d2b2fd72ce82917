"""A kernel's file as a concrete syntax tree to edit, and its program ids, located where the one reader finds them.

`swizzle_sim.triton_source` reads the facts, on ``ast``. Here its positions are looked up in a tree of LibCST, which
holds every comment and blank: a call has the same first and last character in both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from swizzle_sim.triton_source import SourceFile, parse_source
from xcd_model.errors import LanguageError, RewriteError

_Span = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class AxisCall:
    """One call of ``tl.program_id`` with a literal axis."""

    node: cst.Call
    axis: int
    function: str
    line: int


class EditableSource:
    """One Python file with a kernel in it.

    Parameters
    ----------
    path : Path
    text : bytes
        What the file holds.
    kernel : str
        Name of the kernel, a function of the module.

    Raises
    ------
    RewriteError
        If the text is no Python, or has no such function at its top level.
    """

    def __init__(self, path: Path, text: bytes, kernel: str):
        self.facts = read_kernel(path, text, kernel)
        self.path, self.kernel = path, self.facts.inner(kernel)
        try:
            module = cst.parse_module(text)
        except cst.ParserSyntaxError as error:
            raise RewriteError(f"no Python: {error.message}", path=path, line=error.raw_line) from None
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self.module = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)
        self._names = {node.value for node in nodes(self.module) if isinstance(node, cst.Name)}
        self._calls = {self._span(node): node for node in nodes(self.module) if isinstance(node, cst.Call)}
        by_line = {self.line(node.name): node for node in nodes(self.module) if isinstance(node, cst.FunctionDef)}
        self.functions = {name: by_line[node.lineno] for name, node in self.facts.functions.items()}

    @property
    def function(self) -> cst.FunctionDef:
        """The kernel."""
        return self.functions[self.kernel]

    def line(self, node: cst.CSTNode) -> int:
        """Line of a node, counted from 1."""
        return self._positions[node].start.line

    def refuse(self, message: str, node: cst.CSTNode) -> RewriteError:
        """Error that names the line of a node."""
        return RewriteError(message, path=self.path, line=self.line(node))

    def code(self, node: cst.CSTNode) -> str:
        """Text of a node."""
        return self.module.code_for_node(node)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode:
        """Node that directly holds another."""
        return self._parents[node]

    def fresh(self, name: str) -> str:
        """Return ``name``, numbered where the file or an earlier call of this uses it."""
        found, number = name, 1
        while found in self._names:
            found, number = f"{name}_{number}", number + 1
        self._names.add(found)
        return found

    def program_ids(self) -> list[AxisCall]:
        """Calls of ``tl.program_id`` in the kernel and in what it calls.

        Raises
        ------
        RewriteError
            If the function is passed around under another name, or an axis is no literal 0, 1 or 2.
        """
        kernel = self.facts.functions[self.kernel]
        for mention in self.facts.passed_on(kernel):
            message = "tl.program_id is not called here but passed on: call it where it is used"
            raise RewriteError(message, path=self.path, line=mention.lineno)
        found = []
        for one in sorted(self.facts.program_ids(kernel), key=lambda one: (one.line, one.call.col_offset)):
            node = self._calls.get(self._span_of(one.call))
            if node is None:  # the parsers of older Pythons give no place in the file to what an f-string holds
                message = "tl.program_id is called inside a text here: give its value to a name first"
                raise RewriteError(message, path=self.path, line=one.line)
            if one.axis not in (0, 1, 2):
                raise self.refuse(f"{self.code(node)}: only a literal axis 0, 1 or 2 can be remapped", node)
            found.append(AxisCall(node, one.axis, one.function, one.line))
        return found

    def calls_of(self, function: str) -> Iterator[tuple[cst.Call, str]]:
        """Yield each call of a helper with the function it stands in.

        Raises
        ------
        RewriteError
            If the helper is used otherwise, or by a function that the kernel does not call.
        """
        reached = self.facts.reachable(self.facts.functions[self.kernel])
        names = [one.name for one in reached if isinstance(one, ast.FunctionDef)]
        within = {id(node): name for name in names for node in nodes(self.functions[name])}
        for node in nodes(self.module):
            if not (isinstance(node, cst.Name) and node.value == function) or node is self.functions[function].name:
                continue
            parent = self.parent(node)
            if _names_no_value(node, parent):
                continue
            if not (isinstance(parent, cst.Call) and parent.func is node and id(node) in within):
                raise self.refuse(
                    f"{function} calls tl.program_id and is used here outside {self.kernel}: give it a copy of its own",
                    node,
                )
            yield parent, within[id(node)]

    def _span(self, node: cst.CSTNode) -> _Span:
        place = self._positions[node]
        return place.start.line, place.start.column, place.end.line, place.end.column

    def _span_of(self, node: ast.expr) -> _Span:
        """Span of a node in characters; ``ast`` counts columns in bytes of UTF-8."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        ends = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        (line, column), (last, end) = (
            (line, len(self.facts.lines[line - 1].encode()[:column].decode())) for line, column in ends
        )
        return line, column, last, end


def read_kernel(path: Path, text: bytes, kernel: str) -> SourceFile:
    """Read a file that has a kernel.

    Raises
    ------
    RewriteError
        If the text is no Python, or has no such function at its top level.
    """
    try:
        found = parse_source(text, str(path))
    except LanguageError as error:
        raise RewriteError(error.message, path=path, line=error.line) from None
    if found.inner(kernel) not in found.functions:
        raise RewriteError(f"has no function {kernel!r} at its top level", path=path)
    return found


def _names_no_value(node: cst.Name, parent: cst.CSTNode) -> bool:
    """Whether a name is only that of a field, a keyword or a parameter."""
    return (
        (isinstance(parent, cst.Attribute) and parent.attr is node)
        or (isinstance(parent, cst.Arg) and parent.keyword is node)
        or (isinstance(parent, cst.Param) and parent.name is node)
    )


def nodes(root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Every node of a tree, in text order."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed(list(node.children)))
