"""Printer of the typed form: expressions in any of three dialects, statements in Python's layout; text and Triton.

Parentheses are stricter than the grammars require. Python and C++ disagree on how tightly ``&`` and ``<`` bind, and g++
warns about mixed operators, so bit operations and mixed ``*``, ``//``, ``%`` are always bracketed.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
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
)
from swizzle_sim.language.variables import (
    arguments,
    assigned,
    check_function_name,
    is_axis_call,
    respelled,
    used,
    with_initial_values,
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
                return f"{op}{self._operand_of_unary(operand)}"
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

    def _operand_of_unary(self, node: Expr) -> str:
        atom = isinstance(node, Name) or (isinstance(node, Int) and node.value >= 0) or self._is_call(node)
        return self._bracket(node, not atom)

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


def emit_text(form: Form) -> str:
    """Text of a candidate in canonical layout, without comments: ``parse_form(emit_text(form)) == form``."""
    calls = {name: f"tl.{name}" for name in form.inputs if name.endswith(")")}
    functions = {"min": "min", "max": "max", "cdiv": "tl.cdiv"}
    dialect = Dialect(calls=functions, select="{then} if {condition} else {other}", names=calls)
    return "\n".join(python_lines(form.body, dialect)) + "\n"


def python_lines(body: tuple[Stmt, ...], dialect: Dialect, indent: str = "") -> list[str]:
    """Lines of a block of statements in Python's layout."""
    if not body:
        return [f"{indent}pass"]
    return [line for stmt in body for line in _statement(stmt, dialect, indent)]


def _statement(stmt: Stmt, dialect: Dialect, indent: str) -> list[str]:
    match stmt:
        case Assign(target, value):
            return [f"{indent}{dialect.name(target)} = {dialect.expr(value)}"]
        case If():
            return _if(stmt, dialect, indent, "if")
        case For(var, start, stop, step, body):
            first = [] if start == Int(0) and step == 1 else [dialect.expr(start)]
            bounds = ", ".join([*first, dialect.expr(stop), *([str(step)] if step != 1 else [])])
            head = f"{indent}for {dialect.name(var)} in range({bounds}):"
            return [head, *python_lines(body, dialect, indent + INDENT)]
    raise TypeError(f"no statement of the language: {stmt!r}")


def _if(stmt: If, dialect: Dialect, indent: str, word: str) -> list[str]:
    lines = [f"{indent}{word} {dialect.cond(stmt.condition)}:", *python_lines(stmt.body, dialect, indent + INDENT)]
    match stmt.orelse:
        case ():
            return lines
        case (If() as chained,):
            return lines + _if(chained, dialect, indent, "elif")
        case _:
            return [*lines, f"{indent}else:", *python_lines(stmt.orelse, dialect, indent + INDENT)]


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
    body = with_initial_values(form.body, form.results, set(form.inputs))
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
            *python_lines(body, dialect, INDENT),
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
