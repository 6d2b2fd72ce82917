"""A kernel's file as a tree that keeps every comment and blank, and where it asks for its program id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider, QualifiedNameProvider

from xcd_model.errors import RewriteError

_PROGRAM_ID = re.compile(r"triton\.language\.(core\.)?program_id")

_READS_MEMORY = re.compile(r"triton\.language\.(core\.)?(load|atomic_\w+)")


@dataclass(frozen=True, eq=False)
class AxisCall:
    """One call of ``tl.program_id`` with a literal axis."""

    node: cst.Call
    axis: int
    function: str
    line: int


class Source:
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
        self.path, self.kernel = path, kernel
        try:
            module = cst.parse_module(text)
        except cst.ParserSyntaxError as error:
            raise RewriteError(f"no Python: {error.message}", path=path, line=error.raw_line) from None
        except (UnicodeDecodeError, LookupError, SyntaxError, ValueError) as error:
            raise RewriteError(f"no Python text: {error}", path=path) from None
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self.module = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._qualified = wrapper.resolve(QualifiedNameProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)
        self.functions = {node.name.value: node for node in self.module.body if isinstance(node, cst.FunctionDef)}
        if kernel not in self.functions:
            raise RewriteError(f"has no function {kernel!r} at its top level", path=path)

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

    def names(self) -> set[str]:
        """Every identifier in the file."""
        return {node.value for node in nodes(self.module) if isinstance(node, cst.Name)}

    def fresh(self, name: str, taken: set[str]) -> str:
        """Return ``name``, numbered where it is taken, and take it."""
        found, number = name, 1
        while found in taken:
            found, number = f"{name}_{number}", number + 1
        taken.add(found)
        return found

    def refers_to(self, node: cst.CSTNode, pattern: re.Pattern[str]) -> bool:
        """Whether a name or attribute means what a pattern of dotted names says, through whatever import."""
        if not isinstance(node, cst.Name | cst.Attribute):
            return False
        found = self._qualified.get(node, ())
        return any(pattern.fullmatch(one.name) for one in (found() if callable(found) else found))

    def reachable(self) -> list[str]:
        """Functions of the file that the kernel calls, however deep, itself first."""
        found = [self.kernel]
        for name in found:
            for node in nodes(self.functions[name].body):
                if isinstance(node, cst.Name) and node.value in self.functions and node.value not in found:
                    found.append(node.value)
        return found

    def program_ids(self) -> list[AxisCall]:
        """Calls of ``tl.program_id`` in the kernel and in what it calls.

        Raises
        ------
        RewriteError
            If the function is passed around under another name, or an axis is no literal 0, 1 or 2.
        """
        within = {id(node): name for name in self.reachable() for node in nodes(self.functions[name])}
        found = []
        for node in nodes(self.module):
            if not self.refers_to(node, _PROGRAM_ID) or self._is_import(node):
                continue
            call = self.parent(node)
            if not (isinstance(call, cst.Call) and call.func is node):
                raise self.refuse("tl.program_id is not called here but passed on: call it where it is used", node)
            if id(node) in within:
                found.append(AxisCall(call, self._axis(call), within[id(node)], self.line(call)))
        return found

    def _is_import(self, node: cst.CSTNode) -> bool:
        while not isinstance(node, cst.Module):
            if isinstance(node, cst.Import | cst.ImportFrom):
                return True
            node = self.parent(node)
        return False

    def _axis(self, call: cst.Call) -> int:
        named = [arg for arg in call.args if arg.keyword is None or arg.keyword.value == "axis"]
        value = self.code(named[0].value) if len(named) == len(call.args) == 1 else ""
        if value not in ("0", "1", "2"):
            raise self.refuse(f"{self.code(call)}: only a literal axis 0, 1 or 2 can be remapped", call)
        return int(value)

    def waiting_loop(self) -> int:
        """Line of a ``while`` whose condition reads memory, as that of a spin lock does; 0 where there is none."""
        for name in self.reachable():
            for node in nodes(self.functions[name]):
                if isinstance(node, cst.While) and any(self.refers_to(one, _READS_MEMORY) for one in nodes(node.test)):
                    return self.line(node)
        return 0

    def calls_of(self, function: str) -> Iterator[tuple[cst.Call, str]]:
        """Yield each call of a helper with the function it stands in.

        Raises
        ------
        RewriteError
            If the helper is used otherwise, or by a function that the kernel does not call.
        """
        within = {id(node): name for name in self.reachable() for node in nodes(self.functions[name])}
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
