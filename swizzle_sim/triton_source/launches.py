"""Launches of a kernel in its own file: ``kernel[grid](arguments, BLOCK=128, num_warps=8)``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from swizzle_sim.triton_source.source_file import SourceFile, parameters_of

COMPILE_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim")


@dataclass(frozen=True)
class LaunchCall:
    """One launch as the source writes it.

    Parameters
    ----------
    function : str
    line : int
    grid : str
        Text between the brackets.
    arguments : mapping of str to str
        Text of each argument, by the kernel's parameter.
    options : mapping of str to str
        Text of compile options, such as ``num_warps``.
    """

    function: str
    line: int
    grid: str
    arguments: Mapping[str, str]
    options: Mapping[str, str]


def launches_of(source: SourceFile, name: str) -> list[LaunchCall]:
    """Launches of a Triton function in its file, in text order.

    Raises
    ------
    LanguageError
        If the file has no such function.
    """
    names = [one.arg for one in parameters_of(source.kernel(name))]
    found = []
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(ast.Subscript(ast.Name(called), grid), args, keywords) if called == name:
                given = {one: ast.unparse(value) for one, value in zip(names, args, strict=False)}
                given |= {one.arg: ast.unparse(one.value) for one in keywords if one.arg}
                options = {one: text for one, text in given.items() if one in COMPILE_OPTIONS and one not in names}
                arguments = {one: text for one, text in given.items() if one not in options}
                found.append(LaunchCall(name, node.lineno, ast.unparse(grid), arguments, options))
    return sorted(found, key=lambda launch: launch.line)
