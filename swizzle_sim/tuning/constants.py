"""`parametrised`: numbers in a kernel's source made ``tl.constexpr`` parameters, and the grid derived from them.

    BLOCK = 64                                   def kernel(..., BLOCK: tl.constexpr = 64):
    rows = pid * 64 + tl.arange(0, 64)           rows = pid * BLOCK + tl.arange(0, BLOCK)

A number counts that ``tl.arange`` or the shape of a block takes, written out, or by a name of the kernel or of its
file; all equal numbers of the kernel change with it. A side of the grid follows the number of blocks of one size at
every size at which the declaration gives it. Whether other numbers compute the same, a comparison of both kernels says.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.disk_cache import cache_home
from swizzle_sim.capture.workload import Workload
from swizzle_sim.language.grid import Grid
from swizzle_sim.rewrite.source import EditableSource, nodes
from swizzle_sim.triton_source.source_file import parameters_of
from swizzle_sim.workload.launch import known_at
from xcd_model.errors import RewriteError

SIZED = ("arange", "zeros", "full", "make_block_ptr")  # calls that take the sizes of a block
FEWEST = 16  # items of a block
Side = tuple[str, str] | None  # size and constant whose blocks a side of the grid counts; None of one that stays


@dataclass(frozen=True)
class Parametrised:
    """A kernel whose numbers are parameters, in a file of its own."""

    path: Path
    text: bytes
    values: Mapping[str, int]  # of the parameters, as the kernel has them
    sides: tuple[Side, ...]

    def at(self, work: Workload, values: Mapping[str, int]) -> Workload:
        """The kernel with other numbers, at the sizes of a workload of the original."""
        constants = {name: values[name] for name in self.values}
        grid = self._grid(work.grid, {**work.launch.integers, **work.problem}, constants)
        others = tuple((self._grid(other, known_at(sizes), constants), sizes) for other, sizes in work.others)
        launch = replace(
            work.launch, path=self.path, grid=grid.launch, constexprs={**work.launch.constexprs, **constants}
        )
        at = lambda sizes: self.at(work.at(sizes), values)  # noqa: E731
        return replace(work, grid=grid, launch=launch, others=others, at=at)

    def _grid(self, grid: Grid, known: Mapping[str, int], constants: Mapping[str, int]) -> Grid:
        """Grid of a launch with other numbers."""
        sides = [
            old if side is None else -(-known[side[0]] // constants[side[1]])
            for old, side in zip(grid.tiles or grid.launch, self.sides, strict=True)
        ]
        return Grid((sides[0] * sides[1],), (sides[0], sides[1])) if grid.tiles else Grid(tuple(sides))


def parametrised(work: Workload) -> Parametrised:
    """A workload's kernel with its numbers as parameters; raises `RewriteError` with the line where it has none."""
    path, data = work.launch.path, work.launch.path.read_bytes()
    source = EditableSource(path, data, work.launch.function)
    named = _named(source)
    values = {**named, **_written(source, named)}
    if not values:
        raise RewriteError(f"{work.launch.function} takes no number as the size of a block", path=path)
    for name, value in values.items():
        source.last_parameter(source.function, f"{name}: tl.constexpr = {value}")
    text = source.apply()
    if work.programs is not None or work.waits is not None:
        raise RewriteError("is persistent: its grid does not follow its blocks", path=path)
    sides = tuple(_side(work, values, number) for number in range(len(work.grid.tiles or work.grid.launch)))
    new = cache_home() / "parametrised" / hashlib.sha256(text).hexdigest()[:16] / path.name
    new.parent.mkdir(parents=True, exist_ok=True)
    write_whole(new, text)
    return Parametrised(new, text, values, sides)


def _sizes(source: EditableSource) -> Iterator[ast.expr]:
    """Sizes of the blocks that the kernel makes."""
    for node in nodes(*source.function.body):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in SIZED:
            for given in [*node.args, *(one.value for one in node.keywords)]:
                yield from given.elts if isinstance(given, ast.Tuple | ast.List) else [given]


def _named(source: EditableSource) -> dict[str, int]:
    """Names of the kernel or its file that hold the size of a block; those of the kernel lose their assignment."""
    wanted = dict.fromkeys(one.id for one in _sizes(source) if isinstance(one, ast.Name))
    own = {one.arg for one in parameters_of(source.function)}
    found = {}
    for name in [one for one in wanted if one not in own]:
        inside = [one for one in nodes(*source.function.body) if isinstance(one, ast.stmt) and _value(one, name)]
        outside = [value for one in source.facts.tree.body if (value := _value(one, name))]
        stores = [one for one in nodes(source.function) if isinstance(one, ast.Name) and one.id == name]
        changed = sum(isinstance(one.ctx, ast.Store) for one in stores)
        if len(inside) == changed == 1 and isinstance(inside[0], ast.stmt) and source.has_own_lines(inside[0]):
            found[name] = _value(inside[0], name)
            source.replace(inside[0], "") if source.is_commented(inside[0]) else source.remove(inside[0])
        elif not changed and len(outside) == 1:
            found[name] = outside[0]
            _check_helpers(source, name)
    return found


def _check_helpers(source: EditableSource, name: str) -> None:
    """Refuse a name of the file that functions read which the kernel calls: they would not see the parameter."""
    for helper in source.facts.reachable(source.function):
        for node in nodes(helper) if helper is not source.function else ():
            if isinstance(node, ast.Name) and node.id == name:
                raise source.refuse(f"{name} is read here too, by a function that the kernel calls", node)


def _value(stmt: ast.AST, name: str) -> int:
    """Integer that a statement gives to a name, as a constant of the language or plainly; 0 of any other."""
    match stmt:
        case ast.Assign([ast.Name(to)], value) | ast.AnnAssign(ast.Name(to), _, ast.expr() as value) if to == name:
            inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
            number = inner.value if isinstance(inner, ast.Constant) else 0
            return number if type(number) is int and number >= FEWEST else 0
    return 0


def _written(source: EditableSource, named: Mapping[str, int]) -> dict[str, int]:
    """Numbers written as the size of a block; each is replaced wherever the kernel has it, by the name of its value."""
    numbers = dict.fromkeys(one.value for one in _sizes(source) if isinstance(one, ast.Constant))
    found = {}
    for value in (one for one in numbers if type(one) is int and one >= FEWEST and not one & (one - 1)):
        name = next((one for one, known in named.items() if known == value), "") or source.fresh("BLOCK")
        found[name] = value
        for node in nodes(*source.function.body):
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value == value:
                source.replace(node, name)
    return found


def _side(work: Workload, values: Mapping[str, int], number: int) -> Side:
    """What a side of the grid counts, at every size that is known."""
    points = [
        (work.grid, {**work.launch.integers, **work.problem}),
        *((grid, known_at(sizes)) for grid, sizes in work.others),
    ]
    sides = [(grid.tiles or grid.launch)[number] for grid, _ in points]
    known = [name for name in points[0][1] if all(name in at for _, at in points)]
    for name in known:
        for constant, block in list(values.items())[number:] + list(values.items())[:number]:
            if all(-(-at[name] // block) == side for side, (_, at) in zip(sides, points, strict=True)):
                return name, constant
    stays = any(all(at[name] == side for side, (_, at) in zip(sides, points, strict=True)) for name in known)
    if stays or len(set(sides)) == 1:
        return None
    axis = "xyz"[number]
    raise RewriteError(f"side {axis} of the grid, {sides[0]}, counts blocks of no one size", path=work.launch.path)
