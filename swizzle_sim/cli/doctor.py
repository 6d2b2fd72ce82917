"""``doctor``: what works here, what is missing, and what mends it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Annotated

import typer

from swizzle_sim.base.release import install_hint, triton_hint, version
from swizzle_sim.cli.arguments import Json, option
from swizzle_sim.cli.output import print_json, table

GROUP = "swizzle_sim.checks"
LIBRARIES = ("numpy", "numba", "pandas", "matplotlib", "triton")


Report = Annotated[
    bool, option("--report", help="Print a block for an issue: versions and hardware, no names, paths or keys.")
]


def doctor(report: Report = False, json: Json = False) -> None:
    """Say what works on this machine and what is missing; exit 1 if something needed is."""
    from swizzle_sim.hardware.doctor import checks, report_markdown

    if report:
        text = report_markdown()
        if json:
            print_json({"report": text})
        else:
            print(text, end="")
        return
    found = [*_libraries(), *checks(), *_plugged_in()]
    if json:
        print_json({"checks": [dict(zip(("name", "state", "message"), row, strict=True)) for row in found]})
    else:
        table("swizzle-sim doctor", ("what", "state", "found, or what mends it"), found, left=3)
    if any(state == "missing" and name in LIBRARIES for name, state, _ in found):
        raise typer.Exit(1)


def _libraries() -> Iterator[tuple[str, str, str]]:
    from swizzle_sim.hardware.doctor import package
    from xcd_model.compiled.numba_setup import NEWEST, KernelCompiler

    newest = ".".join(map(str, NEWEST))
    slower = f"; the first replay compiles for half a minute, with numba {newest} for some seconds; counts are the same"
    yield "swizzle-sim", "ok", version()
    yield "Python", "ok", f"{sys.version.split()[0]} on {platform.system()} {platform.machine()}"
    for name in LIBRARIES:
        _, state, found = package(name, triton_hint() if name == "triton" else install_hint())
        if state == "ok":  # a numba newer than was tried
            found += slower * (name == "numba" and not KernelCompiler)
        yield name, "off" if state == "missing" and name == "triton" else state, found


def _plugged_in() -> Iterator[tuple[str, str, str]]:
    """Checks of the entry-point group ``swizzle_sim.checks``: callables that give (name, state, message)."""
    found = {entry.name: entry for entry in metadata.entry_points(group=GROUP)}
    for _, entry in sorted(found.items()):
        try:
            yield from entry.load()()
        except Exception as error:  # one broken plug-in must not hide what the others say
            yield entry.name, "missing", f"{type(error).__name__}: {error}"
