"""Where remapped ids go: into the kernel's own first lines, in place, at its top, or at the top of its tile loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst as cst

from swizzle_sim.rewrite.edits import Edits
from swizzle_sim.rewrite.helper import Helper
from swizzle_sim.rewrite.persistent import TileLoop
from swizzle_sim.rewrite.source import AxisCall, EditableSource, nodes

WIDTH = 120


def place_in_program(source: EditableSource, edits: Edits, calls: list[AxisCall], helper: Helper, rank: int) -> None:
    """Remap program ids.

    Where the kernel gives each id to a name once, as kernels do, those lines become one; a single use elsewhere is
    remapped in place; all else reads ids that are remapped at the top, and helpers are handed them.

    Parameters
    ----------
    source : EditableSource
    edits : Edits
        Output.
    calls : list of AxisCall
        Of the launch's axes.
    helper : Helper
    rank : int
        Axes of the launch.
    """
    ids = {axis: f"{helper.language}.program_id({axis})" for axis in range(rank)}
    results = helper.form.results
    free = not _stored(source, helper)
    lines = _given_names(source, calls, rank) if free else None
    if lines is not None:
        first = min(lines.values(), key=source.line)
        targets = [_target(lines[axis]) if axis in lines else source.fresh(name) for axis, name in enumerate(results)]
        ids.update({call.axis: source.code(call.node) for call in calls})
        statement = assignment(targets, helper, ids, 1, source)
        edits.replace[id(first)] = statement.with_changes(
            leading_lines=first.leading_lines, trailing_whitespace=first.trailing_whitespace
        )
        edits.remove |= {id(line) for line in lines.values() if line is not first}
        return
    if free and rank == 1 and len(calls) == 1 and calls[0].function == source.kernel and _fits(source, calls[0]):
        ids[0] = source.code(calls[0].node)
        text = helper.call(ids)
        grown = len(text) - len(ids[0])
        if grown + max(len(line) for line in source.code(_statement(source, calls[0].node)).splitlines()) < WIDTH:
            edits.replace[id(calls[0].node)] = cst.parse_expression(text, config=source.module.config_for_parsing)
            return
    names = {axis: source.fresh(f"swizzled_{name}") for axis, name in enumerate(results)}
    edits.at_top[id(source.function)] = [assignment(list(names.values()), helper, ids, 1, source)]
    for call in calls:
        edits.replace[id(call.node)] = cst.Name(names[call.axis], lpar=call.node.lpar, rpar=call.node.rpar)
    _hand_down(source, edits, calls, names)


def place_coordinates(
    source: EditableSource,
    edits: Edits,
    calls: list[AxisCall],
    helper: Helper,
    is_columns: Callable[[str], bool],
) -> None:
    """Give the kernel its tile's row and column where it would take them out of a remapped program id.

    Parameters
    ----------
    source : EditableSource
    edits : Edits
        Output.
    calls : list of AxisCall
        Of the launch's one axis.
    helper : Helper
        Answers ``pid_m, pid_n``.
    is_columns : callable
        Whether a text of the kernel is the number of tile columns.

    Raises
    ------
    RewriteError
        If the kernel does anything else with its program id.
    """
    lines = None if _stored(source, helper) else _given_names(source, calls, 1)
    if lines is None:
        raise source.refuse("the program id is not given to one name once, so no coordinates replace it", calls[0].node)
    line, names = lines[0], (source.fresh("swizzled_m"), source.fresh("swizzled_n"))
    for read in nodes(source.function.body):
        if not (isinstance(read, cst.Name) and read.value == _target(line)) or _is_target(source, read, line):
            continue
        parent = source.parent(read)
        kind = type(parent.operator) if isinstance(parent, cst.BinaryOperation) and parent.left is read else None
        if kind not in (cst.FloorDivide, cst.Modulo) or not is_columns(source.code(parent.right)):  # type: ignore[attr-defined]
            raise source.refuse(f"{read.value} is read here otherwise than as a row or a column of tiles", read)
        name = names[0] if kind is cst.FloorDivide else names[1]
        edits.replace[id(parent)] = cst.Name(name, lpar=parent.lpar, rpar=parent.rpar)  # type: ignore[attr-defined]
    statement = assignment(list(names), helper, {0: source.code(calls[0].node)}, 1, source)
    edits.replace[id(line)] = statement.with_changes(
        leading_lines=line.leading_lines, trailing_whitespace=line.trailing_whitespace
    )


def _is_target(source: EditableSource, name: cst.Name, line: cst.SimpleStatementLine) -> bool:
    """Whether a name is what a line assigns."""
    target = source.parent(name)
    return isinstance(target, cst.AssignTarget) and source.parent(source.parent(target)) is line


def place_in_loops(source: EditableSource, edits: Edits, loops: list[TileLoop], helper: Helper) -> None:
    """Remap tile ids, once at the top of each loop's body; ids that run along, where they are used."""
    stored = _stored(source, helper)
    if stored:
        raise source.refuse(f"the swizzle reads {stored[0].value}, which is changed here", stored[0])
    done: set[str] = set()
    for loop in loops:
        name = source.fresh(f"swizzled_{loop.variable}")
        level = 1 + sum(isinstance(node, cst.IndentedBlock) for node in _holders(source, loop.loop))
        edits.at_top[id(loop.loop)] = [assignment([name], helper, {0: loop.variable}, level, source)]
        for read in loop.reads:
            edits.replace[id(read)] = cst.Name(name, lpar=read.lpar, rpar=read.rpar)
        for counter in loop.counters:
            if counter.name in done:
                continue
            done.add(counter.name)
            replacement: cst.BaseExpression
            if counter.advance is not None:
                name = source.fresh(f"swizzled_{counter.name}")
                edits.after[id(counter.advance)] = [assignment([name], helper, {0: counter.name}, level, source)]
                replacement = cst.Name(name)
            else:
                replacement = cst.parse_expression(helper.call({0: counter.name}))
            edits.replace.update((id(read), replacement.deep_clone()) for read in counter.reads)


def assignment(
    targets: list[str], helper: Helper, ids: Mapping[int, str], level: int, source: EditableSource
) -> cst.BaseStatement:
    """Return ``a, b = helper(...)``, one argument a line where it would be too long."""
    text = f"{', '.join(targets)} = {helper.call(ids)}"
    indent = source.module.default_indent
    if len(text) + level * len(indent.expandtabs(4)) > WIDTH:
        inner = "".join(f"{indent}{word},\n" for word in helper.words(ids))
        text = f"{', '.join(targets)} = {helper.name}(\n{inner})"
    return cst.parse_statement(text, config=source.module.config_for_parsing)


def _given_names(source: EditableSource, calls: list[AxisCall], rank: int) -> dict[int, cst.SimpleStatementLine] | None:
    """Lines such as ``pid = tl.program_id(0)`` by axis, if those are all the calls and each axis has at most one."""
    lines: dict[int, cst.SimpleStatementLine] = {}
    for call in calls:
        statement = source.parent(call.node)
        line = source.parent(statement)
        plain = (
            call.function == source.kernel
            and call.axis not in lines
            and isinstance(statement, cst.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0].target, cst.Name)
            and isinstance(line, cst.SimpleStatementLine)
            and len(line.body) == 1
            and source.parent(line) is source.function.body
            and not call.node.lpar
        )
        if not plain:
            return None
        assert isinstance(line, cst.SimpleStatementLine)
        lines[call.axis] = line
    first = min(lines.values(), key=source.line)
    for line in lines.values():  # a comment on a line that would go is worth more than a short diff
        if line is not first and (line.trailing_whitespace.comment or any(one.comment for one in line.leading_lines)):
            return None
    names = [_target(line) for line in lines.values()]
    return lines if len(set(names)) == len(names) else None


def _target(line: cst.SimpleStatementLine) -> str:
    return cst.ensure_type(cst.ensure_type(line.body[0], cst.Assign).targets[0].target, cst.Name).value


def _stored(source: EditableSource, helper: Helper) -> list[cst.Name]:
    """Places where the kernel changes a parameter that the helper is given."""
    words = {
        node.value
        for text in helper.terms.values()
        if text
        for node in nodes(cst.parse_expression(text))
        if isinstance(node, cst.Name)
    }
    given = {param.name.value for param in source.function.params.params}
    return [
        node.target
        for node in nodes(source.function.body)
        if isinstance(node, cst.AssignTarget | cst.AugAssign)
        and isinstance(node.target, cst.Name)
        and node.target.value in words & given
    ]


def _fits(source: EditableSource, call: AxisCall) -> bool:
    """Whether a call is not inside a loop, where remapping it in place would be repeated."""
    return not any(isinstance(node, cst.For | cst.While) for node in _holders(source, call.node))


def _holders(source: EditableSource, node: cst.CSTNode) -> list[cst.CSTNode]:
    """Nodes around one, inside the function."""
    found = []
    node = source.parent(node)
    while not isinstance(node, cst.FunctionDef):
        found.append(node)
        node = source.parent(node)
    return found


def _statement(source: EditableSource, node: cst.CSTNode) -> cst.CSTNode:
    while not isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
        node = source.parent(node)
    return node.test if isinstance(node, cst.If | cst.While) else node


def _hand_down(source: EditableSource, edits: Edits, calls: list[AxisCall], names: Mapping[int, str]) -> None:
    """Give helpers that call ``tl.program_id`` the remapped ids, through every function on the way."""
    needs: dict[str, set[int]] = {}
    for call in calls:
        if call.function != source.kernel:
            needs.setdefault(call.function, set()).add(call.axis)
    sites: dict[str, list[tuple[cst.Call, str]]] = {}
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
        edits.first_parameters[id(source.functions[function])] = given
        for site, _ in sites[function]:
            edits.first_arguments[id(site)] = given
