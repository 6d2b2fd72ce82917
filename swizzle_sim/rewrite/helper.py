"""The emitted helper as statements for a user's file, in that file's own spelling of Triton."""

from __future__ import annotations

import textwrap

import libcst as cst

from swizzle_sim.rewrite.guard import Guarded
from swizzle_sim.rewrite.imports import Spelling
from swizzle_sim.swizzle.emit_triton import emit_triton
from swizzle_sim.swizzle.grid import Grid

_WIDTH = 110


def helper_statements(
    guarded: Guarded, name: str, spelling: Spelling, grid: Grid, num_xcds: int, indent: str
) -> list[cst.BaseStatement]:
    """Return the function that computes a swizzle, with a comment on where it holds.

    Nothing of the candidate's own text is in it: it is printed from the parsed form, and the comment from the verdict.

    Parameters
    ----------
    guarded : Guarded
    name : str
    spelling : Spelling
    grid : Grid
        The grid in hand.
    num_xcds : int
    indent : str
        One level of the file's indentation.
    """
    text = emit_triton(guarded.form, name)
    _, _, text = text.partition("\n\n\n")  # without its imports: the file has its own
    module = cst.parse_module(text)
    module = module.visit(_Spelled(spelling))
    statement = cst.ensure_type(module.body[0], cst.FunctionDef)
    comments = [line.comment.value for line in module.header if line.comment]
    comments += [f"# {line}" for line in textwrap.wrap(_domain(guarded, grid, num_xcds), _WIDTH)]
    lines = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    lines += [cst.EmptyLine(comment=cst.Comment(line)) for line in comments]
    body = cst.ensure_type(statement.body, cst.IndentedBlock)
    return [statement.with_changes(leading_lines=lines, lines_after_decorators=[], body=_indented(body, indent))]


def _domain(guarded: Guarded, grid: Grid, num_xcds: int) -> str:
    verdict = guarded.verdict
    where = f"A bijection on a grid of {grid} with {num_xcds} XCDs"
    if not guarded.condition:
        return f"{where}, and on all of the {verdict.tested} grids and XCD counts tested."
    return (
        f"{where}, and wherever the condition below holds, as tested on {verdict.tested} grids and XCD counts. "
        "Elsewhere the order stays as launched."
    )


def _indented(block: cst.IndentedBlock, indent: str) -> cst.IndentedBlock:
    """Give a block the file's indentation, where it has none of its own."""
    return block.with_changes(indent=None) if block.indent in (None, indent) else block


class _Spelled(cst.CSTTransformer):
    """Puts a file's names for Triton and its language in place of the usual ones."""

    def __init__(self, spelling: Spelling):
        super().__init__()
        self.language = cst.parse_expression(spelling.language)
        self.jit = cst.parse_expression(spelling.jit)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """Respell ``tl.x`` and ``triton.jit``."""
        if isinstance(original_node.value, cst.Name):
            if original_node.value.value == "tl":
                return updated_node.with_changes(value=self.language)
            if original_node.value.value == "triton":
                return self.jit
        return updated_node
