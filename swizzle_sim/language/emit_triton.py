"""A candidate as a self-contained ``@triton.jit`` helper."""

from __future__ import annotations

import keyword

from swizzle_sim.language.emit import INDENT, Dialect, python_lines
from swizzle_sim.language.ir import COORDINATES, Form
from swizzle_sim.language.variables import (
    arguments,
    assigned,
    check_function_name,
    is_axis_call,
    respelled,
    used,
    with_initial_values,
)

_CALLS = {"min": "tl.minimum", "max": "tl.maximum", "cdiv": "tl.cdiv"}


def emit_triton(form: Form, name: str = "swizzle") -> str:
    """Python source of a Triton helper that computes a candidate.

    Parameters
    ----------
    form : Form
    name : str
        Name of the function.

    Returns
    -------
    source : str
        Imports, a comment with the call, and the function. It takes `arguments` by position, less the axis calls,
        which it makes itself, and returns `Form.results`; ``num_xcds`` is a ``tl.constexpr`` called ``NUM_XCDS``.

    Raises
    ------
    LanguageError
        With code ``name`` if ``name`` cannot name a function.
    """
    check_function_name(name, keyword.kwlist)
    spelled = _spelled(form, name)
    taken = [spelled.get(one, one) for one in arguments(form) if not is_axis_call(one)]
    typed = [f"{one}: tl.constexpr" if one.lower().startswith("num_xcds") else one for one in taken]
    dialect = Dialect(calls=_CALLS, select="tl.where({condition}, {then}, {other})", select_is_call=True, names=spelled)
    body = with_initial_values(form.body, form.results, set(form.inputs))
    results = ", ".join(dialect.name(one) for one in form.results)
    return "\n".join(
        [
            "import triton",
            "import triton.language as tl",
            "",
            "",
            *_comment(form, name, taken),
            "@triton.jit",
            f"def {name}({', '.join(typed)}):",
            *_tensors(form, dialect),
            *python_lines(body, dialect, INDENT),
            f"{INDENT}return {results}",
            "",
        ]
    )


def _spelled(form: Form, name: str) -> dict[str, str]:
    spelled = respelled(form, {name})
    spelled.update((one, f"tl.{one}") for one in form.inputs if is_axis_call(one))
    # a constexpr is written in capitals, unless the candidate changes it or has that name in use
    if "num_xcds" in form.inputs and not {"NUM_XCDS"} & {*used(form), name} and "num_xcds" not in assigned(form.body):
        spelled["num_xcds"] = "NUM_XCDS"
    return spelled


def _comment(form: Form, name: str, taken: list[str]) -> list[str]:
    given = ", ".join("NUM_XCDS=8" if one == "NUM_XCDS" else one for one in taken)
    lines = [
        "# Workgroup id to tile, emitted by swizzle-sim; 32-bit integers. In the kernel:",
        f"#     {', '.join(form.results)} = {name}({given})",
    ]
    if "pid" in form.inputs:
        lines.append("# where pid is the linear id, x fastest: tl.program_id(0) on a one-dimensional launch.")
    return lines


def _tensors(form: Form, dialect: Dialect) -> list[str]:
    """Copies that turn a launch constant into a tensor, for inputs that the candidate changes."""
    changed = sorted((set(form.inputs) & assigned(form.body)) - COORDINATES)
    names = [dialect.name(one) for one in changed]
    return [
        f"{INDENT}{one} = {one}  # from here on a tensor, also where the launch made it a constant" for one in names
    ]
