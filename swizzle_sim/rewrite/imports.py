"""What a file calls Triton and its language, and the imports it lacks."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from swizzle_sim.rewrite.source import AxisCall, Source


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


def spelling(source: Source, calls: list[AxisCall]) -> Spelling:
    """Read a file's own spelling off its imports and its calls of ``tl.program_id``."""
    bound = _bindings(source.module)
    taken = source.names()
    missing: list[str] = []
    language = next((_prefix(source, call) for call in calls if isinstance(call.node.func, cst.Attribute)), None)
    language = language or next((name for name, what in bound.items() if what == "triton.language"), None)
    if language is None:
        language = source.fresh("tl", taken)
        missing.append(f"import triton.language as {language}")
    jit = next((name for name, what in bound.items() if what == "triton.jit"), None)
    triton = next((name for name, what in bound.items() if what == "triton"), None)
    if jit is None and triton is None:
        triton = source.fresh("triton", taken)
        missing.insert(0, "import triton" if triton == "triton" else f"import triton as {triton}")
    return Spelling(language, jit or f"{triton}.jit", missing)


def _prefix(source: Source, call: AxisCall) -> str:
    assert isinstance(call.node.func, cst.Attribute)
    return source.code(call.node.func.value)


def _bindings(module: cst.Module) -> dict[str, str]:
    """Names that imports at the top level bind, with the dotted name each stands for."""
    bound = {}
    for line in module.body:
        for stmt in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(stmt, cst.Import):
                for alias in stmt.names:
                    dotted = module.code_for_node(alias.name)
                    if alias.asname is not None:
                        bound[module.code_for_node(alias.asname.name)] = dotted
                    else:
                        bound[dotted.split(".")[0]] = dotted.split(".")[0]
            elif isinstance(stmt, cst.ImportFrom) and stmt.module is not None and not stmt.relative:
                for alias in () if isinstance(stmt.names, cst.ImportStar) else stmt.names:
                    name = module.code_for_node(alias.asname.name if alias.asname else alias.name)
                    bound[name] = f"{module.code_for_node(stmt.module)}.{module.code_for_node(alias.name)}"
    return bound
