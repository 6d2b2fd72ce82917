"""Where a spec is a bijection, as a condition of the language and as a yes or no for one grid."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from swizzle_sim.swizzle.families.spec import parse_spec
from swizzle_sim.swizzle.form import Assign, Binary, Compare, Cond, Connect, Expr, Int, Name, Not, Select
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
    (stmt,) = parse_form(f"pid = 1 if {condition} else 0").body
    if not (isinstance(stmt, Assign) and isinstance(stmt.value, Select)):
        raise LanguageError(f"{condition!r} is not one condition", filename="<condition>", code="syntax")
    return bool(_evaluate(stmt.value.condition, values))


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
}


def _evaluate(node: Expr | Cond, values: Mapping[str, int]) -> int:
    match node:
        case Int(value):
            return value
        case Name(name):
            return values[name]
        case Not(operand):
            return not _evaluate(operand, values)
        case Binary(op, left, right) | Compare(op, left, right) | Connect(op, left, right) if op in _OPERATIONS:
            return _OPERATIONS[op](_evaluate(left, values), _evaluate(right, values))
    raise LanguageError(f"a condition has no {node!r}", filename="<condition>", code="node")
