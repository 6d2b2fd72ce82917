"""Which names a form's expressions read, in the order in which they are evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from swizzle_sim.swizzle.form import Binary, Compare, Cond, Connect, Expr, Name, Not, Select, Unary


def names_read(node: Expr | Cond) -> Iterator[str]:
    """Yield the name of every `Name` in an expression, left to right."""
    if isinstance(node, Name):
        yield node.name
    for part in parts(node):
        yield from names_read(part)


def parts(node: Expr | Cond) -> tuple[Expr | Cond, ...]:
    """Return the direct parts of an expression, left to right."""
    if isinstance(node, Binary | Compare | Connect):
        return (node.left, node.right)
    if isinstance(node, Unary | Not):
        return (node.operand,)
    if isinstance(node, Select):
        return (node.condition, node.then, node.other)
    return ()
