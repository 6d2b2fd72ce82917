"""Where the stores of a kernel go, as one number: two workgroups with the same one store the same items.

Every address is a term of it, and so is each side of a mask's condition, times a weight that may be any number. Of a
block one item is followed.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from swizzle_sim.language.ir import GRID_NAMES
from swizzle_sim.triton_source.answers import own_counts, with_first_axis
from swizzle_sim.triton_source.effects import Effects
from swizzle_sim.triton_source.slices import assign, loaded, slice_of
from swizzle_sim.triton_source.source_file import literal_axis

OTHER = "other_id"  # an id of which the tile is not made


def place_of(before: Sequence[ast.stmt], body: Sequence[ast.stmt], effects: Effects) -> list[ast.stmt]:
    """Statements that assign the number to ``pid``; none where a store may not be reached, or adds."""
    terms, found = effects.places(body), [*before]
    every = [str(1 << 30), *(f"place_{k} * weight_{k}" for k in range(len(terms)))]  # never below 0
    number = ast.parse(" + ".join(every), mode="eval").body
    for stmt in body:
        found += [assign(f"place_{k}", node, stmt) for k, (at, node) in enumerate(terms) if at is stmt]
        found.append(stmt)
    needed = slice_of([*found, assign("pid", number, terms[-1][0])], {"pid"})[0] if terms else []
    plain = [_OneItem(effects).visit(copy.deepcopy(stmt)) for stmt in needed]
    return [own_counts(stmt, GRID_NAMES - {"pid"}) for stmt in with_first_axis(plain)]


class _OneItem(ast.NodeTransformer):
    """One item of each block, and the number of programs as the count of them that it is."""

    def __init__(self, effects: Effects):
        self.effects = effects

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = {"tl.arange": "item_of_block", "tl.num_programs": "num_pids"}.get(ast.unparse(node.func))
        if ast.unparse(node.func) == "tl.program_id" and literal_axis(node) not in self.effects.own_axes:
            name = OTHER
        return ast.copy_location(ast.Name(name, ast.Load()), node) if name else self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self.generic_visit(node) if loaded(node.slice) else self.visit(node.value)
