"""``check``: is it a bijection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swizzle_sim.cli.arguments import Json

First = Annotated[
    str,
    typer.Argument(
        metavar="FILE|FAMILY", help="A text, Python or Triton file, file.py::function, folder; - for stdin; a family."
    ),
]
More = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE|FAMILY]... [NAME=SIZE]...", help="More of them; sizes, such as M=4096 N=4096."),
]
GridText = Annotated[str | None, typer.Option("--grid", help="Launch grid, such as 4096, 64x64 or 8x16x4.")]
OfKernel = Annotated[str | None, typer.Option("--kernel", help="Take grid and size names from this kernel instead.")]
OfGpu = Annotated[
    str | None, typer.Option("--gpu", help="GPU by name, or a TOML file: its XCDs. mi300x with --grid or --kernel.")
]
Xcds = Annotated[int | None, typer.Option("--xcds", min=1, max=4096, help="XCDs, in place of the GPU's.")]
Where = Annotated[
    str, typer.Option("--where", metavar="CONDITION", help="Where files have to hold, such as 'num_pids % 8 == 0'.")
]
LaunchText = Annotated[
    str, typer.Option("--launch", metavar="EXPRESSION", help="Launch grid of files in their sizes: 'cdiv(M, 64)'.")
]
Answer = Annotated[str, typer.Option("--answer", metavar="NAMES", help="Names that hold the tile in a Triton file.")]
Marked = Annotated[bool, typer.Option("--marked", help="Of Python files, only what a # swizzle-check comment marks.")]
Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML there.")]


def check(
    swizzle: First,
    more: More = None,
    grid: GridText = None,
    kernel: OfKernel = None,
    gpu: OfGpu = None,
    xcds: Xcds = None,
    where: Where = "",
    launch: LaunchText = "",
    answer: Answer = "",
    marked: Marked = False,
    junit: Junit = None,
    json: Json = False,
) -> None:
    """Check that swizzles are bijections; exit 1 if one is not.

    With --grid or --kernel: there, and on a lattice of other grids. Files without: on every small grid, or as they say
    themselves (# swizzle-check: ...). Of a Triton function the program-id prologue is read and the file not run; a
    marked Python function is imported and called.
    """
    from swizzle_sim.cli import checking

    given = checking.Given((swizzle, *(more or ())), grid, kernel, gpu, xcds, where, launch, answer, marked)
    checking.check(given, junit, json)
