"""What the names of a candidate mean on a grid.

Every value that differs between workgroups is a digit of the hardware's linear id: ``(pid // stride) % extent``. So is
every coordinate of the answer, and the logical id is the sum of ``coordinate * stride``. Hence one small table says
both how to decode a workgroup and how to put a tile back together.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from swizzle_sim.swizzle.grid import Grid
from swizzle_sim.swizzle.names import AXES, GRID_NAMES
from swizzle_sim.swizzle.rules import INT32_MAX, INT32_MIN
from xcd_model.errors import LanguageError, SizeError

_OF_TILES = ("pid_m", "pid_n", "num_pid_m", "num_pid_n")


@dataclass(frozen=True)
class Digit:
    """One coordinate: ``(pid // stride) % extent``."""

    stride: int
    extent: int


@dataclass(frozen=True)
class Binding:
    """Values of a candidate's inputs on one grid.

    Parameters
    ----------
    constants : dict of str to int
        Inputs that are the same for every workgroup.
    digits : dict of str to Digit
        Inputs that differ between workgroups.
    """

    constants: dict[str, int]
    digits: dict[str, Digit]


def bind(
    inputs: Iterable[str],
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int] | None = None,
    lines: Mapping[str, int] | None = None,
) -> Binding:
    """Give each input its value.

    Parameters
    ----------
    inputs : iterable of str
        Names as in `Form.inputs`.
    grid : Grid
    num_xcds : int
    sizes : mapping of str to int, optional
        The kernel's own names, such as ``M`` or ``BLOCK_M``; a name of the grid wins over them.
    lines : mapping of str to int, optional
        Line of the text that first reads a name, for messages.

    Raises
    ------
    LanguageError
        With code ``name`` if neither the grid nor the kernel has an input.
    SizeError
        If a size does not fit a signed 32-bit integer, or ``num_xcds`` is below 1.
    """
    if num_xcds < 1:
        raise SizeError(f"num_xcds = {num_xcds}: a GPU has at least one XCD")
    digits, counts, sizes = coordinates(grid), _counts(grid, num_xcds), sizes or {}
    bound = Binding({}, {})
    for name in inputs:
        if name in digits:
            bound.digits[name] = digits[name]
        elif name in counts:
            bound.constants[name] = counts[name]
        elif name in sizes:
            bound.constants[name] = _fitting(name, sizes[name])
        else:
            _refuse(name, grid, [*digits, *counts], sizes, (lines or {}).get(name, 0))
    return bound


def result_digits(results: tuple[str, ...], grid: Grid, line: int = 0) -> tuple[dict[str, Digit], dict[str, Digit]]:
    """Return the coordinates that a candidate computes, and those that keep what the hardware gave.

    Raises
    ------
    LanguageError
        With code ``name`` if the grid has no such coordinate.
    """
    digits = coordinates(grid)
    for name in results:
        if name not in digits:
            _refuse(name, grid, digits, {}, line)
    group = next(group for group in _groups(grid) if results[0] in group)
    return {name: digits[name] for name in results}, {name: digits[name] for name in group if name not in results}


def coordinates(grid: Grid) -> dict[str, Digit]:
    """Return every coordinate name of a grid."""
    digits = {"pid": Digit(1, grid.num_pids)}
    stride = 1
    for k, extent in enumerate((*grid.launch, 1, 1)[:3]):
        # hardware answers 0 on an axis that the launch does not have, so Triton's call is always allowed
        digits[f"program_id({k})"] = Digit(stride, extent)
        if k < len(grid.launch):
            digits[AXES[k]] = digits[f"pid_{AXES[k]}"] = Digit(stride, extent)
        stride *= extent
    if grid.tiles:
        digits["pid_m"] = Digit(grid.tiles[1], grid.tiles[0])
        digits["pid_n"] = Digit(1, grid.tiles[1])
    elif len(grid.launch) <= 2:
        digits.update(
            (name, digits[axis]) for name, axis in zip(("pid_m", "pid_n"), AXES, strict=False) if axis in digits
        )
    return digits


def _groups(grid: Grid) -> list[tuple[str, ...]]:
    """Coordinates that together make one logical id."""
    digits = coordinates(grid)
    groups = (("pid",), ("pid_m", "pid_n"), ("pid_x", "pid_y", "pid_z"), AXES)
    return [tuple(name for name in group if name in digits) for group in groups]


def _counts(grid: Grid, num_xcds: int) -> dict[str, int]:
    counts = {"num_pids": grid.num_pids, "num_xcds": num_xcds, "NUM_XCDS": num_xcds}
    for name, digit in coordinates(grid).items():
        if name.startswith("pid_"):
            counts[f"num_{name}"] = digit.extent
        elif name.startswith("program_id"):
            counts[name.replace("program_id", "num_programs")] = digit.extent
    return counts


def _fitting(name: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not INT32_MIN <= value <= INT32_MAX:
        raise SizeError(f"size {name} = {value!r}: a size is an integer that fits 32 bits with a sign")
    return value


def _refuse(name: str, grid: Grid, of_grid: Iterable[str], sizes: Mapping[str, int], line: int) -> NoReturn:
    given = sorted(of_grid)
    close = difflib.get_close_matches(name, [*given, *sizes], n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    if name in _OF_TILES and grid.shape is None and len(grid.launch) == 1:
        rows = next(side for side in range(math.isqrt(grid.num_pids), 0, -1) if grid.num_pids % side == 0)
        hint = f"; this needs two tile axes: write the grid as {rows}x{grid.num_pids // rows}"
        if sizes:  # of a kernel, whose grid nobody can write otherwise
            hint = "; this needs two tile axes, and the kernel has one: try a placement, such as contiguous"
    what = f"a grid of {grid} has no {name!r}" if name in GRID_NAMES else f"{name!r} is read but never assigned"
    of_kernel = f"; the kernel gives {', '.join(sorted(sizes))}" if sizes else "; no kernel sizes are given"
    raise LanguageError(
        f"{what}{hint}; this grid gives {', '.join(given)}{of_kernel}", line=line, column=1, code="name"
    )
