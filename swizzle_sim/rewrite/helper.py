"""The emitted helper: its statements and its calls, in the file's own spelling of Triton."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from swizzle_sim.language.emit import INDENT, emit_triton
from swizzle_sim.language.ir import Form
from swizzle_sim.language.variables import arguments
from swizzle_sim.rewrite.guard import Guarded
from swizzle_sim.rewrite.source import EditableSource
from swizzle_sim.triton_source.source_file import ProgramId

_WIDTH = 110


@dataclass
class Spelling:
    """How emitted code refers to Triton in one file."""

    language: str  # such as ``tl`` and ``triton.jit``
    jit: str
    missing: list[str] = field(default_factory=list)  # import lines to add


@dataclass(frozen=True)
class Helper:
    """The helper as the kernel calls it."""

    name: str
    form: Form  # in normal form
    axes: tuple[str, ...]  # the coordinates that it takes, one an axis
    language: str  # such as ``tl``
    terms: Mapping[str, str]  # text, in the kernel, of each count, size and the number of XCDs

    def words(self, ids: Mapping[int, str]) -> list[str]:
        """Arguments of a call, in the helper's order; ``ids`` is the text of each coordinate."""
        axis = {name: k for k, name in enumerate(self.axes)}
        return [ids[axis[name]] if name in axis else self.terms[name] for name in arguments(self.form)]

    def call(self, ids: Mapping[int, str]) -> str:
        """Text of a call."""
        return f"{self.name}({', '.join(self.words(ids))})"


def spelling_of(source: EditableSource, calls: list[ProgramId]) -> Spelling:
    """Read a file's own spelling off its imports and its calls of ``tl.program_id``."""
    aliases = source.facts.aliases
    missing: list[str] = []
    functions = (one.call.func for one in calls)
    prefixes = (ast.unparse(one.value) for one in functions if isinstance(one, ast.Attribute))
    language = next(prefixes, None) or aliases.name_of("triton.language")
    if language is None:
        language = source.fresh("tl")
        missing.append(f"import triton.language as {language}")
    jit, triton = aliases.name_of("triton.jit"), aliases.name_of("triton")
    if jit is None and triton is None:
        triton = source.fresh("triton")
        missing.insert(0, "import triton" if triton == "triton" else f"import triton as {triton}")
    return Spelling(language, jit or f"{triton}.jit", missing)


def helper_lines(guarded: Guarded, name: str, spelling: Spelling, indent: str) -> list[str]:
    """Return the function that computes a swizzle, below two blank lines and a comment on where it holds.

    Nothing of the candidate's own text is in it: it is printed from the parsed form, and the comment from the verdict.
    """
    text = emit_triton(guarded.form, name).partition("\n\n\n")[2]  # without its imports: the file has its own
    lines = text.rstrip("\n").split("\n")
    code = next(k for k, line in enumerate(lines) if not line.startswith("#"))
    comments = [*lines[:code], *(f"# {line}" for line in textwrap.wrap(_domain(guarded), _WIDTH))]
    found = []
    for line in lines[code:]:
        own = re.sub(r"\btriton\.jit\b", spelling.jit, re.sub(r"\btl\.", f"{spelling.language}.", line))
        bare = own.lstrip(" ")
        found.append(indent * ((len(own) - len(bare)) // len(INDENT)) + bare)
    return ["", "", *comments, *found]


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
