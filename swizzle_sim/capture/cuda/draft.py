"""`drafted`: the declaration of a CUDA or HIP kernel from its signature, for a person to complete."""

from __future__ import annotations

import re
from pathlib import Path

from swizzle_sim.capture.cuda.source import parameters_of
from xcd_model.errors import CaptureError
from xcd_model.files import read_bytes

TYPES = {"double": "fp64", "half": "fp16", "bfloat16": "bf16", "int64": "int64", "int8": "int8", "int": "int32"}
DRAFT = """\
from swizzle_sim.capture import Array, Cuda, Kernel

kernel = Kernel(
    "{file}:{function}",
    sizes={{}},  # such as {{"M": 4096}}, which the lines below read as s.M
    arguments=lambda s: {{
{arguments}
    }},
    grid=lambda s: ...,
    cuda=Cuda(block=...),  # and template="...", shared_bytes=..., flags=("-I...",), vgprs=...
)
"""


def drafted(source: Path, function: str, beside: str) -> tuple[str, list[str]]:
    """Text of a declaration, and what it leaves open."""
    try:
        text = read_bytes(source).decode("utf-8", "replace")
    except OSError as error:
        raise CaptureError(f"{source}: cannot be read ({error.strerror})", code="declaration") from None
    parameters = parameters_of(text, function)
    if parameters is None:
        raise CaptureError(f"{source.name} holds no __global__ function {function}", code="declaration")
    lines = [f'        "{name}": {_value(kind)}' for name, kind in parameters.items()]
    open_points = [*parameters, "grid", "block"]
    return DRAFT.format(file=beside, function=function, arguments="\n".join(lines)), open_points


def _value(kind: str) -> str:
    """Draft of an argument of a type of C."""
    if "*" not in kind:
        return f"...,  # {kind}"
    dtype = next((ours for theirs, ours in TYPES.items() if re.search(rf"(?:\\b|_){theirs}", kind)), "fp32")
    role = "" if "const" in kind else ', role="inout"'
    return f'Array(shape=..., dtype="{dtype}"{role}),  # {"" if "float" in kind else "CHECK "}{kind}'
