"""The remap that a kernel holds already: the order in which its program ids compute tiles, and how to put it off.

Candidates permute program ids, so on a kernel with a remap of its own they are stacked on it.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from swizzle_sim.language import Grid, Swizzle
from swizzle_sim.triton_source.definitions import evaluate
from swizzle_sim.triton_source.prologue import Prologue, read_prologue
from swizzle_sim.workload.kernels import Kernel
from xcd_model.errors import SwizzleSimError

if TYPE_CHECKING:
    from swizzle_sim.pricing.scores import Score


@dataclass(frozen=True, eq=False)
class OwnRemap:
    """A remap inside a kernel."""

    tiles: np.ndarray  # (num_pids,) int64 array: tile, counted row by row, that each program computes
    # constants of the kernel under which it computes tiles row by row, such as ``{"GROUP_M": 1}``; empty where none
    # does
    constants: Mapping[str, int]
    now: Mapping[str, int]  # the same constants at this launch

    @property
    def without(self) -> np.ndarray:
        """Order of programs in which workgroup w computes tile w."""
        return np.argsort(self.tiles)

    def as_dict(self, without: Score) -> dict[str, Any]:
        """JSON-ready, with the score of the kernel without it."""
        return {"constants": dict(self.now), "off": dict(self.constants), "without": without.as_dict()}

    @property
    def advice(self) -> str:
        """What candidates are tried on, and how to try them in its place."""
        off = " ".join(f"{name}={value}" for name, value in self.constants.items())
        instead = f"; give {off} for candidates in its place" if off else ""
        return f"{self} stays: candidates are stacked on it{instead}"

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.now.items())
        return f"the kernel's own remap{f' ({given})' if given else ''}"


def own_remap(kernel: Kernel, num_xcds: int) -> OwnRemap | None:
    """Remap of a user's kernel; None where it has none, or its source does not tell."""
    if not kernel.file or kernel.claims is not None or kernel.launch is None:
        return None
    launch = kernel.launch
    known = {name: int(value) for name, value in launch.scalars.items() if isinstance(value, int)}
    try:
        prologue = read_prologue(launch.path, launch.function, given=tuple(known))
        grid = _permuted(kernel.grid, prologue, known)
        swizzle = Swizzle.parse(prologue.text.text)
        order = swizzle.permutation(grid, num_xcds, known)
    except SwizzleSimError:
        return None
    row_by_row, behind = np.arange(order.size), np.arange(kernel.grid.num_pids // order.size)[:, None] * order.size
    if np.array_equal(order, row_by_row):
        return None
    order = (behind + order).ravel()
    for name in launch.constexprs:
        if known.get(name, 1) != 1 and name in swizzle.form.inputs:
            with contextlib.suppress(SwizzleSimError):
                if np.array_equal(swizzle.permutation(grid, num_xcds, {**known, name: 1}), row_by_row):
                    return OwnRemap(order, {name: 1}, {name: known[name]})
    return OwnRemap(order, {}, {})


def _permuted(grid: Grid, prologue: Prologue, known: Mapping[str, int]) -> Grid:
    """Part of a grid that a prologue permutes, again for each id of the axes behind those that it reads."""
    if grid.tiles is not None or prologue.axes > 1 or not prologue.launch:
        return grid
    match ast.parse(prologue.launch, mode="eval").body:
        case ast.BinOp(rows, ast.Mult(), columns):
            counts = evaluate(rows, known), evaluate(columns, known)
            if counts[0] and counts[1] and counts[0] * counts[1] == grid.launch[0]:
                return Grid(grid.launch[:1], (counts[0], counts[1]))
    return grid
