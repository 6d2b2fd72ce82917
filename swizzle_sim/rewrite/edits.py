"""A set of edits to one file, and their application in a single walk that leaves all else as it was."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

Block = cst.FunctionDef | cst.For | cst.While


@dataclass
class Edits:
    """What changes, by the identity of the node it happens at.

    Parameters
    ----------
    replace : dict of int to node
        New expression or statement for a node.
    remove : set of int
        Statements that go.
    at_top : dict of int to statements
        Put first in a function (after its docstring) or loop.
    first_parameters : dict of int to list of str
        Positional parameters to put before a function's own.
    constexpr : dict of int to str
        Text of a parameter to put after a function's own, such as ``NUM_XCDS: tl.constexpr = 8``.
    first_arguments : dict of int to list of str
        Names to put before a call's own arguments.
    before, after : dict of int to statements
        Put before or after a statement.
    """

    replace: dict[int, cst.CSTNode] = field(default_factory=dict)
    remove: set[int] = field(default_factory=set)
    at_top: dict[int, list[cst.BaseStatement]] = field(default_factory=dict)
    first_parameters: dict[int, list[str]] = field(default_factory=dict)
    constexpr: dict[int, str] = field(default_factory=dict)
    first_arguments: dict[int, list[str]] = field(default_factory=dict)
    before: dict[int, list[cst.BaseStatement]] = field(default_factory=dict)
    after: dict[int, list[cst.BaseStatement]] = field(default_factory=dict)

    def apply(self, module: cst.Module) -> cst.Module:
        """Return the module with every edit made."""
        changed = module.visit(_Walk(self))
        assert isinstance(changed, cst.Module)
        return changed


class _Walk(cst.CSTTransformer):
    def __init__(self, edits: Edits):
        super().__init__()
        self.edits = edits

    def on_leave(self, original_node, updated_node):
        edits, key = self.edits, id(original_node)
        if key in edits.remove:
            return cst.RemoveFromParent()
        if key in edits.replace:
            return edits.replace[key]
        if key in edits.first_arguments:
            updated_node = _with_arguments(updated_node, edits.first_arguments[key])
        if key in edits.first_parameters:
            updated_node = _with_parameters(updated_node, edits.first_parameters[key])
        if key in edits.constexpr:
            updated_node = with_last_parameter(updated_node, edits.constexpr[key])
        if key in edits.at_top:
            updated_node = _with_statements(updated_node, edits.at_top[key])
        if key in edits.after:
            return cst.FlattenSentinel([updated_node, *edits.after[key]])
        if key in edits.before:
            return cst.FlattenSentinel([*edits.before[key], updated_node])
        return updated_node


def _with_arguments(call: cst.Call, names: list[str]) -> cst.Call:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    bare = cst.MaybeSentinel.DEFAULT
    first = [
        cst.Arg(cst.Name(name), comma=comma if k < len(names) - 1 or call.args else bare)
        for k, name in enumerate(names)
    ]
    return call.with_changes(args=[*first, *call.args])


def _with_parameters(function: cst.FunctionDef, names: list[str]) -> cst.FunctionDef:
    given = function.params
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    first = [cst.Param(cst.Name(name), comma=comma) for name in names]
    if given.posonly_params:
        return function.with_changes(params=given.with_changes(posonly_params=[*first, *given.posonly_params]))
    if not given.params:
        first[-1] = first[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return function.with_changes(params=given.with_changes(params=[*first, *given.params]))


def with_last_parameter(function: cst.FunctionDef, text: str) -> cst.FunctionDef:
    """Append a parameter, laid out as the last one is: on a line of its own where those before have one.

    Parameters
    ----------
    function : libcst.FunctionDef
    text : str
        Such as ``NUM_XCDS: tl.constexpr = 8``.
    """
    new = cst.ensure_type(cst.parse_statement(f"def f({text}): pass"), cst.FunctionDef).params.params[0]
    given = function.params
    listed = "kwonly_params" if given.kwonly_params else "params"
    if isinstance(given.star_arg, cst.Param):
        listed = "kwonly_params"
    before = list(getattr(given, listed))
    if not before:
        return function.with_changes(params=given.with_changes(**{listed: [new]}))
    last = before[-1]
    line_break = _line_break(function, before)
    if line_break is None:
        before[-1] = last.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        new = new.with_changes(comma=last.comma, whitespace_after_param=last.whitespace_after_param)
        return function.with_changes(params=given.with_changes(**{listed: [*before, new]}))
    has_comma = isinstance(last.comma, cst.Comma)
    ending = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_param
    if isinstance(ending, cst.ParenthesizedWhitespace):
        line_break = line_break.with_changes(first_line=ending.first_line)  # the comment on the last line stays there
        ending = ending.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    before[-1] = last.with_changes(
        comma=cst.Comma(whitespace_after=line_break), whitespace_after_param=cst.SimpleWhitespace("")
    )
    if has_comma:
        new = new.with_changes(comma=cst.Comma(whitespace_after=ending))
    else:
        new = new.with_changes(whitespace_after_param=ending)
    return function.with_changes(params=given.with_changes(**{listed: [*before, new]}))


def _line_break(function: cst.FunctionDef, listed: list[cst.Param]) -> cst.ParenthesizedWhitespace | None:
    """Return the white space that puts the next parameter on a line of its own; None where they share one line."""
    own = [one.comma.whitespace_after for one in listed[:-1] if isinstance(one.comma, cst.Comma)]
    for space in (*reversed(own), function.whitespace_before_params):
        if isinstance(space, cst.ParenthesizedWhitespace):
            return space.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    return None


def _with_statements(block: Block, statements: list[cst.BaseStatement]) -> Block:
    body = block.body
    if isinstance(body, cst.SimpleStatementSuite):  # "for ...: one; two": give it lines
        body = cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[stmt]) for stmt in body.body])
    lines = list(body.body)
    at = 1 if isinstance(block, cst.FunctionDef) and block.get_docstring() is not None else 0
    return block.with_changes(body=body.with_changes(body=[*lines[:at], *statements, *lines[at:]]))
