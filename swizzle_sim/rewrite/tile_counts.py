"""Expressions of a kernel's source for its tile counts, which the launch grid alone does not give."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from swizzle_sim.language.grid import Grid
from swizzle_sim.triton_source.definitions import Definitions, evaluate
from swizzle_sim.workload.launch import Launch, known_at
from xcd_model.errors import RewriteError

_OF_TILES = ("num_pid_m", "num_pid_n")
Point = tuple[Grid, Mapping[str, int] | None]


def tile_counts(
    wanted: Iterable[str], definitions: Definitions, launch: Launch, grid: Grid, lattice: Iterable[Point], total: str
) -> dict[str, str]:
    """Text of ``num_pid_m`` and ``num_pid_n`` in the kernel's parameters.

    An expression is taken if the kernel gives it that very name, or if it is the only ``cdiv`` of the kernel with the
    right value at the target grid and at every other launch known, or without one the only parameter that something is
    divided by. The other count may be the quotient. Constants that are no sizes are those of the launch everywhere;
    where no count fits so, they may differ, and do not tell.
    """
    others = [(other, known_at(sizes)) for other, sizes in lattice if sizes and other.tiles]
    found: dict[str, ast.expr | None] = {}
    for constants in (dict(launch.constexprs), {}):
        points: list[tuple[Grid, dict]] = [
            (grid, launch.scalars),
            *((other, {**constants, **sizes}) for other, sizes in others),
        ]
        found = {name: _only(name, definitions, points) for name in _OF_TILES}
        if any(found.values()):
            break
    texts = {}
    for name in wanted:
        own, other = found[name], found[_OF_TILES[1 - _OF_TILES.index(name)]]
        if own is not None:
            texts[name] = ast.unparse(own)
        elif other is not None:
            text = ast.unparse(other)
            texts[name] = f"{total} // {text if isinstance(other, ast.Call | ast.Name | ast.Constant) else f'({text})'}"
        else:
            assert grid.tiles is not None
            raise RewriteError(
                f"the swizzle reads {name} ({grid.tiles[_OF_TILES.index(name)]} here), and the source of "
                f"{launch.function} does not say how to compute it: write {name} = tl.cdiv(...) of parameters there",
                path=launch.path,
            )
    return texts


def is_count_of_columns(text: str, definitions: Definitions, launch: Launch, points: Iterable[Point]) -> bool:
    """Whether an expression of the kernel is ``num_pid_n`` at the target grid, the first point, and at every other."""
    whole = definitions.in_parameters(text)
    (first, _), *others = points
    if whole is None or first.tiles is None or evaluate(whole, launch.scalars) != first.tiles[1]:
        return False
    known = [(evaluate(whole, known_at(sizes)), grid.tiles) for grid, sizes in others if sizes and grid.tiles]
    return all(value is None or value == tiles[1] for value, tiles in known)


def grid_of_tiles(function: ast.FunctionDef, count: str, launch: Launch, grid: Grid) -> Grid | None:
    """Grid that the tile ids of a persistent kernel count; None where the source does not tell."""
    values, definitions = launch.scalars, Definitions(_settled(function, launch))
    whole = definitions.in_parameters(count)
    tiles = evaluate(whole, values) if whole is not None else None
    if tiles is None or tiles < 1:
        return None
    if grid.num_pids == tiles and len(grid.launch) == 1:
        return grid
    meanings = [definitions.meaning_of(name) for name in ("num_pid_m", "num_pid_n")]
    m, n = (evaluate(meaning, values) if meaning is not None else None for meaning in meanings)
    return Grid((tiles,), (m, n) if m and n and m * n == tiles else None)


def _settled(function: ast.FunctionDef, launch: Launch) -> ast.FunctionDef:
    """Kernel with what a launch takes where it asks for an argument's value, and annotated constants as plain ones."""
    given, body = {**launch.arguments, **launch.constexprs}, list[ast.stmt]()
    for stmt in function.body:
        match stmt:
            case ast.If(ast.Compare(ast.Name(name), [asked], [ast.Constant(value)])) if name in given and isinstance(
                asked, ast.Is | ast.IsNot | ast.Eq | ast.NotEq
            ):
                body += stmt.body if (given[name] == value) == isinstance(asked, ast.Is | ast.Eq) else stmt.orelse
            case _:
                body.append(stmt)
    for k, one in enumerate(body):
        body[k] = ast.Assign([one.target], one.value) if isinstance(one, ast.AnnAssign) and one.value else one
    return ast.FunctionDef(**{**vars(function), "body": body})


def _only(name: str, definitions: Definitions, points: list[tuple[Grid, dict]]) -> ast.expr | None:
    """Return the one expression that counts tiles along an axis at every point."""
    side = _OF_TILES.index(name)

    def fits(one: ast.expr) -> bool:
        values = [(evaluate(one, known), grid.tiles) for grid, known in points]
        if values[0][0] is None:
            return False
        return all(value is None or (tiles and value == tiles[side]) for value, tiles in values)

    named = definitions.meaning_of(name)
    if named is not None and fits(named):
        return named
    fitting = [one for one in definitions.quotients() if fits(one)] or [
        one for one in definitions.divisors() if fits(one)
    ]
    return fitting[0] if len(fitting) == 1 else None
