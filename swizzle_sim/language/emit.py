"""Printer of the typed form: expressions in any of three dialects, statements in Python's layout; text and Triton.

Parentheses are stricter than the grammars require. Python and C++ disagree on how tightly ``&`` and ``<`` bind, and g++
warns about mixed operators, so bit operations and mixed ``*``, ``//``, ``%`` are always bracketed.
"""

from __future__ import annotations

import keyword
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from swizzle_sim.language.ir import (
    COORDINATES,
    Assign,
    Binary,
    Compare,
    Cond,
    Connect,
    Expr,
    For,
    Form,
    If,
    Int,
    Name,
    Not,
    Select,
    Stmt,
    Unary,
    names_read,
)
from swizzle_sim.language.variables import (
    arguments,
    assigned,
    check_function_name,
    is_axis_call,
    live_after_each,
    live_inside,
    respelled,
    used,
)

_SUMS = ("+", "-")
_PRODUCTS = ("*", "//", "%")
_CALLS = ("min", "max", "cdiv")
_ASSOCIATIVE_BITS = ("&", "|", "^")
INDENT = "    "
_TRITON_CALLS = {"min": "tl.minimum", "max": "tl.maximum", "cdiv": "tl.cdiv"}


@dataclass(frozen=True)
class Dialect:
    """Spelling of one target language."""

    calls: Mapping[str, str]  # function for each of ``min``, ``max``, ``cdiv``
    select: str  # pattern with ``{condition}``, ``{then}``, ``{other}``
    select_is_call: bool = False  # whether that pattern needs no parentheses around it
    # operators and connectives spelled otherwise than in Python
    operators: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)  # names spelled otherwise than in the candidate
    smallest: str = "-2147483648"  # how -2**31 is written

    def name(self, name: str) -> str:
        """Spelling of a variable or an input."""
        return self.names.get(name, name)

    def expr(self, node: Expr) -> str:
        """Text of an integer expression."""
        match node:
            case Int(value):
                return str(value) if value > -(2**31) else self.smallest
            case Name(name):
                return self.name(name)
            case Unary(op, operand):
                atom = isinstance(operand, Name) or (isinstance(operand, Int) and operand.value >= 0)
                return f"{op}{self._bracket(operand, not (atom or self._is_call(operand)))}"
            case Select(condition, then, other):
                return self._select(condition, then, other)
            case Binary(op, left, right) if op in _CALLS:
                return f"{self.calls[op]}({self.expr(left)}, {self.expr(right)})"
            case Binary(op, left, right):
                spelled = self.operators.get(op, op)
                return f"{self._left(op, left)} {spelled} {self._right(op, right)}"
        raise TypeError(f"no expression of the language: {node!r}")

    def cond(self, node: Cond) -> str:
        """Text of a condition."""
        match node:
            case Compare(op, left, right):
                return f"{self._compared(left)} {op} {self._compared(right)}"
            case Connect(op, left, right):
                spelled = self.operators.get(op, op)
                return f"{self._connected(op, left)} {spelled} {self._connected('', right)}"
            case Not(operand):
                return f"{self.operators.get('not', 'not ')}({self.cond(operand)})"
        raise TypeError(f"no condition of the language: {node!r}")

    def _select(self, condition: Cond, then: Expr, other: Expr) -> str:
        first = self._bracket(then, isinstance(then, Select) and not self.select_is_call)
        return self.select.format(condition=self.cond(condition), then=first, other=self.expr(other))

    def _bracket(self, node: Expr, needed: bool) -> str:
        return f"({self.expr(node)})" if needed else self.expr(node)

    def _is_call(self, node: Expr) -> bool:
        if isinstance(node, Select):
            return self.select_is_call
        return isinstance(node, Binary) and node.op in _CALLS

    def _left(self, parent: str, node: Expr) -> str:
        if isinstance(node, Binary) and node.op not in _CALLS:
            chains = parent == node.op and parent in ("*", *_ASSOCIATIVE_BITS)
            sum_of = parent in _SUMS and node.op in (*_SUMS, *_PRODUCTS)
            return self._bracket(node, not (chains or sum_of))
        return self._bracket(node, isinstance(node, Select) and not self.select_is_call)

    def _right(self, parent: str, node: Expr) -> str:
        if isinstance(node, Binary) and node.op not in _CALLS:
            return self._bracket(node, not (parent in _SUMS and node.op in _PRODUCTS))
        negative = isinstance(node, Unary) or (isinstance(node, Int) and node.value < 0)
        return self._bracket(node, negative or (isinstance(node, Select) and not self.select_is_call))

    def _compared(self, node: Expr) -> str:
        if isinstance(node, Binary) and node.op not in (*_CALLS, *_SUMS, *_PRODUCTS):
            return self._bracket(node, True)
        return self._bracket(node, isinstance(node, Select) and not self.select_is_call)

    def _connected(self, parent: str, node: Cond) -> str:
        # Left to right without brackets only for a chain of one connective, as the parser folds it.
        inside = isinstance(node, Connect) and node.op != parent
        return f"({self.cond(node)})" if inside else self.cond(node)


class Writer:
    """Statements in Python's layout. A language that needs a variable before it is first assigned declares it there."""

    opening, chained, otherwise, end = "if {}:", "elif {}:", "else:", ""
    nothing: tuple[str, ...] = ("pass",)  # a block without statements

    def __init__(self, dialect: Dialect):
        self.dialect = dialect

    def block(self, body: tuple[Stmt, ...], live: Collection[str], alive: set[str], indent: str) -> list[str]:
        """Lines of a block; ``live`` are names read after it, ``alive`` those that exist (it adds its own)."""
        lines = [] if body else [indent + line for line in self.nothing]
        for stmt, after in zip(body, live_after_each(body, live), strict=False):
            if isinstance(stmt, Assign):
                lines.append(indent + self.assign(stmt, after, alive))
                alive.add(stmt.target)
                continue
            missing = sorted((assigned((stmt,)) & after) - alive)  # what it makes and this block reads later
            lines += [indent + line for line in self.declare(stmt, missing, alive)] if missing else []
            lines += (
                self._if(stmt, after, alive, indent) if isinstance(stmt, If) else self._for(stmt, after, alive, indent)
            )
            alive |= set(missing)
        return lines

    def declare(self, stmt: If | For, missing: list[str], alive: set[str]) -> list[str]:
        """Lines before a statement that is the first to assign some variables read after it."""
        return []

    def assign(self, stmt: Assign, after: set[str], alive: set[str]) -> str:
        """Line of an assignment."""
        return f"{self.dialect.name(stmt.target)} = {self.dialect.expr(stmt.value)}"

    def loop(self, stmt: For) -> list[str]:
        """Lines that open a loop."""
        first = [] if stmt.start == Int(0) and stmt.step == 1 else [self.dialect.expr(stmt.start)]
        bounds = [*first, self.dialect.expr(stmt.stop), *([str(stmt.step)] if stmt.step != 1 else [])]
        return [f"for {self.dialect.name(stmt.var)} in range({', '.join(bounds)}):"]

    def _if(self, stmt: If, after: set[str], alive: set[str], indent: str) -> list[str]:
        def inside(body: tuple[Stmt, ...]) -> list[str]:
            return self.block(body, after, set(alive), indent + INDENT)

        lines = [indent + self.opening.format(self.dialect.cond(stmt.condition)), *inside(stmt.body)]
        while len(stmt.orelse) == 1 and isinstance(stmt.orelse[0], If):
            stmt = stmt.orelse[0]
            lines += [indent + self.chained.format(self.dialect.cond(stmt.condition)), *inside(stmt.body)]
        if stmt.orelse:
            lines += [indent + self.otherwise, *inside(stmt.orelse)]
        return [*lines, indent + self.end] if self.end else lines

    def _for(self, stmt: For, after: set[str], alive: set[str], indent: str) -> list[str]:
        lines = [indent + line for line in self.loop(stmt)]
        lines += self.block(stmt.body, live_inside(stmt, after), alive | {stmt.var}, indent + INDENT)
        return [*lines, indent + self.end] if self.end else lines


class _Triton(Writer):
    """Triton carries a variable through a loop only if it exists before: as the loop runs, its value is never read."""

    def declare(self, stmt: If | For, missing: list[str], alive: set[str]) -> list[str]:
        if isinstance(stmt, If):
            return []
        alive |= set(missing)
        return [f"{self.dialect.name(one)} = 0" for one in missing]


def emit_text(form: Form) -> str:
    """Text of a candidate in canonical layout, without comments: ``parse_form(emit_text(form)) == form``."""
    calls = {name: f"tl.{name}" for name in form.inputs if name.endswith(")")}
    return "\n".join(Writer(_python(calls)).block(form.body, form.results, set(), "")) + "\n"


def emit_condition(node: Cond) -> str:
    """Text of a condition on launches."""
    return _python({name: f"tl.{name}" for name in names_read(node) if name.endswith(")")}).cond(node)


def _python(names: Mapping[str, str]) -> Dialect:
    functions = {"min": "min", "max": "max", "cdiv": "tl.cdiv"}
    return Dialect(calls=functions, select="{then} if {condition} else {other}", names=names)


def emit_triton(form: Form, name: str = "swizzle") -> str:
    """Python source of a Triton helper that computes a candidate.

    Parameters
    ----------
    form : Form
    name : str
        Name of the function.

    Returns
    -------
    source : str
        Imports, a comment with the call, and the function. It takes `arguments` by position, less the axis calls,
        which it makes itself, and returns `Form.results`; ``num_xcds`` is a ``tl.constexpr`` called ``NUM_XCDS``.

    Raises
    ------
    LanguageError
        With code ``name`` if ``name`` cannot name a function.
    """
    check_function_name(name, keyword.kwlist)
    spelled = _spelled(form, name)
    taken = [spelled.get(one, one) for one in arguments(form) if not is_axis_call(one)]
    typed = [f"{one}: tl.constexpr" if one.lower().startswith("num_xcds") else one for one in taken]
    dialect = Dialect(
        calls=_TRITON_CALLS, select="tl.where({condition}, {then}, {other})", select_is_call=True, names=spelled
    )
    results = ", ".join(dialect.name(one) for one in form.results)
    return "\n".join(
        [
            "import triton",
            "import triton.language as tl",
            "",
            "",
            *_comment(form, name, taken),
            "@triton.jit",
            f"def {name}({', '.join(typed)}):",
            *_tensors(form, dialect),
            *_Triton(dialect).block(form.body, form.results, set(form.inputs), INDENT),
            f"{INDENT}return {results}",
            "",
        ]
    )


def _spelled(form: Form, name: str) -> dict[str, str]:
    spelled = respelled(form, {name})
    spelled.update((one, f"tl.{one}") for one in form.inputs if is_axis_call(one))
    # a constexpr is written in capitals, unless the candidate changes it or has that name in use
    if "num_xcds" in form.inputs and not {"NUM_XCDS"} & {*used(form), name} and "num_xcds" not in assigned(form.body):
        spelled["num_xcds"] = "NUM_XCDS"
    return spelled


def _comment(form: Form, name: str, taken: list[str]) -> list[str]:
    given = ", ".join("NUM_XCDS=8" if one == "NUM_XCDS" else one for one in taken)
    lines = [
        "# Workgroup id to tile, emitted by swizzle-sim; 32-bit integers. In the kernel:",
        f"#     {', '.join(form.results)} = {name}({given})",
    ]
    if "pid" in form.inputs:
        lines.append("# where pid is the linear id, x fastest: tl.program_id(0) on a one-dimensional launch.")
    return lines


def _tensors(form: Form, dialect: Dialect) -> list[str]:
    """Copies that turn a launch constant into a tensor, for inputs that the candidate changes."""
    changed = sorted((set(form.inputs) & assigned(form.body)) - COORDINATES)
    names = [dialect.name(one) for one in changed]
    return [
        f"{INDENT}{one} = {one}  # from here on a tensor, also where the launch made it a constant" for one in names
    ]
