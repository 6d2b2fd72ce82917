"""The emitted helper: its statements and its calls, in the file's own spelling of Triton."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from swizzle_sim.language.emit_triton import emit_triton
from swizzle_sim.language.ir import Form
from swizzle_sim.language.variables import arguments
from swizzle_sim.rewrite.guard import Guarded
from swizzle_sim.rewrite.source import AxisCall, EditableSource

_WIDTH = 110


@dataclass
class Spelling:
    """How emitted code refers to Triton in one file.

    Parameters
    ----------
    language, jit : str
        Such as ``tl`` and ``triton.jit``.
    missing : list of str
        Import lines to add.
    """

    language: str
    jit: str
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Helper:
    """The helper as the kernel calls it.

    Parameters
    ----------
    name : str
    form : Form
        In normal form.
    axes : tuple of str
        The coordinates that it takes, one an axis.
    language : str
        Such as ``tl``.
    terms : mapping of str to str
        Text, in the kernel, of each count, size and the number of XCDs.
    """

    name: str
    form: Form
    axes: tuple[str, ...]
    language: str
    terms: Mapping[str, str]

    def words(self, ids: Mapping[int, str]) -> list[str]:
        """Arguments of a call, in the helper's order; ``ids`` is the text of each coordinate."""
        axis = {name: k for k, name in enumerate(self.axes)}
        return [ids[axis[name]] if name in axis else self.terms[name] for name in arguments(self.form)]

    def call(self, ids: Mapping[int, str]) -> str:
        """Text of a call."""
        return f"{self.name}({', '.join(self.words(ids))})"


def spelling_of(source: EditableSource, calls: list[AxisCall]) -> Spelling:
    """Read a file's own spelling off its imports and its calls of ``tl.program_id``."""
    aliases = source.facts.aliases
    missing: list[str] = []
    prefixes = (source.code(call.node.func.value) for call in calls if isinstance(call.node.func, cst.Attribute))
    language = next(prefixes, None) or aliases.name_of("triton.language")
    if language is None:
        language = source.fresh("tl")
        missing.append(f"import triton.language as {language}")
    jit, triton = aliases.name_of("triton.jit"), aliases.name_of("triton")
    if jit is None and triton is None:
        triton = source.fresh("triton")
        missing.insert(0, "import triton" if triton == "triton" else f"import triton as {triton}")
    return Spelling(language, jit or f"{triton}.jit", missing)


def helper_statements(guarded: Guarded, name: str, spelling: Spelling, indent: str) -> list[cst.BaseStatement]:
    """Return the function that computes a swizzle, with a comment on where it holds.

    Nothing of the candidate's own text is in it: it is printed from the parsed form, and the comment from the verdict.

    Parameters
    ----------
    guarded : Guarded
    name : str
    spelling : Spelling
    indent : str
        One level of the file's indentation.
    """
    text = emit_triton(guarded.form, name)
    _, _, text = text.partition("\n\n\n")  # without its imports: the file has its own
    module = cst.parse_module(text)
    module = module.visit(_Spelled(spelling))
    statement = cst.ensure_type(module.body[0], cst.FunctionDef)
    comments = [line.comment.value for line in module.header if line.comment]
    comments += [f"# {line}" for line in textwrap.wrap(_domain(guarded), _WIDTH)]
    lines = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    lines += [cst.EmptyLine(comment=cst.Comment(line)) for line in comments]
    body = cst.ensure_type(statement.body, cst.IndentedBlock)
    return [statement.with_changes(leading_lines=lines, lines_after_decorators=[], body=_indented(body, indent))]


def _domain(guarded: Guarded) -> str:
    verdict = guarded.verdict
    where = f"A bijection on a grid of {guarded.grid} with {guarded.num_xcds} XCDs"
    if guarded.emission.folded:
        other = "the general form" if guarded.emission.elsewhere == "general" else "launch order"
        return (
            f"{where}, to which the first branch is folded; {other} elsewhere, as tested on {verdict.tested} grids and "
            "XCD counts."
        )
    if not guarded.condition:
        return f"{where}, and on all of the {verdict.tested} grids and XCD counts tested."
    return (
        f"{where}, and wherever the condition below holds, as tested on {verdict.tested} grids and XCD counts. "
        "Elsewhere: launch order."
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
