"""Kernels made by assignment: ``fast = triton.autotune(...)(slow)``, ``kernel = triton.jit(function)``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from swizzle_sim.triton_source.aliases import Aliases

TUNERS = frozenset({"autotune", "heuristics", "libentry", "libtuner", "triton_autotune"})  # leave a function as it is


@dataclass(frozen=True)
class Wrapped:
    """What an assignment makes of a function."""

    function: str  # the function inside
    around: tuple[ast.Call, ...]  # calls that give its wrappers, outermost first, without that of ``triton.jit``
    is_jitted: bool  # whether the assignment jits it, and no decorator does


def wrapped(constants: Mapping[str, ast.expr], aliases: Aliases) -> dict[str, Wrapped]:
    """Kernels that assignments make, by their name."""
    found = {}
    for name, value in constants.items():
        around: list[ast.Call] = []
        is_jitted, inner = False, value
        while isinstance(inner, ast.Call) and len(inner.args) == 1:
            maker = inner.func
            if aliases.is_jit(maker.func if isinstance(maker, ast.Call) else maker):
                is_jitted = True
            elif isinstance(maker, ast.Call):
                around.append(maker)
            else:
                break
            inner = inner.args[0]
        if isinstance(inner, ast.Name) and inner is not value:
            found[name] = Wrapped(inner.id, tuple(around), is_jitted)
    return found
