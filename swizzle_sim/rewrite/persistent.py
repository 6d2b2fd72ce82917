"""Persistent kernels: each program walks over tiles, so it is the tile's id that a swizzle remaps."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from swizzle_sim.rewrite.source import EditableSource, nodes
from swizzle_sim.triton_source.source_file import ProgramId

Loop = ast.For | ast.While


@dataclass
class Counter:
    """A second id that runs along with a loop's tile id, as an epilogue that is one tile behind has it."""

    name: str
    reads: list[ast.Name]  # where it is used
    advance: ast.stmt | None  # where it goes on to the next tile, if all uses come after that in the same block


@dataclass
class TileLoop:
    """One loop over tiles."""

    loop: Loop
    variable: str  # name of the tile id
    # text of the number of tiles, and of what a program adds to come to its next one, or of the claim that gives it
    count: str
    step: str
    reads: list[ast.Name] = field(default_factory=list)  # where the tile id is used: these are to be remapped
    counters: list[Counter] = field(default_factory=list)  # ids that run along
    claimed: bool = False  # whether an atomic gives the next tile
    flat: bool = False  # whether it runs over the steps of all tiles, and goes on to the next tile now and then


def tile_loops(source: EditableSource, calls: list[ProgramId]) -> list[TileLoop]:
    """Find ``for tile in range(pid, num_tiles, num_programs)`` and ``while tile < num_tiles`` loops.

    A while loop goes on in steps, or by the claim that it started with: ``tile = tl.atomic_add(counter, 1)``, or a
    helper of the file that does. A flat loop runs over the steps of all of a program's tiles: its tile id begins at
    the program id or one step before it. There are none where the kernel is not persistent.
    """
    claimed = list(_claimed_loops(source))
    for loop in claimed:
        _follow(source, loop, ())
    own = [one.call for one in calls if one.axis == 0]
    if claimed or not own or any(one.function != source.kernel for one in calls if one.axis == 0):
        return claimed
    pids = {name for one in own if (name := _assigned_name(source, one))}
    ids = {*pids, *map(ast.unparse, own)}  # texts that are a program's id
    loops = list(_plain_loops(source, ids, pids))
    for loop in loops:
        _follow(source, loop, ids)
    loops = loops or list(_flat_loops(source, ids, pids))
    if loops:
        _check_other_uses(source, loops, own, ids)
    return loops


def _plain_loops(source: EditableSource, ids: set[str], pids: set[str]) -> Iterator[TileLoop]:
    for loop in nodes(source.function):
        match loop:
            case ast.For(ast.Name(tile), ast.Call(called, [start, count, step])):
                is_range = ast.unparse(called).split(".")[-1] == "range"
                if is_range and ast.unparse(start) in ids and not isinstance(step, ast.Constant | ast.Starred):
                    yield TileLoop(loop, tile, _text(source, count), ast.unparse(step))
            case ast.While(ast.Compare(ast.Name(tile), [ast.Lt()], [count])) if tile in pids:
                if len(steps := _steps(loop, tile)) == 1:
                    yield TileLoop(loop, tile, _text(source, count), steps[0])


def _flat_loops(source: EditableSource, ids: set[str], pids: set[str]) -> Iterator[TileLoop]:
    """Loops inside which a program id, or ``tile = pid - NUM_SMS``, grows by the step, and whose tiles are counted."""
    starts = dict.fromkeys(pids, "")
    for node in nodes(source.function):
        match node:
            case ast.Assign([ast.Name(tile)], ast.BinOp(_, ast.Sub(), by) as value):
                if _is_step_before(value, ast.unparse(by), ids):
                    starts[tile] = ast.unparse(by)
    loops = [one for one in nodes(source.function) if isinstance(one, ast.For)]
    for tile, before in starts.items():
        inside = [(one, steps[0]) for one in loops if len(steps := _steps(one, tile)) == 1]
        inside = [(one, step) for one, step in inside if step == (before or step)]
        counts = {text for one in nodes(source.function) for _, step in inside if (text := _count(one, step, ids))}
        if len(counts) == 1:
            loop = TileLoop(inside[-1][0], tile, counts.pop(), inside[-1][1], flat=True)
            loop.counters.append(_counter(source, loop, tile, pids))
            yield loop


def _counts(source: EditableSource, loop: TileLoop, read: ast.AST, ids: Iterable[str]) -> bool:
    """Whether a program id is read to count the tiles of its program."""
    return any(_count(one, loop.step, ids) == loop.count for one in source.holders(read))


def _steps(loop: Loop, tile: str) -> list[str]:
    """What the statements of a loop add to a name."""
    return [text for node in nodes(*loop.body) if (text := _step(node, tile))]


def _count(node: ast.AST, step: str, ids: Iterable[str]) -> str | None:
    """Text of the tiles where a program counts its own: ``pid < tiles % step``, ``cdiv(tiles - pid, step)``."""
    match node:
        case ast.Compare(pid, [ast.Lt()], [ast.BinOp(count, ast.Mod(), by)]):
            pass
        case ast.Call(called, [ast.BinOp(count, ast.Sub(), pid), by]) if ast.unparse(called).endswith("cdiv"):
            pass
        case ast.BinOp(ast.BinOp(ast.BinOp(ast.BinOp(count, ast.Sub(), pid), ast.Add(), more), _, one), kind, by):
            if not isinstance(kind, ast.FloorDiv) or ast.unparse(one) != "1" or ast.unparse(more) != ast.unparse(by):
                return None
        case _:
            return None
    return ast.unparse(count) if ast.unparse(pid) in ids and ast.unparse(by) == step else None


def _claimed_loops(source: EditableSource) -> Iterator[TileLoop]:
    """Loops whose tile id is what the same claim gives before the loop and once inside."""
    claims = [(node, *found) for node in nodes(source.function) if (found := _claim(source, node))]
    for loop in nodes(source.function):
        match loop:
            case ast.While(ast.Compare(ast.Name(tile), [ast.Lt()], [count])):
                inside = set(nodes(*loop.body))
                own = [(node in inside, text) for node, name, text in claims if name == tile]
                if sorted(is_inside for is_inside, _ in own) == [False, True] and len({text for _, text in own}) == 1:
                    yield TileLoop(loop, tile, _text(source, count), own[0][1], claimed=True)


def _text(source: EditableSource, count: ast.expr) -> str:
    begin, end = source.bracketed(count)
    return source.text[begin:end]


def _claim(source: EditableSource, node: ast.AST) -> tuple[str, str] | None:
    """Name that gets the value of an atomic, or of a helper that has one, and the text of that value."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
        return None
    called = {ast.unparse(one.func) for one in nodes(node.value) if isinstance(one, ast.Call)}
    helpers = [source.functions[name] for name in called if name in source.functions]
    called |= {ast.unparse(one.func) for one in nodes(*helpers) if isinstance(one, ast.Call)}
    if not any(name.split(".")[-1] == "atomic_add" for name in called):
        return None
    return node.targets[0].id, ast.unparse(node.value)


def _follow(source: EditableSource, loop: TileLoop, ids: Iterable[str]) -> None:
    """Collect the uses of a loop's tile id, and of ids that run along with it."""
    advance = next((node for node in nodes(*loop.loop.body) if _goes_on(source, node, loop)), None)
    skipped = set(nodes(advance)) if advance else set()
    for node in nodes(*loop.loop.body):
        if not (isinstance(node, ast.Name) and node.id == loop.variable) or node in skipped:
            continue
        if not isinstance(node.ctx, ast.Load):
            raise source.refuse(f"{loop.variable} is the tile id of a persistent loop and is changed here", node)
        if isinstance(advance, ast.stmt) and node.lineno > advance.lineno:
            raise source.refuse(f"{loop.variable} is used here after it went on to the next tile", node)
        loop.reads.append(node)
    for node in nodes(source.function):
        match node:  # starts one step before the program id: ``tile_c = pid - NUM_SMS``
            case ast.Assign([ast.Name(name)], value) if ids and _is_step_before(value, loop.step, ids):
                loop.counters.append(_counter(source, loop, name, ()))


def _goes_on(source: EditableSource, node: ast.AST, loop: TileLoop) -> bool:
    """Whether a statement gives a loop its next tile."""
    if loop.claimed:
        return _claim(source, node) == (loop.variable, loop.step)
    return _step(node, loop.variable) == loop.step


def _is_step_before(node: ast.AST, step: str, ids: Iterable[str] = ()) -> bool:
    """Whether an expression is one of some texts, or with none given anything, less a step."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and ast.unparse(node.right) == step):
        return False
    return not ids or ast.unparse(node.left) in ids


def _counter(source: EditableSource, loop: TileLoop, name: str, pids: Collection[str]) -> Counter:
    found: list[ast.Name] = []
    advances = [one for one in nodes(*loop.loop.body) if isinstance(one, ast.stmt) and _step(one, name) == loop.step]
    inside = set(nodes(*advances))
    for node in nodes(source.function):
        if not (isinstance(node, ast.Name) and node.id == name) or node in inside:
            continue
        outer = source.parent(node)
        if isinstance(node.ctx, ast.Load):
            if not _counts(source, loop, node, [name]):
                found.append(node)
        elif raw := _same_tile(source, loop, node):
            loop.reads.remove(raw)
        elif not (isinstance(outer, ast.Assign) and (_is_step_before(outer.value, loop.step) or name in pids)):
            raise source.refuse(f"{name} runs along with the tile id and is changed here", node)
    if len(advances) == 1 and source.has_own_lines(advances[0]):
        blocks = [block for _, block in ast.iter_fields(source.parent(advances[0])) if isinstance(block, list)]
        beside = set(nodes(*next(block for block in blocks if advances[0] in block)))
        if all(read in beside and read.lineno > advances[0].lineno for read in found):
            return Counter(name, found, advances[0])
    return Counter(name, found, None)


def _same_tile(source: EditableSource, loop: TileLoop, node: ast.Name) -> ast.Name | None:
    """Read of the tile id itself that an id which runs along is given, alone or in a tuple."""
    match source.parent(node), source.parent(source.parent(node)):
        case ast.Assign(_, value), _:
            pass
        case ast.Tuple(names), ast.Assign(_, ast.Tuple(values)) if len(names) == len(values):
            value = values[names.index(node)]
        case _:
            return None
    return next((one for one in loop.reads if one is value), None)


def _check_other_uses(source: EditableSource, loops: list[TileLoop], calls: list[ast.Call], ids: set[str]) -> None:
    """Refuse a program id that is used for more than to start the loops."""
    if any(one.axis for one in source.program_ids()):
        raise source.refuse("a persistent loop over the ids of axis 0, and this one besides", calls[0])
    steps = {one.step for one in loops}
    starts = [one.loop.iter for one in loops if isinstance(one.loop, ast.For)]
    walks = [one.loop for one in loops if isinstance(one.loop, ast.While) or one.variable in ids]
    own = {*nodes(*starts, *walks, *_backwards(source, steps, ids))}
    for node in nodes(source.function):
        if not isinstance(node, ast.Name | ast.Call) or node in own or ast.unparse(node) not in ids:
            continue
        outer = source.parent(node)
        given = isinstance(outer, ast.Assign) and not isinstance(getattr(node, "ctx", None), ast.Load)
        allowed = (
            (given and any(one in calls for one in nodes(outer)))
            or (node in calls and _assigned_name(source, node) is not None)
            or any(_is_step_before(outer, step, ids) for step in steps)
            or any(one.flat and _counts(source, one, node, ids) for one in loops)
            or _only_leaves(source, outer)
        )
        if not allowed:
            raise source.refuse(_OTHER_USE, node)


def _backwards(source: EditableSource, steps: set[str], ids: set[str]) -> Iterator[ast.expr]:
    """What ``for tile in range(NUM_SMS - pid - 1, count, NUM_SMS)`` runs over.

    Its programs have other tiles than in a loop from the program id on, so nothing hangs on who has which tile in both.
    """
    for loop in nodes(source.function):
        match loop:
            case ast.For(iter=ast.Call(args=[start, _, step]) as tiles) if (by := ast.unparse(step)) in steps:
                if ast.unparse(start) in {text for one in ids for text in (f"{by} - {one} - 1", f"{by} - 1 - {one}")}:
                    yield tiles


_OTHER_USE = (
    "the program id of a persistent kernel is used here for more than to start its loop over tiles, so that its tile "
    "ids cannot be remapped; its program ids can"
)


def _only_leaves(source: EditableSource, comparison: ast.AST) -> bool:
    """Whether a comparison is that of ``if pid >= num_tiles: return``."""
    match comparison, source.parent(comparison):
        case ast.Compare(), ast.If(_, [ast.Return(None)], []):
            return True
    return False


def _step(node: ast.AST, name: str) -> str | None:
    """What a statement adds to a name, or None."""
    match node:
        case ast.AugAssign(ast.Name(to), ast.Add(), step) if to == name:
            return ast.unparse(step)
        case ast.Assign([ast.Name(to)], ast.BinOp(ast.Name(was), ast.Add(), step)) if to == was == name:
            return ast.unparse(step)
    return None


def _assigned_name(source: EditableSource, call: ast.Call) -> str | None:
    """Name that a call's value is given to, as in ``pid = tl.program_id(0)``, cast or not."""
    held: ast.AST = call
    outer = source.parent(call)
    if isinstance(outer, ast.Attribute) and outer.attr == "to":
        held = source.parent(outer)
        outer = source.parent(held)
    match outer if isinstance(held, ast.Call) else None:
        case ast.Assign([ast.Name(name)]):
            return name
    return None
