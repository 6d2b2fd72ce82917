"""Writes the ``Kernel(...)`` declaration of a Triton function as far as its source goes; the file is not run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from swizzle_sim.triton_source import read_source
from swizzle_sim.triton_source.parameters import FunctionFacts, Parameter, facts_of
from xcd_model.errors import CaptureError, LanguageError

BLOCKS = re.compile(r"^(BLOCK|TILE)|SIZE$")
GROUPS = re.compile(r"GROUP")
USUAL_SIZE, USUAL_BLOCK, USUAL_GROUP = 1024, 64, 8


def write_declaration(target: str, output: Path | None) -> tuple[Path, list[str]]:
    """Write the declaration of ``FILE:FUNCTION``.

    Parameters
    ----------
    target : str
    output : Path, optional
        By default ``FUNCTION_kernel.py`` in the folder of the file.

    Returns
    -------
    path : Path
    to_complete : list of str
        Fields that the source does not determine; they are ``...`` in the file.

    Raises
    ------
    CaptureError
        If the file or the function is not there, the function is no ``@triton.jit``, or the output exists.
    """
    name, colon, function = target.rpartition(":")
    if not colon or not function.isidentifier():
        raise CaptureError(f"{target!r}: write FILE:FUNCTION, such as my_kernel.py:matmul", code="declaration")
    source = Path(name)
    try:
        facts = facts_of(read_source(source), function)
    except LanguageError as error:
        raise CaptureError(str(error), code="declaration") from None
    path = output or source.with_name(f"{function}_kernel.py")
    declaration, open_points = declaration_of(
        facts, source.stem, same_folder=path.parent.resolve() == source.parent.resolve()
    )
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(declaration)
    except FileExistsError:
        raise CaptureError(f"{path}: exists and is not overwritten; name another with -o", code="declaration") from None
    except OSError as error:
        raise CaptureError(f"{path}: cannot be written ({error.strerror})", code="declaration") from None
    return path, open_points


def declaration_of(facts: FunctionFacts, module: str, *, same_folder: bool) -> tuple[str, list[str]]:
    """Text of the declaration, and what is left to complete."""
    sizes = [p.name for p in facts.parameters if p.kind == "size"]
    lines, open_points = _lines(facts, is_constant=False)
    constants, open_constants = _lines(facts, is_constant=True)
    open_points += [*open_constants, "grid"]
    where = "" if same_folder else f"  # CHECK: {module}.py has to be importable from here"
    size_text = ", ".join(f'"{name}": {USUAL_SIZE}' for name in sizes)
    hints = f" The source divides: {'; '.join(facts.divisions)}." if facts.divisions else ""
    text = "\n".join(
        [
            f'"""Declaration of {module}.{facts.function} for swizzle-sim: complete each ... and see each CHECK."""',
            "",
            "import triton  # for triton.cdiv and the like",
            "",
            f"from {module} import {facts.function}{where}",
            "",
            "from swizzle_sim.capture import Array, Kernel",
            "",
            "kernel = Kernel(",
            f"    {facts.function},",
            f"    sizes={{{size_text}}},  # CHECK: names and defaults; what follows reads them as s.NAME",
            "    arguments=lambda s: {",
            *lines,
            "    },",
            "    constexprs=lambda s: {",
            *constants,
            "    },",
            f"    # CHECK: programs along {' and '.join('xyz'[: facts.axes])}.{hints}",
            f"    grid=lambda s: ({', '.join(['...'] * facts.axes)}{',' if facts.axes == 1 else ''}),",
            "    num_warps=4,  # CHECK: of your launch",
            "    num_stages=2,  # CHECK: of your launch",
            "    # make_inputs=lambda s, seed: {...},  # numpy arrays; needed for tensors with is_index=True",
            "    # reference=lambda inputs: {...},",
            "    # flops=lambda s: ...,",
            '    # programs="PROGRAMS",  # the size that is the number of programs, if each steps through tiles',
            ")",
            "",
        ]
    )
    ast.parse(text)
    return text, open_points


def _lines(facts: FunctionFacts, *, is_constant: bool) -> tuple[list[str], list[str]]:
    """Lines for the arguments, or for the constexprs that need a value, and the names that are left open."""
    lines, open_points = [], []
    for parameter in facts.parameters:
        if (parameter.kind == "constexpr") != is_constant:
            continue
        if is_constant:
            if parameter.default is not None and parameter.name not in facts.tuned:
                continue
            value, note = _constant(parameter, facts)
            is_open = value == "..."
        else:
            value, note, is_open = _argument(parameter)
        lines.append(f'        "{parameter.name}": {value},' + (f"  # CHECK: {note}" if note else ""))
        if is_open:
            open_points.append(parameter.name)
    return lines, open_points


def _argument(parameter: Parameter) -> tuple[str, str, bool]:
    """Text, remark, and whether it is left open."""
    if parameter.kind == "pointer":
        dtype = '"int32"' if parameter.is_index else '"fp16"'
        index = ", is_index=True" if parameter.is_index else ""
        role = "" if parameter.role == "in" else f', role="{parameter.role}"'
        return f"Array(shape=..., dtype={dtype}{role}{index})", "shape and dtype", True
    if parameter.kind == "stride":
        return "...", "items from one to the next along this axis", True
    if parameter.kind == "float":
        return "1.0", "value", False
    return f"s.{parameter.name}", "", False


def _constant(parameter: Parameter, facts: FunctionFacts) -> tuple[str, str]:
    if parameter.name in facts.tuned:
        return facts.tuned[parameter.name], "first configuration of the autotuner"
    if GROUPS.search(parameter.name):
        return str(USUAL_GROUP), "a guess"
    if BLOCKS.search(parameter.name):
        return str(USUAL_BLOCK), "a guess"
    return "...", "not in the source"
