"""Where the stores of a kernel go: texts for what decides it, each as one number.

Two workgroups for which all of them are equal store the same items, whatever the arguments are. Of a block of items one
is followed. Only of stores that every workgroup reaches is anything said.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from swizzle_sim.language.ir import GRID_NAMES
from swizzle_sim.triton_source.answers import own_counts, with_first_axis
from swizzle_sim.triton_source.effects import Effects
from swizzle_sim.triton_source.slices import assign, loaded, slice_of

OFFSET = 1 << 30  # of every number, as a text has none below 0
OTHER = "other_id"  # an id of another axis
_ITEM = "item_of_block"


def places(before: Sequence[ast.stmt], body: Sequence[ast.stmt], effects: Effects) -> Iterator[list[ast.stmt]]:
    """Statements for each number that says where a store goes, the last of which assigns it to ``pid``."""
    for k, node in effects.places(body):
        place = assign("pid", ast.BinOp(node, ast.Add(), ast.Constant(OFFSET)), body[k])
        needed = slice_of([*before, *body[:k]], loaded(node))[0]
        plain = [_OneItem(effects).visit(copy.deepcopy(stmt)) for stmt in (*needed, place)]
        yield [own_counts(stmt, GRID_NAMES - {"pid"}) for stmt in with_first_axis(plain)]


class _OneItem(ast.NodeTransformer):
    """One item of each block, and the number of programs as the count of them that it is."""

    def __init__(self, effects: Effects):
        self.effects = effects

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = {"tl.arange": _ITEM, "tl.num_programs": "num_pids"}.get(ast.unparse(node.func))
        name = OTHER if self.effects.is_of_other_axis(node) else name
        return ast.copy_location(ast.Name(name, ast.Load()), node) if name else self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self.generic_visit(node) if loaded(node.slice) else self.visit(node.value)
