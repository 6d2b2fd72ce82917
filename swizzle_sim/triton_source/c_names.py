"""What names mean in one function of C, and the trees of Python that stand for its values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tree_sitter import Node

from swizzle_sim.triton_source.c_types import BOOL, INT, OPEN, RECORD, UNKNOWN, UNSIGNED, said

_Tree = TypeVar("_Tree", bound=ast.AST)
UNREAD = "unread"  # the call that stands for what has no counterpart
GUARD = "guarded_"  # before the number of a value that must not be negative


class Value(NamedTuple):
    """An expression, and the kind of its type."""

    tree: ast.expr
    kind: str

    @property
    def is_number(self) -> bool:
        """Whether it is an integer that the reader models."""
        return self.kind not in (UNKNOWN, RECORD)


class Variable(NamedTuple):
    """A name of a function: under which name of Python, of which kind, and what stands for it where it is unread."""

    name: str
    kind: str
    is_const: bool = False
    why: str = ""
    at: Node | None = None  # of what makes it unread
    by_reference: bool = False  # a parameter that is the caller's variable

    @property
    def is_integer(self) -> bool:
        """Whether it may be assigned an integer."""
        return self.kind in (INT, UNSIGNED) and not self.why


class Function(NamedTuple):
    """What a call of a function of the file has to know."""

    name: str
    node: Node
    parameters: list[Variable]
    template: list[Variable | None]  # numbers of its template in order, None for a type
    result: str | None  # kind of what it returns: empty for nothing or a list, None for what is not read
    is_whole: bool  # whether every parameter is one of `parameters`
    types: frozenset[str] = frozenset()  # parameters of types that its template chooses, which are copies
    kinds: tuple[str, ...] = ()  # of the list that it returns

    @property
    def changed(self) -> tuple[str, ...]:
        """Parameters by which it may change what it is called with."""
        return tuple(one.name for one in self.parameters if one.by_reference and not one.is_const)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Parameters by which it hands out integers."""
        return tuple(one.name for one in self.parameters if one.name in self.changed and one.kind in (INT, UNSIGNED))

    def keeps(self, parameter: Variable) -> bool:
        """Whether it leaves a variable that it is called with as it is: no object is made that may hold it."""
        is_number = parameter.kind in (INT, UNSIGNED, BOOL) or parameter.name in self.types
        return is_number and (parameter.is_const or not parameter.by_reference)


@dataclass
class Calls:
    """What a file says beside one function."""

    functions: dict[str, Function] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)  # kind of each constant of the file
    owners: dict[str, str] = field(default_factory=dict)  # class of each constant that is of one
    vague: frozenset[str] = frozenset()  # fields that are read of several records
    alike: bool = False  # whether classes have constants of one name
    casts: bool = False  # whether a reference to what is const may be made one to what is not
    unread: dict[str, str] = field(default_factory=dict)  # names that are not read, and why
    divmods: frozenset[str] = frozenset()  # names of objects that divide by a number of theirs
    magic: frozenset[str] = frozenset()  # those of CK's, whose ``divmod(number, quotient, remainder)`` assigns both
    included: Callable[[str], ast.FunctionDef | None] = lambda name: None  # function of a header


@dataclass
class Names:
    """Names in sight, statements that go before the one being read, and what of the function is not modelled."""

    calls: Calls
    scopes: list[dict[str, Variable]] = field(default_factory=lambda: [{}])
    before: list[ast.stmt] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)  # every word of the function, and names made for Python
    declared: set[str] = field(default_factory=set)  # names that the function declares anywhere
    flags: set[str] = field(default_factory=set)  # parameters of the type bool
    fields: dict[str, str] = field(default_factory=dict)  # record of each field's name
    dirty: set[str] = field(default_factory=set)  # fields that the function assigns
    lambdas: dict[str, Function] = field(default_factory=dict)  # by the variable's name of Python
    divisor: str = ""  # what the expression is divided by, which is at least 1
    not_negative: set[str] = field(default_factory=set)  # signed, and plainly never below 0
    has_lambda: bool = False
    outside: set[str] = field(default_factory=set)  # names that it assigns and does not declare
    copied: set[str] = field(default_factory=set)  # locals that are only copies of a field of their name

    def find(self, name: str) -> Variable | None:
        """Variable that a name means here."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def own_function(self, name: str) -> Function | None:
        """Function of the file, or lambda with a name, that a call of the name calls; None where it is another."""
        variable = self.find(name)
        if variable is not None:
            return self.lambdas.get(variable.name)
        return self.calls.functions.get(name) if name not in self.calls.unread else None

    def fresh(self, name: str) -> str:
        """A name of Python that the function does not have."""
        number, made = 2, name
        while made in self.taken:
            made, number = f"{name}_{number}", number + 1
        self.taken.add(made)
        return made

    def guarded(self, tree: ast.expr, node: Node) -> ast.expr:
        """Value that a statement before this one computes, and that no launch passes where it is negative."""
        if isinstance(tree, ast.Constant) and isinstance(tree.value, int) and tree.value >= 0:
            return tree
        name = self.fresh(f"{GUARD}{len(self.taken)}")
        second = placed(ast.parse(f"{name} = {name} + (0 << min({name}, 0))").body[0], node)
        for one in ast.walk(second):
            one.is_builtin = True  # type: ignore[attr-defined]
        self.before += [assigned(name, tree, node), second]
        return named(name, node)

    def set_before(self, tree: ast.expr, node: Node) -> str:
        """Name that a statement before this one gives a value."""
        name = self.fresh(f"value_{len(self.taken)}")
        self.before.append(assigned(name, tree, node))
        return name


def placed(tree: _Tree, node: Node) -> _Tree:
    """Syntax tree at the line and column of a node, its parts too where they have none."""
    row, column = node.start_point
    for part in ast.walk(tree):
        if isinstance(part, ast.expr | ast.stmt | ast.arg) and not getattr(part, "is_placed", False):
            part.lineno = part.end_lineno = row + 1
            part.col_offset = part.end_col_offset = column
            part.is_placed = True  # type: ignore[union-attr]
    return tree


def named(name: str, node: Node, context: ast.expr_context | None = None) -> ast.Name:
    """Name at a place."""
    return placed(ast.Name(name, context or ast.Load()), node)


def assigned(name: str, tree: ast.expr, node: Node) -> ast.stmt:
    """Assignment at a place."""
    return placed(ast.Assign([named(name, node, ast.Store())], tree), node)


def unread(node: Node, text: str = "", mentioned: Sequence[ast.expr] = ()) -> ast.expr:
    """What stands for an expression without a counterpart: a call that nothing knows, with its text."""
    text = text or said(node).replace(OPEN, "")
    return placed(ast.Call(ast.Name(UNREAD, ast.Load()), [ast.Constant(text[:80]), *mentioned], []), node)


def is_unread(tree: ast.AST) -> bool:
    """Whether a tree holds what has no counterpart."""
    return any(isinstance(one, ast.Name) and one.id == UNREAD for one in ast.walk(tree))
