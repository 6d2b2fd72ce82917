"""What a candidate's text becomes: a small, typed, closed tree.

Every expression is either an integer (a signed 32-bit one on the device) or a condition; the parser puts the
conversions in (``x`` as a condition is ``x != 0``, a condition as a number is ``Select(c, 1, 0)``), so that each back
end, the evaluator, Triton and HIP, can stay literal. Nodes compare by value; ``line`` does not take part.
"""

from __future__ import annotations

from dataclasses import dataclass, field

INT_OPS = ("+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "min", "max", "cdiv")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
CONNECTIVES = ("and", "or")


@dataclass(frozen=True)
class Int:
    """An integer literal."""

    value: int


@dataclass(frozen=True)
class Name:
    """A variable, or a value that the grid, the GPU or the kernel gives (``pid``, ``num_xcds``, ``M``)."""

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
    """A whole candidate.

    Parameters
    ----------
    body : tuple of Stmt
    results : tuple of str
        Variables that hold the answer at the end: ``("pid",)``, or one a grid axis such as
        ``("pid_m", "pid_n")``. The last group assigned in the text is the answer.
    inputs : tuple of str
        Names read before the text assigns them, sorted: what an environment must supply. A `Name` such as
        ``program_id(1)`` or ``num_programs(0)`` stands for the Triton call of that axis.
    """

    body: tuple[Stmt, ...]
    results: tuple[str, ...]
    inputs: tuple[str, ...]
