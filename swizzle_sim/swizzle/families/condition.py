"""Where a spec is a bijection, as a condition of the language and as a yes or no for one grid."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from swizzle_sim.swizzle.families.spec import parse_spec
from swizzle_sim.swizzle.form import Assign, Binary, Compare, Cond, Connect, Expr, Int, Name, Not, Select, Unary
from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.parse import parse_form
from xcd_model.errors import LanguageError, SizeError


def condition_of(spec: str) -> str:
    """Condition under which a spec is a bijection, besides that an order needs a grid with its axes.

    A composition is a bijection exactly where each part is: a map of a finite set onto itself that loses an id
    cannot be mended by another.

    Returns
    -------
    condition : str
        ``"always"`` or a condition of the language.
    """
    parts = dict.fromkeys(one.condition for one, _ in parse_spec(spec) if one.condition != "always")
    if len(parts) > 1:
        return " and ".join(f"({part})" for part in parts)
    return next(iter(parts), "always")


def holds(spec: str, grid: Grid, num_xcds: int) -> bool:
    """Whether a spec is a bijection of a grid, by its stated condition; nothing is enumerated.

    Parameters
    ----------
    spec : str
    grid : Grid
    num_xcds : int
        At least 1.

    Returns
    -------
    holds : bool
        False, too, where an order is asked of a grid without its two or three axes.

    Raises
    ------
    UnknownName, LanguageError
        As `parse_spec` does.
    SizeError
        If ``num_xcds`` is below 1.
    """
    if num_xcds < 1:
        raise SizeError(f"num_xcds = {num_xcds}: a GPU has at least one XCD")
    for one, params in parse_spec(spec):
        if (one.axes == 2 and grid.shape is None) or (one.axes == 3 and len(grid.launch) != 3):
            return False
        if one.condition != "always" and not _true(one.condition, grid, num_xcds, params):
            return False
    return True


def _true(condition: str, grid: Grid, num_xcds: int, params: Mapping[str, int]) -> bool:
    values = {"num_pids": grid.num_pids, "num_xcds": num_xcds, **params}
    if grid.shape:
        values["num_pid_m"], values["num_pid_n"] = grid.shape
    return bool(evaluate(read_condition(condition), values))


def read_condition(condition: str) -> Cond:
    """Form of one condition of the language.

    Raises
    ------
    LanguageError
        If it is outside the language, or more than one condition.
    """
    body = parse_form(f"pid = 1 if ({condition}) else 0", "<condition>").body
    if len(body) != 1 or not (isinstance(body[0], Assign) and isinstance(body[0].value, Select)):
        raise LanguageError(f"{condition!r} is not one condition", filename="<condition>", code="syntax")
    return body[0].value.condition


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
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
    """Value of a condition or expression, in Python's integers; a condition gives True or False.

    Raises
    ------
    LanguageError
        With code ``name`` if it reads a name that ``values`` lacks.
    """
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
        case Binary(op, left, right) | Compare(op, left, right) | Connect(op, left, right) if op in _OPERATIONS:
            return _OPERATIONS[op](evaluate(left, values), evaluate(right, values))
    raise LanguageError(f"a condition has no {node!r}", filename="<condition>", code="node")
