"""Intermediate representation of a candidate: a small, typed, closed tree, and queries on it.

Every expression is either an integer (32-bit signed on the device) or a condition. The parser inserts the conversions
(``x`` as a condition is ``x != 0``, a condition as a number is ``Select(c, 1, 0)``), so that each back end (virtual
machine, Triton, HIP) can stay literal. Nodes compare by value; ``line`` does not take part.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from xcd_model.errors import LanguageError

AXES = ("x", "y", "z")
# Names that the grid or the GPU supplies. Coordinates differ between workgroups, counts do not.
COORDINATES = frozenset(
    {"pid", "pid_m", "pid_n", *AXES, *(f"pid_{a}" for a in AXES), *(f"program_id({k})" for k in range(3))}
)
COUNTS = frozenset(
    {
        "num_pids",
        "num_pid_m",
        "num_pid_n",
        "num_xcds",
        "NUM_XCDS",
        *(f"num_pid_{a}" for a in AXES),
        *(f"num_programs({k})" for k in range(3)),
    }
)
GRID_NAMES = COORDINATES | COUNTS

INT_OPS = ("+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "min", "max", "cdiv")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Int:
    """An integer literal."""

    value: int


@dataclass(frozen=True)
class Name:
    """A variable, or a value that the grid, the GPU or the kernel supplies (``pid``, ``num_xcds``, ``M``)."""

    name: str


@dataclass(frozen=True)
class Unary:
    """``-x`` or ``~x``."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Binary:
    """An integer of two integers; ``op`` is one of `INT_OPS`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Select:
    """``then if condition else other``, also ``tl.where``: both sides are evaluated, as a GPU does."""

    condition: Cond
    then: Expr
    other: Expr


@dataclass(frozen=True)
class Compare:
    """A condition of two integers; ``op`` is one of `COMPARISONS`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Connect:
    """``and`` or ``or``; both sides are evaluated."""

    op: str
    left: Cond
    right: Cond


@dataclass(frozen=True)
class Not:
    """``not c``."""

    operand: Cond


Expr = Int | Name | Unary | Binary | Select
Cond = Compare | Connect | Not


@dataclass(frozen=True)
class Assign:
    """``target = value``."""

    target: str
    value: Expr
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class If:
    """``if`` with both branches; ``elif`` is an `If` inside ``orelse``."""

    condition: Cond
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class For:
    """``for var in range(start, stop, step)``; ``step`` is a positive literal, ``var`` is not assigned inside."""

    var: str
    start: Expr
    stop: Expr
    step: int
    body: tuple[Stmt, ...]
    line: int = field(default=0, compare=False)


Stmt = Assign | If | For


@dataclass(frozen=True)
class Form:
    """A whole candidate."""

    body: tuple[Stmt, ...]
    # variables that hold the logical tile at the end: ``("pid",)``, or one per grid axis such as ``("pid_m",
    # "pid_n")``. The last group assigned in the text is the result.
    results: tuple[str, ...]
    # names read before the text assigns them, sorted: what an environment must supply. A `Name` such as
    # ``program_id(1)`` or ``num_programs(0)`` is the Triton call of that axis.
    inputs: tuple[str, ...]

    @property
    def reads_num_xcds(self) -> bool:
        """Whether the result can depend on the XCD count."""
        return any(name.lower() == "num_xcds" for name in self.inputs)

    @property
    def reads_sizes(self) -> bool:
        """Whether the form reads a name that only a kernel supplies."""
        return any(name not in GRID_NAMES for name in self.inputs)


def parts(node: Expr | Cond) -> tuple[Expr | Cond, ...]:
    """Direct operands of an expression, left to right."""
    if isinstance(node, Binary | Compare | Connect):
        return (node.left, node.right)
    if isinstance(node, Unary | Not):
        return (node.operand,)
    if isinstance(node, Select):
        return (node.condition, node.then, node.other)
    return ()


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Yield the statements of a block and of the blocks in it, in text order."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, Assign):
            yield from statements(stmt.body)
        if isinstance(stmt, If):
            yield from statements(stmt.orelse)


def nodes(body: Iterable[Stmt | Expr | Cond]) -> Iterator[Expr | Cond]:
    """Yield every expression and condition of statements, and their parts, in text order."""
    todo: list[Stmt | Expr | Cond] = [*reversed(tuple(body))]
    while todo:
        node = todo.pop()
        if isinstance(node, Assign):
            todo.append(node.value)
        elif isinstance(node, If):
            todo += [*node.orelse[::-1], *node.body[::-1], node.condition]
        elif isinstance(node, For):
            todo += [*node.body[::-1], node.stop, node.start]
        else:
            yield node
            todo += parts(node)[::-1]


def names_in(body: Iterable[Stmt]) -> set[str]:
    """Names that statements read, at any depth."""
    return {node.name for node in nodes(body) if isinstance(node, Name)}


def names_set(body: Iterable[Stmt]) -> set[str]:
    """Names that statements assign, at any depth, loop variables among them."""
    return {one.var if isinstance(one, For) else one.target for one in statements(body) if not isinstance(one, If)}


def literals(body: Iterable[Stmt | Cond]) -> list[int]:
    """Literals of statements, in text order, without repetition."""
    return list(dict.fromkeys(node.value for node in nodes(body) if isinstance(node, Int)))


def names_read(node: Expr | Cond) -> Iterator[str]:
    """Name of every `Name` in an expression, in evaluation order."""
    return (part.name for part in nodes((node,)) if isinstance(part, Name))


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "cdiv": lambda a, b: -(-a // b),
}


def evaluate(node: Expr | Cond, values: Mapping[str, int]) -> int:
    """Value of an expression in Python's unbounded integers; a condition evaluates to True or False."""
    match node:
        case Int(value):
            return value
        case Name(name):
            if name not in values:
                known = ", ".join(sorted(values))
                raise LanguageError(
                    f"{name!r} has no value here; there is {known}", filename="<condition>", code="name"
                )
            return values[name]
        case Not(operand):
            return not evaluate(operand, values)
        case Unary("-", operand):
            return -evaluate(operand, values)
        case Select(condition, then, other):
            return evaluate(then if evaluate(condition, values) else other, values)
        case Binary(op, left, right) | Compare(op, left, right) | Connect(op, left, right) if op in OPERATIONS:
            return OPERATIONS[op](evaluate(left, values), evaluate(right, values))
    raise LanguageError(f"a condition has no {node!r}", filename="<condition>", code="node")
