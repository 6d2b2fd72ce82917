"""A parsed candidate back to text in the language: ``parse_form(emit_text(form)) == form``."""

from __future__ import annotations

from swizzle_sim.swizzle.emit import Dialect
from swizzle_sim.swizzle.form import Assign, For, Form, If, Int, Stmt

_INDENT = "    "
_CALLS = {"min": "min", "max": "max", "cdiv": "tl.cdiv"}


def emit_text(form: Form) -> str:
    """Text of a candidate, in one canonical layout and without its comments.

    Parameters
    ----------
    form : Form

    Returns
    -------
    text : str
        Parses to an equal form. Names such as ``program_id(1)`` become ``tl.program_id(1)``.
    """
    calls = {name: f"tl.{name}" for name in form.inputs if name.endswith(")")}
    dialect = Dialect(calls=_CALLS, select="{then} if {condition} else {other}", names=calls)
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
            return [head, *python_lines(body, dialect, indent + _INDENT)]
    raise TypeError(f"no statement of the language: {stmt!r}")


def _if(stmt: If, dialect: Dialect, indent: str, word: str) -> list[str]:
    lines = [f"{indent}{word} {dialect.cond(stmt.condition)}:", *python_lines(stmt.body, dialect, indent + _INDENT)]
    match stmt.orelse:
        case ():
            return lines
        case (If() as chained,):
            return lines + _if(chained, dialect, indent, "elif")
        case _:
            return [*lines, f"{indent}else:", *python_lines(stmt.orelse, dialect, indent + _INDENT)]
