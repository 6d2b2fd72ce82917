"""`Grid`, a launch grid, and the values that a candidate's names have on it.

Every value that differs between workgroups is a digit of the hardware's linear id: ``(pid // stride) % extent``. So is
every coordinate of the result, and the logical tile is the sum of ``coordinate * stride``. One small table therefore
both decodes a workgroup and encodes its tile.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from swizzle_sim.language.ir import AXES, GRID_NAMES
from swizzle_sim.language.rules import INT32_MAX, INT32_MIN, RESULT_GROUPS
from xcd_model.errors import LanguageError, SizeError
from xcd_model.integers import is_whole

MAX_WORKGROUPS = 2**31 - 1  # a program id is a signed 32-bit integer on the device
_OF_TILES = ("pid_m", "pid_n", "num_pid_m", "num_pid_n")


@dataclass(frozen=True)
class Digit:
    """One coordinate: ``(pid // stride) % extent``."""

    stride: int
    extent: int


@dataclass(frozen=True)
class Grid:
    """A launch grid, and the tiles that a one-dimensional launch is decoded into.

    Parameters
    ----------
    launch : tuple of int
        Workgroups along x, y, z; one to three numbers, each at least 1.
    tiles : tuple of int, optional
        ``(num_pid_m, num_pid_n)`` where a one-dimensional launch is decoded row-major by the kernel:
        ``pid = pid_m * num_pid_n + pid_n``. A two-dimensional launch needs none: there
        ``pid_m = tl.program_id(0)``, ``pid_n = tl.program_id(1)``.

    Raises
    ------
    SizeError
        If a side is not a positive integer, the grid has more than 2**31 - 1 workgroups,
        or ``tiles`` does not multiply to the number of workgroups.

    Notes
    -----
    The hardware counts workgroups x fastest: ``pid = x + gx * (y + gy * z)``. That linear id is what
    ``pid`` means on every grid.
    """

    launch: tuple[int, ...]
    tiles: tuple[int, int] | None = None

    def __post_init__(self):
        if not 1 <= len(self.launch) <= 3:
            raise SizeError(f"grid {self}: a launch has one to three sides, not {len(self.launch)}")
        for side in (*self.launch, *(self.tiles or ())):
            if not is_whole(side) or side < 1:
                raise SizeError(f"grid {self}: each side is an integer of at least 1, not {side!r}")
        object.__setattr__(self, "launch", tuple(map(int, self.launch)))
        object.__setattr__(self, "tiles", self.tiles and (int(self.tiles[0]), int(self.tiles[1])))
        if self.num_pids > MAX_WORKGROUPS:
            raise SizeError(
                f"grid {self}: {self.num_pids} workgroups; a program id has 31 bits, so at most {MAX_WORKGROUPS}"
            )
        if self.tiles and (len(self.launch) != 1 or self.tiles[0] * self.tiles[1] != self.num_pids):
            raise SizeError(
                f"grid {self}: {self.tiles[0]} x {self.tiles[1]} tiles are not {self.num_pids} workgroups in a row"
            )

    def __str__(self) -> str:
        text = "x".join(str(side) for side in self.launch)
        return f"{text} ({self.tiles[0]}x{self.tiles[1]} tiles)" if self.tiles else text

    @property
    def num_pids(self) -> int:
        """Workgroups in the whole grid."""
        return math.prod(self.launch)

    @property
    def shape(self) -> tuple[int, int] | None:
        """``(num_pid_m, num_pid_n)``, or None where the grid has no two tile axes."""
        if self.tiles:
            return self.tiles
        return (self.launch[0], self.launch[1]) if len(self.launch) == 2 else None

    @property
    def levels(self) -> int:
        """Levels of a curve over its tiles: the bits of the longest side."""
        return max(1, (max(self.shape or self.launch) - 1).bit_length())

    @cached_property
    def coordinates(self) -> dict[str, Digit]:
        """Every coordinate name of the grid."""
        digits = {"pid": Digit(1, self.num_pids)}
        stride = 1
        for k, extent in enumerate((*self.launch, 1, 1)[:3]):
            # hardware gives 0 on an axis that the launch lacks, so Triton's call is always allowed
            digits[f"program_id({k})"] = Digit(stride, extent)
            if k < len(self.launch):
                digits[AXES[k]] = digits[f"pid_{AXES[k]}"] = Digit(stride, extent)
            stride *= extent
        if self.tiles:
            digits["pid_m"] = Digit(self.tiles[1], self.tiles[0])
            digits["pid_n"] = Digit(1, self.tiles[1])
        elif len(self.launch) <= 2:
            axes = zip(("pid_m", "pid_n"), AXES, strict=False)
            digits.update((name, digits[axis]) for name, axis in axes if axis in digits)
        return digits

    @property
    def axes(self) -> dict[str, Digit]:
        """The coordinates of which no other is made up: of a tile, else those of the launch, else ``pid``."""
        names = ("pid_m", "pid_n") if self.shape else [f"pid_{axis}" for axis in AXES[: len(self.launch)]]
        return {name: self.coordinates[name] for name in (names if self.shape or len(self.launch) > 1 else ["pid"])}

    @cached_property
    def counts(self) -> dict[str, int]:
        """Every count that the grid supplies, such as ``num_pids`` and ``num_pid_m``."""
        counts = {"num_pids": self.num_pids}
        for name, digit in self.coordinates.items():
            if name.startswith("pid_"):
                counts[f"num_{name}"] = digit.extent
            elif name.startswith("program_id"):
                counts[name.replace("program_id", "num_programs")] = digit.extent
        return counts

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"grid": list(self.launch), "tiles": list(self.tiles) if self.tiles else None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Grid:
        """Inverse of `as_dict`."""
        return cls(tuple(values["grid"]), tuple(values["tiles"]) if values["tiles"] else None)

    @classmethod
    def parse(cls, text: str) -> Grid:
        """Read ``4096``, ``64x64`` or ``8x16x4``; raises SizeError for any other text."""
        sides = text.lower().strip().split("x")
        if not all(side.strip().isascii() and side.strip().isdigit() for side in sides):
            raise SizeError(
                f"grid {text!r}: write one to three positive integers joined by x, such as 4096, 64x64 or 8x16x4"
            )
        return cls(tuple(int(side) for side in sides))


@dataclass(frozen=True)
class Binding:
    """Values of a candidate's inputs on one grid."""

    constants: dict[str, int]  # inputs that are the same for every workgroup
    digits: dict[str, Digit]  # inputs that differ between workgroups


def check_xcds(count: Any) -> None:
    """Refuse a number of XCDs that is no integer of Python or NumPy, or below 1."""
    if not is_whole(count) or count < 1:
        raise SizeError(
            f"num_xcds = {str(count)[:40]}: a whole number of XCDs, at least one, as 8 or gpu('mi300x').xcds"
        )


def bind(
    inputs: Iterable[str],
    grid: Grid,
    num_xcds: int,
    sizes: Mapping[str, int] | None = None,
    lines: Mapping[str, int] | None = None,
) -> Binding:
    """Bind each input to its value."""
    check_xcds(num_xcds)
    digits, sizes = grid.coordinates, sizes or {}
    counts = {**grid.counts, "num_xcds": num_xcds, "NUM_XCDS": num_xcds}
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
    """Split the coordinates of a tile into those that a candidate computes and those that keep their hardware value."""
    digits = grid.coordinates
    for name in results:
        if name not in digits:
            _refuse(name, grid, digits, {}, line)
    group = next(group for group in RESULT_GROUPS if results[0] in group)
    others = [name for name in group if name in digits and name not in results]
    return {name: digits[name] for name in results}, {name: digits[name] for name in others}


def _fitting(name: str, value: int) -> int:
    if not is_whole(value) or not INT32_MIN <= value <= INT32_MAX:
        raise SizeError(f"size {name} = {value!r}: a size is an integer that fits 32 bits with a sign")
    return int(value)


def _refuse(name: str, grid: Grid, of_grid: Iterable[str], sizes: Mapping[str, int], line: int) -> NoReturn:
    given = sorted(of_grid)
    close = difflib.get_close_matches(name, [*given, *sizes], n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    if name in _OF_TILES and grid.shape is None and len(grid.launch) == 1:
        rows = next(side for side in range(math.isqrt(grid.num_pids), 0, -1) if grid.num_pids % side == 0)
        hint = f"; this needs two tile axes: write the grid as {rows}x{grid.num_pids // rows}"
        if sizes:  # of a kernel, whose grid the user cannot change
            hint = "; this needs two tile axes, and the kernel has one: try a placement, such as contiguous"
    what = f"a grid of {grid} has no {name!r}" if name in GRID_NAMES else f"{name!r} is read but never assigned"
    of_kernel = f"; the kernel gives {', '.join(sorted(sizes))}" if sizes else "; no kernel sizes are given"
    raise LanguageError(
        f"{what}{hint}; this grid gives {', '.join(given)}{of_kernel}", line=line, column=1, code="name"
    )
