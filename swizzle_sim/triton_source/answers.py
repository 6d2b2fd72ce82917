"""Which names of a kernel hold its tile, by their spelling, and what the tile's coordinates count up to."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Collection, Iterable, Sequence

from swizzle_sim.language.ir import GRID_NAMES
from swizzle_sim.triton_source.slices import assign, loaded, slice_of, stored
from swizzle_sim.triton_source.source_file import SourceFile, literal_axis
from swizzle_sim.triton_source.tile_flow import TileFlow

# Names of the language that an answer is handed on under.
CANONICAL = (("pid_m", "pid_n"), ("pid_x", "pid_y", "pid_z"), ("x", "y", "z"), ("pid",))
_OTHERS = (("wgid",), ("tile_id",), ("tile",))
_VAGUE = frozenset({"x", "y", "z"})  # of tensors and loop counters, too


def names_of_tile(before: list[ast.stmt], after: list[ast.stmt], source: SourceFile) -> list[str]:
    """Names of the tile among those that a kernel assigns: usual ones, or by where they flow; none where neither is."""
    flow = TileFlow([*before, *after], source)
    given = {name for stmt in (*before, *after) for name in stored(stmt)}
    given -= {name for name in _VAGUE if flow.is_no_number(name)}
    for group in CANONICAL[:-1]:
        found = [name for name in group if name in given]
        if len(found) > 1:
            return _in_launch_order(found, before, source)
    by_flow = flow.tile()
    needed = as_one_number(slice_of([*before, *after], {*by_flow})[0], by_flow)
    is_of_one = len({literal_axis(call) for stmt in needed for call in source.id_calls(stmt)}) <= 1
    for names in (by_flow if is_of_one else [], CANONICAL[-1], *_OTHERS):
        if names and given.issuperset(names):
            return [*names]
    return [name for group in CANONICAL for name in group if name in given][:1]


def _in_launch_order(names: list[str], before: list[ast.stmt], source: SourceFile) -> list[str]:
    """Coordinates in the order of the axes they were first read from, where each was read from one."""
    axis: dict[str, int] = {}
    for stmt in before:
        match stmt:
            case ast.Assign([ast.Name(name)], ast.Call() as call) if name in names and source.is_id(call):
                axis.setdefault(name, literal_axis(call) or 0)
    if set(axis) == set(names) and sorted(axis.values()) == list(range(len(names))):
        return sorted(names, key=lambda name: axis[name])
    return names


def extents_of(spelled: Sequence[str], parameters: Iterable[str], assigned: Iterable[str]) -> tuple[str, ...]:
    """What three coordinates or more count up to, where nobody says so; empty where nothing tells.

    ``pid_k`` counts up to ``num_pid_k`` where there is such a name; otherwise the counts are the parameters after the
    id, in the order of the coordinates, as people write them; a count per something else is none.
    """
    parameters, names = list(parameters), {*parameters, *assigned}
    by_name = tuple(f"num_{name}" for name in spelled)
    if all(name in names for name in by_name):
        return by_name
    found = tuple(parameters[1 : 1 + len(spelled)])
    return found if len(found) == len(spelled) and not any("_per_" in name for name in found) else ()


def count_of(name: str, known: Collection[str]) -> str:
    """Which of the known names counts what a coordinate runs over: ``num_pid_m``, or ``num_tiles_m`` for ``tile_m``."""
    if f"num_{name}" in known:
        return f"num_{name}"
    axis = next((part for part in reversed(name.split("_")) if part in ("m", "n", "x", "y", "z")), "")
    counts = re.compile(rf"^(num|n|grid)_?((pid|tile|block|wg)?s?_?{axis}|{axis}_(pid|tile|block|wg)s?)$")
    return next((one for one in known if axis and counts.match(one)), "")


def handed_on(answers: Sequence[str], axes: int, extents: Sequence[str]) -> list[ast.stmt]:
    """Last statements of a prologue: the coordinates under the language's names.

    With extents, they become one number, the outermost first, and one that is outside its extent leaves the grid.
    """
    place = ast.Constant(0, lineno=0, col_offset=0)
    taken = [assign(f"tile_{k}", ast.Name(name, ast.Load()), place) for k, name in enumerate(answers)]
    if extents:
        inside = " and ".join(f"tile_{k} >= 0 and tile_{k} < ({side})" for k, side in enumerate(extents))
        number = "tile_0"
        for k, side in enumerate(extents[1:], 1):
            number = f"({number}) * ({side}) + tile_{k}"
        text = f"if {inside}:\n    pid = {number}\nelse:\n    pid = 0 - 1\n"
        return [*taken, *_parsed(text)]
    group = ("pid",) if len(answers) == 1 else CANONICAL[0] if axes == 1 else CANONICAL[1]
    given = [assign(name, ast.Name(f"tile_{k}", ast.Load()), place) for k, name in enumerate(group[: len(answers)])]
    return [*taken, *given]


def in_order(count: str, answers: Sequence[str]) -> str:
    """Product of two counts in the order of the coordinates: ``cdiv(N, B) * cdiv(M, A)`` turned for ``m, n``.

    Which is whose is read from the last part of names, as in ``M``, ``BLOCK_M`` and ``pid_m``; else it stays.
    """
    if not count or len(answers) != 2:
        return count
    product = ast.parse(count, mode="eval").body
    if not (isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)):
        return count
    first, second = ({_axis(name) for name in loaded(side)} for side in (product.left, product.right))
    outer, inner = map(_axis, answers)
    if outer in second - first and inner in first - second:
        return f"({ast.unparse(product.right)}) * ({ast.unparse(product.left)})"
    return count


def _axis(name: str) -> str:
    return name.rpartition("_")[2].lower()


class _OwnCounts(ast.NodeTransformer):
    def __init__(self, names: Collection[str]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        own = node.id in self.names and node.id in GRID_NAMES
        return ast.copy_location(ast.Name(f"of_{node.id}", node.ctx), node) if own else node


def own_counts(stmt: ast.stmt, extents: Collection[str]) -> ast.stmt:
    """Statement in which counts of three coordinates are sizes of the kernel: a grid of tiles has only two."""
    return _OwnCounts(extents).visit(copy.deepcopy(stmt))


def _parsed(text: str) -> list[ast.stmt]:
    """Statements that stand on no line of the file."""
    body = ast.parse(text).body
    for stmt in body:
        for node in ast.walk(stmt):
            if hasattr(node, "lineno"):
                node.lineno = 0
    return body


class _OneNumber(ast.NodeTransformer):
    """Puts ``pid`` for ``y * gridDim.x + x``, and ``num_pids`` for ``gridDim.x * gridDim.y``."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        whole = ast.unparse(node)
        for name, spellings in _NUMBERS.items():
            if whole in spellings:
                return ast.copy_location(ast.Name(name, ast.Load()), node)
        return self.generic_visit(node)


def _both_ways(first: str, second: str, op: str) -> tuple[str, str]:
    return f"{first} {op} {second}", f"{second} {op} {first}"


_X, _Y, _WIDE, _HIGH = "tl.program_id(0)", "tl.program_id(1)", "tl.num_programs(0)", "tl.num_programs(1)"
_NUMBERS = {
    "pid": tuple(whole for row in _both_ways(_Y, _WIDE, "*") for whole in _both_ways(row, _X, "+")),
    "num_pids": _both_ways(_WIDE, _HIGH, "*"),
}


def as_one_number(body: list[ast.stmt], answers: Collection[str]) -> list[ast.stmt]:
    """Statements in which a launch with two axes goes by its workgroups' number, where all of it does."""
    stores = [name for stmt in body for name in stored(stmt)]
    names: dict[str, ast.Call] = {}
    for stmt in body:
        match stmt:
            case ast.Assign([ast.Name(name)], ast.Call() as value) if stores.count(name) == 1 and name not in answers:
                names |= {name: value} if ast.unparse(value) in (_X, _Y, _WIDE, _HIGH) else {}
    kept = [_Calls(names).visit(copy.deepcopy(stmt)) for stmt in body if not stored(stmt) & names.keys()]
    found = [_OneNumber().visit(stmt) for stmt in kept]
    left = {ast.unparse(node) for stmt in found for node in ast.walk(stmt) if isinstance(node, ast.Call)}
    return body if left & {_X, _Y, _WIDE, _HIGH} else found


def with_first_axis(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements that read one axis of a launch, as those of a launch with that axis alone; the others stay as is."""
    calls = [
        node
        for stmt in body
        for node in ast.walk(stmt)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("tl.program_id", "tl.num_programs")
    ]
    axes = {literal_axis(call) for call in calls}
    if axes in ({1}, {2}):
        for call in calls:
            call.args, call.keywords = [ast.copy_location(ast.Constant(0), call)], []
    return body


class _Calls(ast.NodeTransformer):
    """Puts the call back for a name that holds an id or a count."""

    def __init__(self, names: dict[str, ast.Call]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self.names.get(node.id, node))
