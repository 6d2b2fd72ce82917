"""The launches on which a candidate is tried, smallest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from swizzle_sim.language.grid import Grid, check_xcds
from swizzle_sim.language.ir import GRID_NAMES, Binary, Form, Int, Name, evaluate, names_read, nodes
from swizzle_sim.language.parse import parse_condition
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.expression import calculate, divisor_of, names_of, read_expression, split_sides
from swizzle_sim.testing.refuting import XCDS
from xcd_model import Gpu
from xcd_model.errors import OptionError, SizeError
from xcd_model.integers import is_whole

Holds = Callable[[Grid, int], bool]
Where = str | Holds | None
_SIDES = (*range(1, 11), 15, 16, 17)  # tiles along a side of a sized launch
_FEW = (1, 2, 3, 5, 8)  # where many sizes vary
_MOST_TILES = 600  # of a sized launch
_ANY_BLOCK = 16  # of a tile size without a value that only divides: any number does


@dataclass(frozen=True)
class Point:
    """One launch: grid, XCD count, and the values of sizes that vary."""

    grid: Grid
    num_xcds: int
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def rank(self) -> tuple:
        """Smaller launches first; then fewer XCDs, then smaller sizes."""
        return (
            self.grid.num_pids,
            self.num_xcds,
            len(self.grid.launch),
            self.grid.launch,
            self.grid.tiles or (),
            *self.sizes.values(),
        )


def kind_of(form: Form) -> str:
    """Kind of grid that a form is written for: ``line``, ``tiles``, ``plane`` or ``box``."""
    names = {*form.inputs, *form.results}

    def has(*words: str) -> bool:
        return any(name in names for name in words)

    if has("z", "pid_z", "num_pid_z", "program_id(2)", "num_programs(2)"):
        return "box"
    if has("y", "pid_y", "num_pid_y", "program_id(1)", "num_programs(1)"):
        return "plane"
    return "tiles" if has("pid_m", "pid_n", "num_pid_m", "num_pid_n") else "line"


def as_grid(given: Any, kind: str) -> Grid:
    """Grid of a caller's ``64``, ``(64, 32)``, ``"64x32"`` or `Grid`; two sides are tiles where the kind is."""
    if isinstance(given, Grid):
        return given
    if isinstance(given, str):
        grid = Grid.parse(given)
    elif is_whole(given):
        grid = Grid((given,))
    elif isinstance(given, tuple | list | np.ndarray):
        grid = Grid(tuple(given))
    else:
        raise SizeError(f"grid {given!r}: write an integer, a tuple of sides, a text such as 64x64, or a Grid")
    if kind == "tiles" and len(grid.launch) == 2:
        return Grid((grid.num_pids,), (grid.launch[0], grid.launch[1]))
    return grid


def each_size(options: Options) -> list[dict[str, int]]:
    """Every choice of a value for each size that has one or several."""
    ranges = {name: (value,) for name, value in options.single.items() if isinstance(value, int)} | options.several
    return [dict(zip(ranges, values, strict=True)) for values in product(*ranges.values())]


def xcd_counts(form: Form, given: Iterable[int] | int | None) -> tuple[int, ...]:
    """XCD counts to try: those given, of a GPU its own, or usual ones; a single one for a candidate that reads none."""
    several: Iterable[Any] = given if isinstance(given, Iterable) else () if given is None else (given,)
    counts = tuple(one.xcds if isinstance(one, Gpu) else one for one in several) or XCDS
    for count in counts:
        check_xcds(count)
    reads = any(name.lower() == "num_xcds" for name in form.inputs)
    return counts if reads else (8 if 8 in counts else max(counts),)


def condition(where: Where) -> Holds:
    """Predicate of a condition of the language over a grid's counts, or of a callable."""
    if not where:
        return lambda grid, num_xcds: True
    if callable(where):
        return where
    form = parse_condition(where)

    def holds(grid: Grid, num_xcds: int) -> bool:
        values = {"num_pids": grid.num_pids, "num_xcds": num_xcds}
        if grid.shape:
            values |= {"num_pid_m": grid.shape[0], "num_pid_n": grid.shape[1]}
        values |= {f"num_pid_{axis}": side for axis, side in zip("xyz", grid.launch, strict=False)}
        return bool(evaluate(form, values))

    return holds


def sized_launches(
    form: Form, launch: str, sizes: Mapping[str, Any], num_xcds: int = 1
) -> Iterator[tuple[Grid, dict[str, int]]]:
    """Yield launches of a kernel over its sizes: whole tiles and ragged ones."""
    sides = [read_expression(part) for part in split_sides(launch)]
    tiles = isinstance(sides[0], Binary) and sides[0].op == "*" and len(sides) == 1
    parts = [sides[0].left, sides[0].right] if tiles and isinstance(sides[0], Binary) else sides
    written: list[Any] = [*parts, *nodes(form.body)]
    names = dict.fromkeys(name for side in parts for name in names_read(side) if name not in GRID_NAMES)
    fixed = {name: value for name, value in sizes.items() if isinstance(value, int)}
    ranges = {name: tuple(value) for name, value in sizes.items() if isinstance(value, tuple | list | range)}
    loose = [name for name in names if name not in sizes]
    blocks = [divisor_of(name, written) for name in loose]
    fixed |= {
        block.name: _ANY_BLOCK
        for block in blocks
        if isinstance(block, Name) and block.name in {*loose, *form.inputs} - {*sizes, *GRID_NAMES}
    }
    of_gpu = {"num_xcds": num_xcds, "NUM_XCDS": num_xcds}
    varying = sum(name not in fixed for name in loose)
    for name, block in zip(loose, blocks, strict=True):
        if name not in fixed:
            size = block.value if isinstance(block, Int) else fixed.get(block.name, 1) if isinstance(block, Name) else 1
            ranges[name] = tuple(_lengths(max(size, 1), _SIDES if varying < 3 else _FEW))
    for values in product(*ranges.values()):
        chosen = dict(zip(ranges, values, strict=True))
        counts = [calculate(part, {**of_gpu, **fixed, **chosen}, launch) for part in parts]
        if min(counts) < 1 or (loose and prod(counts) > _MOST_TILES):
            continue
        grid = Grid((prod(counts),), (counts[0], counts[1])) if tiles else Grid(tuple(counts))
        yield grid, {name: value for name, value in {**fixed, **chosen}.items() if name in form.inputs}


def _lengths(block: int, sides: Iterable[int]) -> Iterator[int]:
    for tiles in sides:
        yield from {tiles * block: 0, (tiles - 1) * block + 1: 0}  # whole, and one more than the tile before


def need_launch(form: Form, sizes: Mapping[str, Any], launch: str, name: str) -> None:
    """Refuse a candidate that reads a size to which nothing gives a value."""
    known = {*sizes, *GRID_NAMES, *names_of(launch)}
    missing = [one for one in form.inputs if one not in known]
    if missing:
        raise OptionError(
            f"{name}: {', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no value: give a number, such as "
            f"{missing[0]}=8, or the grid's own name, such as {missing[0]}='num_pids'"
            + ("" if launch else ", or the launch grid, such as launch='cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)'")
        )
