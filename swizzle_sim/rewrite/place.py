"""Where remapped ids go: into the kernel's own first lines, in place, at its top, or at the top of its tile loop."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from swizzle_sim.rewrite.helper import Helper
from swizzle_sim.rewrite.persistent import TileLoop
from swizzle_sim.rewrite.source import EditableSource, nodes
from swizzle_sim.triton_source.source_file import ProgramId, parameters_of

WIDTH = 120


def place_in_program(source: EditableSource, calls: list[ProgramId], helper: Helper, rank: int) -> None:
    """Remap program ids.

    Where the kernel gives each id to a name once, as kernels do, those lines become one; a single use elsewhere is
    remapped in place; all else reads ids that are remapped at the top, and helpers are handed them.
    """
    ids = {axis: f"{helper.language}.program_id({axis})" for axis in range(rank)}
    results = helper.form.results
    free = next(_stored(source, helper), None) is None
    lines = _given_names(source, calls, rank) if free else None
    if lines is not None:
        first = min(lines.values(), key=lambda line: line.lineno)
        targets = [_target(lines[axis]) if axis in lines else source.fresh(name) for axis, name in enumerate(results)]
        ids.update({one.axis: source.code(one.call) for one in calls if one.axis is not None})
        source.replace(first, assignment(targets, helper, ids, source, source.indent_of(first)))
        for line in lines.values():
            if line is not first:
                source.remove(line)
        return
    if free and rank == 1 and len(calls) == 1 and calls[0].function == source.kernel and _fits(source, calls[0]):
        ids[0] = source.code(calls[0].call)
        text = helper.call(ids)
        if len(text) - len(ids[0]) + len(source.line(calls[0].line).strip()) < WIDTH:
            source.replace(calls[0].call, text)
            return
    names = {axis: source.fresh(f"swizzled_{name}") for axis, name in enumerate(results)}
    source.at_top(source.function, partial(assignment, list(names.values()), helper, ids, source))
    for one in calls:
        if one.axis is not None:
            source.replace(one.call, names[one.axis])
    _hand_down(source, calls, names)


def place_coordinates(
    source: EditableSource, calls: list[ProgramId], helper: Helper, is_columns: Callable[[str], bool]
) -> None:
    """Give the kernel its tile's row and column where it would take them out of a remapped program id."""
    free = next(_stored(source, helper), None) is None
    lines = _given_names(source, calls, 1) if free else None
    if lines is None:
        raise source.refuse("the program id is not given to one name once, so no coordinates replace it", calls[0].call)
    line, names = lines[0], (source.fresh("swizzled_m"), source.fresh("swizzled_n"))
    for read in nodes(*source.function.body):
        if not (isinstance(read, ast.Name) and read.id == _target(line)) or source.parent(read) is line:
            continue
        match source.parent(read):
            case ast.BinOp(left, ast.FloorDiv() | ast.Mod() as kind, right) as whole if left is read and is_columns(
                ast.unparse(right)
            ):
                source.replace(whole, names[isinstance(kind, ast.Mod)])
            case _:
                raise source.refuse(f"{read.id} is read here otherwise than as a row or a column of tiles", read)
    text = assignment(list(names), helper, {0: source.code(calls[0].call)}, source, source.indent_of(line))
    source.replace(line, text)


def place_in_loops(source: EditableSource, loops: list[TileLoop], helper: Helper) -> None:
    """Remap tile ids, once at the top of each loop's body; ids that run along, where they are used."""
    for stored in _stored(source, helper):
        raise source.refuse(f"the swizzle reads {stored.id}, which is changed here", stored)
    done: set[str] = set()
    for loop in loops:
        if not loop.flat:
            name = source.fresh(f"swizzled_{loop.variable}")
            source.at_top(loop.loop, partial(assignment, [name], helper, {0: loop.variable}, source))
            for read in loop.reads:
                source.replace(read, name)
        for counter in loop.counters:
            if counter.name in done:
                continue
            done.add(counter.name)
            text = helper.call({0: counter.name})
            if counter.advance is not None:
                text = source.fresh(f"swizzled_{counter.name}")
                source.after(counter.advance, partial(assignment, [text], helper, {0: counter.name}, source))
            for read in counter.reads:
                source.replace(read, text)


def assignment(targets: list[str], helper: Helper, ids: Mapping[int, str], source: EditableSource, indent: str) -> str:
    """Return ``a, b = helper(...)`` as it stands behind an indentation, one argument a line where it is long."""
    text = f"{', '.join(targets)} = {helper.call(ids)}"
    if len(text) + len(indent.expandtabs(4)) <= WIDTH:
        return text
    inner = "".join(f"{indent}{source.indent}{word},{source.newline}" for word in helper.words(ids))
    return f"{', '.join(targets)} = {helper.name}({source.newline}{inner}{indent})"


def _given_names(source: EditableSource, calls: list[ProgramId], rank: int) -> dict[int, ast.Assign] | None:
    """Lines such as ``pid = tl.program_id(0)`` by axis, if those are all the calls and each axis has at most one."""
    lines: dict[int, ast.Assign] = {}
    for one in calls:
        line = source.parent(one.call)
        plain = (
            isinstance(line, ast.Assign)
            and one.axis not in lines
            and [type(target) for target in line.targets] == [ast.Name]
            and line in source.function.body
            and source.has_own_lines(line)
        )
        if not plain:
            return None
        assert isinstance(line, ast.Assign) and one.axis is not None
        lines[one.axis] = line
    first = min(lines.values(), key=lambda line: line.lineno)
    for line in lines.values():  # a comment on a line that would go is worth more than a short diff
        if line is not first and source.is_commented(line):
            return None
    names = [_target(line) for line in lines.values()]
    return lines if len(set(names)) == len(names) else None


def _target(line: ast.Assign) -> str:
    return ast.unparse(line.targets[0])


def _stored(source: EditableSource, helper: Helper) -> Iterator[ast.Name]:
    """Places where the kernel changes a parameter that the helper is given."""
    texts = [ast.parse(text, mode="eval") for text in helper.terms.values() if text]
    words = {node.id for node in nodes(*texts) if isinstance(node, ast.Name)}
    words &= {one.arg for one in parameters_of(source.function)}
    for node in nodes(*source.function.body):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in words:
            yield node


def _fits(source: EditableSource, one: ProgramId) -> bool:
    """Whether a call is not inside a loop, where remapping it in place would be repeated."""
    return not any(isinstance(node, ast.For | ast.While) for node in source.holders(one.call))


def _hand_down(source: EditableSource, calls: list[ProgramId], names: Mapping[int, str]) -> None:
    """Give helpers that call ``tl.program_id`` the remapped ids, through every function on the way."""
    needs: dict[str, set[int]] = {}
    for call in calls:
        if call.function != source.kernel and call.axis is not None:
            needs.setdefault(call.function, set()).add(call.axis)
    sites: dict[str, list[tuple[ast.Call, str]]] = {}
    todo = list(needs)
    while todo:  # a caller of a helper that needs an id needs it too
        function = todo.pop()
        sites[function] = list(source.calls_of(function))
        for _, caller in sites[function]:
            if caller != source.kernel and not needs[function] <= needs.get(caller, set()):
                needs.setdefault(caller, set()).update(needs[function])
                todo.append(caller)
    for function, axes in needs.items():
        given = [names[axis] for axis in sorted(axes)]
        source.put_first(source.functions[function], given)
        for site, _ in sites[function]:
            source.put_first(site, given)
