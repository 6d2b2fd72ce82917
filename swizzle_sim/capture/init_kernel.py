"""Writes the ``Kernel(...)`` declaration of a Triton function as far as its source goes; the file is not run."""

from __future__ import annotations

import ast
import copy
import os
import re
from collections.abc import Mapping
from pathlib import Path

from swizzle_sim.capture.launch_call import LaunchCall, Tensor, launch_of
from swizzle_sim.triton_source import SourceFile, read_source
from swizzle_sim.triton_source.definitions import Filled
from swizzle_sim.triton_source.parameters import FunctionFacts, Parameter, facts_of
from swizzle_sim.triton_source.tile_axes import TileAxes
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
    path = output or source.with_name(f"{function}_kernel.py")
    try:
        text = read_source(source)
        facts = facts_of(text, function)
        call = launch_of(text, facts)
        tiles = tiles_of(text, facts, call)
    except LanguageError as error:
        raise CaptureError(str(error), code="declaration") from None
    beside = os.path.relpath(source.resolve(), path.parent.resolve())
    declaration, open_points = declaration_of(facts, beside, call, tiles)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(declaration)
    except FileExistsError:
        raise CaptureError(f"{path}: exists and is not overwritten; name another with -o", code="declaration") from None
    except OSError as error:
        raise CaptureError(f"{path}: cannot be written ({error.strerror})", code="declaration") from None
    return path, open_points


def declaration_of(
    facts: FunctionFacts, file: str, call: LaunchCall | None, tiles: tuple[str, str] | None
) -> tuple[str, list[str]]:
    """Text of the declaration, and what is left to complete.

    Parameters
    ----------
    facts : FunctionFacts
    file : str
        Of the function, from the folder of the declaration.
    call : LaunchCall or None
        Its launch in that file.
    tiles : (str, str) or None
        Tile rows and columns of a one-dimensional launch.
    """
    call = call or LaunchCall(0)
    lines, open_points = _lines(facts, call, is_constant=False)
    constants, open_constants = _lines(facts, call, is_constant=True)
    sides = call.grid if call.grid and len(call.grid) >= facts.axes else ["..."] * facts.axes
    open_points += [*open_constants, *(["grid"] if any("..." in side for side in sides) else [])]
    named = [p.name for p in facts.parameters if p.kind == "size" and p.name not in call.arguments]
    sizes = list(dict.fromkeys([*call.sizes, *named]))
    size_text = ", ".join(f'"{name}": {USUAL_SIZE}' for name in sizes)
    rest = f" The rest is of the launch in its line {call.line}." if call.line else ""
    text = "\n".join(
        [
            f'"""Declaration of {facts.function} in {file}: complete each ... and see each CHECK.{rest}"""',
            "",
            "import triton  # for triton.cdiv and the like",
            "",
            "from swizzle_sim.capture import Array, Kernel",
            "",
            "kernel = Kernel(",
            f'    "{file}:{facts.function}",',
            f"    sizes={{{size_text}}},  # CHECK: names and defaults; what follows reads them as s.NAME",
            "    arguments=lambda s: {",
            *lines,
            "    },",
            "    constexprs=lambda s: {",
            *constants,
            "    },",
            *_grid_lines(facts, call, sides, tiles),
            *_option_lines(facts, call),
            "    # make_inputs=lambda s, seed: {...},  # numpy arrays; needed for tensors with is_index=True",
            "    # reference=lambda inputs: {...},",
            '    # programs="PROGRAMS",  # the size that is the number of programs, if each steps through tiles',
            ")",
            "",
        ]
    )
    ast.parse(text)
    return text, open_points


def _grid_lines(facts: FunctionFacts, call: LaunchCall, sides: list[str], tiles: tuple[str, str] | None) -> list[str]:
    hints = f" The source divides: {'; '.join(facts.divisions)}." if facts.divisions and not call.grid else ""
    found = [
        f"    # CHECK: programs along {' and '.join('xyz'[: len(sides)])}.{hints}",
        f"    grid=lambda s: ({', '.join(sides)}{',' if len(sides) == 1 else ''}),",
    ]
    if tiles:
        rows, columns = tiles
        if not rows and "..." not in sides[0]:
            rows = _over(sides[0], columns)
        open_rows = rows or "..."
        found.append(f"    tiles=lambda s: ({open_rows}, {columns}),  # CHECK: rows and columns; the id is divided so")
    elif len(sides) == 1:
        found.append("    # tiles=lambda s: (rows, columns),  # without it no order by rows and columns is tried")
    return found


def _over(whole: str, part: str) -> str:
    """Text of a quotient; of a product by one of its factors the other."""
    match ast.parse(whole, mode="eval").body:
        case ast.BinOp(one, ast.Mult(), other) if part in (ast.unparse(one), ast.unparse(other)):
            return ast.unparse(one) if ast.unparse(other) == part else ast.unparse(other)
        case ast.Name() | ast.Attribute() | ast.Call():
            return f"{whole} // {part}"
    return f"({whole}) // ({part})"


def _option_lines(facts: FunctionFacts, call: LaunchCall) -> list[str]:
    if facts.is_tuned and "num_warps" not in call.options:
        return [
            "    # constants, num_warps and num_stages that are not here: the autotuner's; config=0 takes its first"
        ]
    usual = {"num_warps": "4", "num_stages": "2"}
    return [
        f"    {name}={call.options.get(name, value)},{'' if name in call.options else '  # CHECK: of your launch'}"
        for name, value in usual.items()
        if "s." not in call.options.get(name, "")
    ]


def tiles_of(source: SourceFile, facts: FunctionFacts, call: LaunchCall | None) -> tuple[str, str] | None:
    """Texts of tile rows, empty where unknown, and columns, that the source divides the program id by."""
    found = TileAxes(source, facts.function).axes() if facts.axes == 1 else None
    if found is None:
        return None
    kinds = {p.name: p.kind for p in facts.parameters}
    meaning = {p.name: f"s.{p.name}" for p in facts.parameters if p.kind in ("size", "constexpr")}
    meaning |= {name: text for name, text in (call.arguments if call else {}).items() if kinds.get(name) == "size"}
    rows, columns = (_in_sizes(one, meaning) if one is not None else "" for one in found)
    return (rows or "", columns) if columns else None


def _in_sizes(node: ast.expr, meaning: Mapping[str, str]) -> str:
    """Text over sizes of an expression over parameters; empty where one of them is no size."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - {"tl", "triton", "min", "max", "cdiv"}
    if not names <= meaning.keys():
        return ""
    filled = Filled({name: ast.parse(meaning[name], mode="eval").body for name in names}).visit(copy.deepcopy(node))
    return re.sub(r"\b(tl\.|triton\.)?cdiv\(", "triton.cdiv(", ast.unparse(filled))


def _lines(facts: FunctionFacts, call: LaunchCall, *, is_constant: bool) -> tuple[list[str], list[str]]:
    """Lines for the arguments, or for the constexprs that need a value, and the names that are left open."""
    lines, open_points = [], []
    for parameter in facts.parameters:
        if (parameter.kind == "constexpr") != is_constant:
            continue
        if is_constant:
            answered = parameter.name in call.arguments
            is_guess = GROUPS.search(parameter.name) or BLOCKS.search(parameter.name)
            is_decided = parameter.name in facts.decided or (facts.is_tuned and is_guess)
            if not answered and (is_decided or parameter.default is not None):
                continue
            value, note = (call.arguments[parameter.name], "") if answered else _constant(parameter)
            is_open = value == "..."
        elif parameter.name in call.arguments:
            value, note, is_open = call.arguments[parameter.name], "", False
        else:
            value, note, is_open = _argument(parameter, call.tensors.get(parameter.name, Tensor()))
        lines.append(f'        "{parameter.name}": {value},' + (f"  # CHECK: {note}" if note else ""))
        if is_open:
            open_points.append(parameter.name)
    return lines, open_points


def _argument(parameter: Parameter, known: Tensor) -> tuple[str, str, bool]:
    """Text, remark, and whether it is left open."""
    if parameter.kind == "pointer":
        dtype = known.dtype or ("int32" if parameter.is_index else "fp16")
        index = ", is_index=True" if parameter.is_index else ""
        role = "" if parameter.role == "in" else f', role="{parameter.role}"'
        sides = known.sides or []
        shape = f"({', '.join(sides)}{',' if len(sides) == 1 else ''})" if sides else "..."
        is_open = "..." in (*sides, shape)
        note = "" if known.dtype and not is_open else "dtype" if not is_open else "shape and dtype"
        return f'Array(shape={shape}, dtype="{dtype}"{role}{index})', note, is_open
    if parameter.kind == "stride":
        return "...", "items from one to the next along this axis", True
    if parameter.kind == "float":
        return "1.0", "value", False
    return f"s.{parameter.name}", "", False


def _constant(parameter: Parameter) -> tuple[str, str]:
    if GROUPS.search(parameter.name):
        return str(USUAL_GROUP), "a guess"
    if BLOCKS.search(parameter.name):
        return str(USUAL_BLOCK), "a guess"
    return "...", "not in the source"
