"""Persistent kernels: each program walks over tiles, so it is the tile's id that a swizzle remaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from swizzle_sim.rewrite.source import AxisCall, EditableSource, nodes

Loop = cst.For | cst.While


@dataclass
class Counter:
    """A second id that runs along with a loop's tile id, as an epilogue that is one tile behind has it.

    Parameters
    ----------
    name : str
    reads : list of Name
        Where it is used.
    advance : statement or None
        Where it goes on to the next tile, if all uses come after that in the same block.
    """

    name: str
    reads: list[cst.Name]
    advance: cst.SimpleStatementLine | None


@dataclass
class TileLoop:
    """One loop over tiles.

    Parameters
    ----------
    loop : For or While
    variable : str
        Name of the tile id.
    count, step : str
        Text of the number of tiles, and of what a program adds to come to its next one, or of the claim that gives it.
    reads : list of Name
        Where the tile id is used: these are to be remapped.
    counters : list of Counter
        Ids that run along.
    claimed : bool
        Whether an atomic gives the next tile.
    """

    loop: Loop
    variable: str
    count: str
    step: str
    reads: list[cst.Name] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    claimed: bool = False


def tile_loops(source: EditableSource, calls: list[AxisCall]) -> list[TileLoop]:
    """Find ``for tile in range(pid, num_tiles, num_programs)`` and ``while tile < num_tiles`` loops.

    A while loop goes on in steps, or by the claim that it started with: ``tile = tl.atomic_add(counter, 1)``, or a
    helper of the file that does.

    Returns
    -------
    loops : list of TileLoop
        Empty where the kernel is not persistent.

    Raises
    ------
    RewriteError
        If there is such a loop, and the program id is used besides it in a way that is not understood.
    """
    claimed = list(_claimed_loops(source))
    for loop in claimed:
        _follow(source, loop, {})
    own = [call for call in calls if call.axis == 0]
    if claimed or not own or any(call.function != source.kernel for call in own):
        return claimed
    pids = {name: call for call in own if (name := _assigned_name(source, call.node))}
    loops = [*_for_loops(source, own, pids), *_while_loops(source, pids)]
    for loop in loops:
        _follow(source, loop, pids)
    if loops:
        _check_other_uses(source, loops, own, pids)
    return loops


def _for_loops(source: EditableSource, calls: list[AxisCall], pids: dict[str, AxisCall]) -> Iterator[TileLoop]:
    starts = {id(call.node) for call in calls}
    for loop in nodes(source.function):
        if not (isinstance(loop, cst.For) and isinstance(loop.target, cst.Name) and isinstance(loop.iter, cst.Call)):
            continue
        given = [arg.value for arg in loop.iter.args if arg.keyword is None and not arg.star]
        if source.code(loop.iter.func).split(".")[-1] != "range" or len(given) != 3:
            continue
        from_pid = id(given[0]) in starts or (isinstance(given[0], cst.Name) and given[0].value in pids)
        if from_pid and not isinstance(given[2], cst.Integer):
            yield TileLoop(loop, loop.target.value, source.code(given[1]), source.code(given[2]))


def _while_loops(source: EditableSource, pids: dict[str, AxisCall]) -> Iterator[TileLoop]:
    for loop in nodes(source.function):
        if not (isinstance(loop, cst.While) and isinstance(loop.test, cst.Comparison)):
            continue
        left, rest = loop.test.left, loop.test.comparisons
        if not (isinstance(left, cst.Name) and left.value in pids and len(rest) == 1):
            continue
        steps = [step for node in nodes(loop.body) if (step := _step(source, node, left.value))]
        if isinstance(rest[0].operator, cst.LessThan) and len(steps) == 1:
            yield TileLoop(loop, left.value, source.code(rest[0].comparator), steps[0])


def _claimed_loops(source: EditableSource) -> Iterator[TileLoop]:
    """Loops whose tile id is what the same claim gives before the loop and once inside."""
    claims = [(node, *found) for node in nodes(source.function) if (found := _claim(source, node))]
    for loop in nodes(source.function):
        if not (isinstance(loop, cst.While) and isinstance(loop.test, cst.Comparison)):
            continue
        left, rest = loop.test.left, loop.test.comparisons
        if not (isinstance(left, cst.Name) and len(rest) == 1 and isinstance(rest[0].operator, cst.LessThan)):
            continue
        inside = {id(node) for node in nodes(loop.body)}
        own = [(id(node) in inside, text) for node, name, text in claims if name == left.value]
        if sorted(is_inside for is_inside, _ in own) == [False, True] and len({text for _, text in own}) == 1:
            yield TileLoop(loop, left.value, source.code(rest[0].comparator), own[0][1], claimed=True)


def _claim(source: EditableSource, node: cst.CSTNode) -> tuple[str, str] | None:
    """Name that gets the value of an atomic, or of a helper that has one, and the text of that value."""
    if not (isinstance(node, cst.Assign) and len(node.targets) == 1 and isinstance(node.targets[0].target, cst.Name)):
        return None
    called = {source.code(one.func) for one in nodes(node.value) if isinstance(one, cst.Call)}
    helpers = [source.functions[name] for name in called if name in source.functions]
    inner = {source.code(one.func) for helper in helpers for one in nodes(helper) if isinstance(one, cst.Call)}
    if not any(name.split(".")[-1] == "atomic_add" for name in called | inner):
        return None
    return node.targets[0].target.value, source.code(node.value)


def _follow(source: EditableSource, loop: TileLoop, pids: dict[str, AxisCall]) -> None:
    """Collect the uses of a loop's tile id, and of ids that run along with it."""
    advance = next((node for node in nodes(loop.loop.body) if _goes_on(source, node, loop)), None)
    skipped = {id(node) for node in nodes(advance)} if advance else set()
    for node in nodes(loop.loop.body):
        if not (isinstance(node, cst.Name) and node.value == loop.variable) or id(node) in skipped:
            continue
        if _is_field(source, node):
            continue
        if _is_target(source, node):
            raise source.refuse(f"{loop.variable} is the tile id of a persistent loop and is changed here", node)
        if advance is not None and source.line(node) > source.line(advance):
            raise source.refuse(f"{loop.variable} is used here after it went on to the next tile", node)
        loop.reads.append(node)
    for name in _second_ids(source, loop, pids):
        loop.counters.append(_counter(source, loop, name))


def _goes_on(source: EditableSource, node: cst.CSTNode, loop: TileLoop) -> bool:
    """Whether a statement gives a loop its next tile."""
    if loop.claimed:
        return _claim(source, node) == (loop.variable, loop.step)
    return _step(source, node, loop.variable) == loop.step


def _second_ids(source: EditableSource, loop: TileLoop, pids: dict[str, AxisCall]) -> list[str]:
    """Names that start one step before the program id: ``tile_c = pid - NUM_SMS``."""
    starts = {f"{pid} - {loop.step}" for pid in pids}
    return [
        node.targets[0].target.value
        for node in nodes(source.function)
        if isinstance(node, cst.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0].target, cst.Name)
        and source.code(node.value) in starts
    ]


def _counter(source: EditableSource, loop: TileLoop, name: str) -> Counter:
    found: list[cst.Name] = []
    advances = [node for node in nodes(loop.loop.body) if _step(source, node, name) == loop.step]
    inside = {id(node) for one in advances for node in nodes(one)}
    for node in nodes(source.function):
        if not (isinstance(node, cst.Name) and node.value == name) or id(node) in inside or _is_field(source, node):
            continue
        if not _is_target(source, node):
            found.append(node)
        elif source.code(source.parent(source.parent(node))).endswith(f"- {loop.step}"):
            continue
        else:
            raise source.refuse(f"{name} runs along with the tile id and is changed here", node)
    line = source.parent(advances[0]) if len(advances) == 1 else None
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        block = source.parent(line)
        inside_block = {id(node) for node in nodes(block)}
        if all(id(read) in inside_block and source.line(read) > source.line(line) for read in found):
            return Counter(name, found, line)
    return Counter(name, found, None)


def _check_other_uses(
    source: EditableSource, loops: list[TileLoop], calls: list[AxisCall], pids: dict[str, AxisCall]
) -> None:
    """Refuse a program id that is used for more than to start the loops."""
    if any(call.axis for call in source.program_ids()):
        raise source.refuse("a persistent loop over the ids of axis 0, and this one besides", calls[0].node)
    starts = {id(node) for one in loops if isinstance(one.loop, cst.For) for node in nodes(one.loop.iter)}
    own = {id(node) for one in loops if isinstance(one.loop, cst.While) for node in nodes(one.loop)}
    seconds = {f"{pid} - {one.step}" for pid in pids for one in loops}
    for call in calls:
        if id(call.node) not in starts and _assigned_name(source, call.node) is None:
            raise source.refuse(_OTHER_USE, call.node)
    for node in nodes(source.function):
        if not (isinstance(node, cst.Name) and node.value in pids) or id(node) in starts | own:
            continue
        parent = source.parent(node)
        allowed = (
            _is_field(source, node)
            or (_is_target(source, node) and _is_start(source, node, pids))
            or source.code(parent) in seconds
            or _only_leaves(source, parent)
        )
        if not allowed:
            raise source.refuse(_OTHER_USE, node)


_OTHER_USE = (
    "the program id of a persistent kernel is used here for more than to start its loop over tiles, so that its tile "
    "ids cannot be remapped; its program ids can"
)


def _only_leaves(source: EditableSource, comparison: cst.CSTNode) -> bool:
    """Whether a comparison is that of ``if pid >= num_tiles: return``."""
    holder = source.parent(comparison)
    if not (isinstance(comparison, cst.Comparison) and isinstance(holder, cst.If) and holder.orelse is None):
        return False
    return source.code(holder.body).strip() == "return"


def _step(source: EditableSource, node: cst.CSTNode, name: str) -> str | None:
    """What a statement adds to a name, or None."""
    if isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.AddAssign):
        return source.code(node.value) if source.code(node.target) == name else None
    if isinstance(node, cst.Assign) and len(node.targets) == 1 and isinstance(node.value, cst.BinaryOperation):
        target, sum_ = node.targets[0].target, node.value
        if isinstance(sum_.operator, cst.Add) and source.code(target) == source.code(sum_.left) == name:
            return source.code(sum_.right)
    return None


def _assigned_name(source: EditableSource, call: cst.Call) -> str | None:
    """Name that a call's value is given to, as in ``pid = tl.program_id(0)``."""
    statement = source.parent(call)
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        return target.value if isinstance(target, cst.Name) else None
    return None


def _is_start(source: EditableSource, node: cst.Name, pids: dict[str, AxisCall]) -> bool:
    holder = source.parent(source.parent(node))
    return isinstance(holder, cst.Assign) and holder.value is pids[node.value].node


def _is_target(source: EditableSource, node: cst.Name) -> bool:
    """Whether a name is stored to where it stands."""
    inner: cst.CSTNode = node
    outer = source.parent(node)
    while isinstance(outer, cst.Tuple | cst.List | cst.Element | cst.StarredElement):
        inner, outer = outer, source.parent(outer)
    return isinstance(outer, cst.AssignTarget) or (
        isinstance(outer, cst.AugAssign | cst.For | cst.AnnAssign) and outer.target is inner
    )


def _is_field(source: EditableSource, node: cst.Name) -> bool:
    """Whether a name is an attribute's or a keyword's, and so no variable."""
    parent = source.parent(node)
    return (isinstance(parent, cst.Attribute) and parent.attr is node) or (
        isinstance(parent, cst.Arg) and parent.keyword is node
    )
