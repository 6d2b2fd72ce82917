"""Integer expressions of the language over a grid's counts and a kernel's sizes: launches, conditions, bindings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from swizzle_sim.language.grid import Grid, bind
from swizzle_sim.language.ir import COUNTS, Assign, Binary, Cond, Expr, Int, Name, evaluate, names_read, nodes
from swizzle_sim.language.parse import parse_form
from swizzle_sim.language.rules import MOST_TRIED
from xcd_model.errors import LanguageError, SizeError


@cache
def read_expression(text: str) -> Expr:
    """Form of one integer expression."""
    body = parse_form(f"pid = ({text})", f"<{text.strip()}>").body
    if len(body) != 1 or not isinstance(body[0], Assign):
        raise LanguageError(f"{text!r} is not one expression", filename="<expression>", code="syntax")
    return body[0].value


def value_of(given: int | str, grid: Grid, num_xcds: int, sizes: Mapping[str, int]) -> int:
    """Value of a size: an integer, or an expression over the grid's counts and other sizes."""
    if not isinstance(given, str):
        return int(given)
    expression = read_expression(given)
    counts = bind([name for name in names_read(expression) if name in COUNTS], grid, num_xcds).constants
    return calculate(expression, {**sizes, **counts}, given)


def refuse_more(grid: Grid) -> None:
    """Refuse a grid of which each workgroup would be held, as no sample will do."""
    if grid.num_pids > MOST_TRIED:
        raise SizeError(f"grid {grid}: at most {MOST_TRIED} workgroups here, as each of them is tried")


def split_sides(launch: str) -> list[str]:
    """Sides of a launch: parts between commas that stand in no bracket."""
    parts, depth = [""], 0
    for letter in launch.strip():
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


def names_of(launch: str) -> tuple[str, ...]:
    """Names that a launch reads."""
    return tuple(dict.fromkeys(name for side in split_sides(launch) for name in names_read(read_expression(side))))


def calculate(node: Expr, values: Mapping[str, int], text: str) -> int:
    """Value of an expression, in Python's integers."""
    try:
        return int(evaluate(node, values))
    except ZeroDivisionError:
        raise SizeError(f"{text}: a division by zero at {dict(values)}") from None


def divisor_of(name: str, written: list[Expr | Cond]) -> Expr | None:
    """What a size is divided by: ``B`` in ``cdiv(name, B)``, ``name // B`` or ``(name + B - 1) // B``."""
    for node in nodes(written):
        if isinstance(node, Binary) and node.op in ("cdiv", "//"):
            left = node.left
            while isinstance(left, Binary) and left.op in ("+", "-"):
                left = left.left
            if left == Name(name) and isinstance(node.right, Int | Name):
                return node.right
    return None
