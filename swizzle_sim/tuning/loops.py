"""`emit_knobs`: the direction of a kernel's main loop and streamed loads, written into its Triton source.

    for start in range(0, K, BLOCK_K):        for start_forward in range(0, K, BLOCK_K):
        ...                                       start = tl.where(walks_back, last - start_forward, start_forward)
        tl.load(b_ptr + ...)                      tl.load(b_ptr + ..., cache_modifier=".cs")

A loop is turned by its variable alone, so it has to be a plain ``range``, and nothing that a load or a store addresses
may be carried from trip to trip, as a pointer that is moved on. A nest of such loops is turned in each of its ranges.
Sums are then added up in another order: outputs agree to rounding, not bit for bit.

The direction is that of the hardware's program id, so emit it last, after any remapping of that id.

Source: Triton compiles ``cache_modifier=".cs"`` to a load with ``nt`` for gfx942 and gfx950, and
``eviction_policy="evict_first"`` to one with an L2 evict-first policy for sm_90, and to nothing on AMD (Triton 3.9).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from swizzle_sim.pricing.knobs import Knobs, periods
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Launch
from xcd_model import Gpu
from xcd_model.errors import RewriteError
from xcd_model.trace.trace import Trace

FLAG, FORWARD = "walks_back", "_forward"
STREAMING = {"gfx": 'cache_modifier=".cs"', "sm_": 'eviction_policy="evict_first"'}
_TAKEN = ("cache_modifier", "eviction_policy")
_AXES = (
    "tl.program_id(0)",
    "tl.num_programs(0) * tl.program_id(1)",
    "tl.num_programs(0) * tl.num_programs(1) * tl.program_id(2)",
)


def loops_of(kernel: Kernel, gpu: Gpu, workgroups_per_cu: int) -> tuple[tuple[int, ...], list[str], dict[str, str]]:
    """Periods and tensors to stream that a kernel's source takes, none of either first, and why it takes no others."""
    refused: dict[str, str] = {}
    if kernel.launch is None:
        return (0,), [""], {"loop": (why := f"{kernel.name} has no Triton source to change"), "hints": why}
    trace = kernel.build_trace(gpu.l2.line_bytes)
    given: dict[str, Any] = {
        "function": kernel.launch.function,
        "arguments": argument_names(trace, kernel.launch),
        "axes": len(kernel.launch.grid),
        "arch": gpu.arch,
        "path": kernel.launch.path,
    }

    def can(knobs: Knobs, name: str) -> bool:
        try:
            emit_knobs(kernel.triton_source, knobs=knobs, **given)
        except RewriteError as error:
            refused[name] = str(error)
            return False
        return True

    walks: tuple[int, ...] = ()
    if kernel.programs is not None:
        refused["loop"] = f"{kernel.name} is persistent: its programs walk several loops"
    elif trace.trip.size == 0:
        refused["loop"] = "the trace does not say which instructions are trips of a loop"
    elif can(Knobs(period=1), "loop"):
        walks = periods(gpu, workgroups_per_cu, kernel.grid.num_pids)
    read = {int(tensor) for tensor in trace.tensor[~trace.is_write]}
    streams = [name for i, name in enumerate(t.name for t in trace.tensors) if i in read]
    return (0, *walks), ["", *(name for name in streams if can(Knobs(streamed=(name,)), f"hints {name}"))], refused


def argument_names(trace: Trace, launch: Launch) -> dict[str, str]:
    """Parameter of the kernel by the name of each tensor of its trace: tensors stand in the order of the arguments."""
    return dict(zip((tensor.name for tensor in trace.tensors), launch.arrays, strict=False))


def emit_knobs(
    text: str, function: str, knobs: Knobs, *, arguments: Mapping[str, str], axes: int, arch: str, path: Path
) -> str:
    """Text of a kernel's file with the knobs set."""
    tree = ast.parse(text)
    kernel = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function), None)
    if kernel is None:
        raise RewriteError(f"has no function {function}", path=path)
    edits: list[tuple[int, int, str]] = []  # line, column, what to insert or, with a column of -1, the line anew
    lines = text.splitlines(keepends=True)
    for name in knobs.streamed:
        edits += _streamed(kernel, arguments[name], STREAMING[arch[:3]], path)
    for row, column, words in sorted(edits, reverse=True):
        lines[row] = lines[row][:column] + words + lines[row][column:]
    if knobs.period:
        nest = _nest(kernel, path)
        _check_carried(nest, path)
        lines = _turned(lines, nest, knobs.period, axes)
    return "".join(lines)


def _streamed(kernel: ast.FunctionDef, pointer: str, words: str, path: Path) -> list[tuple[int, int, str]]:
    """Insertions that make the loads of one pointer stream."""
    roots, found = _roots(kernel), []
    for node in ast.walk(kernel):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.load" and node.args):
            continue
        named = {root for one in _names(node.args[0]) for root in roots.get(one, {one})}
        if pointer not in named:
            continue
        if any(given.arg in _TAKEN for given in node.keywords):
            raise RewriteError(f"line {node.lineno}: the load of {pointer} has a cache policy of its own", path=path)
        end = node.keywords[-1].value if node.keywords else node.args[-1]
        found.append(((end.end_lineno or 1) - 1, end.end_col_offset or 0, f", {words}"))
    if not found:
        raise RewriteError(f"{kernel.name} has no tl.load of {pointer} to stream", path=path)
    return found


def _roots(kernel: ast.FunctionDef) -> dict[str, set[str]]:
    """Parameters that each name is computed from, through plain assignments."""
    roots = {one.arg: {one.arg} for one in [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]}
    changed = True
    while changed:
        changed = False
        for name, value in _assigned(kernel):
            if any(_is_load(one) for one in ast.walk(value)):
                continue  # data, where it points is another matter
            made = {root for one in _names(value) for root in roots.get(one, ())} | roots.get(name, set())
            changed |= made != roots.get(name, set())
            roots[name] = made
    return roots


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names assigned in a piece of code, with what each gets; a name that is added to gets itself as well."""
    for one in ast.walk(node):
        if isinstance(one, ast.Assign):
            for target in one.targets:
                yield from ((name, one.value) for name in _names(target))
        elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
            yield one.target.id, ast.BinOp(ast.Name(one.target.id, ast.Load()), one.op, one.value)
        elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.value:
            yield one.target.id, one.value


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _nest(kernel: ast.FunctionDef, path: Path) -> list[ast.For]:
    """The loops of a kernel, outermost first: one, or a nest of plain ranges."""
    loops = [node for node in ast.walk(kernel) if isinstance(node, ast.For | ast.While)]
    if not loops:
        raise RewriteError(f"{kernel.name} has no loop to walk backwards", path=path)
    nest: list[ast.For] = []
    for loop in sorted(loops, key=lambda one: one.lineno):
        where = f"line {loop.lineno}: the loop"
        if not (isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and _bounds(loop)):
            raise RewriteError(f"{where} is no plain range, so its direction cannot be changed", path=path)
        if nest and loop not in ast.walk(nest[-1]):
            raise RewriteError(
                f"{where} stands beside the one of line {nest[-1].lineno}: one is to be turned", path=path
            )
        nest.append(loop)
    return nest


def _bounds(loop: ast.For) -> list[str] | None:
    """Texts of start, end and step of a loop over ``range`` or ``tl.range``; None of any other."""
    call = loop.iter
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in ("range", "tl.range") or not call.args:
        return None
    given = [ast.unparse(one) for one in call.args]
    return ["0", given[0], "1"] if len(given) == 1 else [*given, "1"][:3]


def _check_carried(nest: Sequence[ast.For], path: Path) -> None:
    """Refuse a loop that carries what a load or a store addresses from trip to trip."""
    body = list(_assigned(nest[0]))
    carried = {name for name, value in body if name in _names(value)}
    moved = set(carried)
    while more := {name for name, value in body if name not in moved and _names(value) & moved}:
        moved |= more
    for node in ast.walk(nest[0]):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("tl.load", "tl.store", "tl.advance"):
            masks = [one.value for one in node.keywords if one.arg == "mask"]
            # The value stored is carried as a rule; where it goes must not be.
            at = _names(node.args[0]).union(*(_names(mask) for mask in masks)) & _addressing(body, carried, moved)
            if at:
                raise RewriteError(
                    f"line {node.lineno}: {', '.join(sorted(at))} is carried from trip to trip, so the loop's "
                    "direction cannot be changed by its variable",
                    path=path,
                )


def _addressing(body: Sequence[tuple[str, ast.expr]], carried: set[str], moved: set[str]) -> set[str]:
    """Names that depend on a carried one other than through a value that was loaded anew in the trip."""
    loaded = {name for name, value in body if any(_is_load(one) for one in ast.walk(value))}
    return (moved - loaded) | (carried & moved)


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.load"


def _turned(lines: list[str], nest: Sequence[ast.For], period: int, axes: int) -> list[str]:
    """The lines with each loop of the nest walked backwards where the flag is set."""
    out = list(lines)
    for loop in reversed(nest):
        name, row = ast.unparse(loop.target), loop.lineno - 1
        start, end, step = _bounds(loop) or ("0", "0", "1")
        indent = " " * loop.body[0].col_offset
        out[row] = out[row].replace(f"for {name} in", f"for {name}{FORWARD} in", 1)
        first = loop.body[0].lineno - 1
        first_and_last = f"(tl.cdiv({end}, {step}) - 1) * ({step})"
        if start != "0":
            first_and_last = f"2 * ({start}) + (tl.cdiv(({end}) - ({start}), {step}) - 1) * ({step})"
        out.insert(
            first,
            f"{indent}{name} = tl.where({FLAG}, {first_and_last} - {name}{FORWARD}, {name}{FORWARD})\n",
        )
    outer = nest[0]
    launched = " + ".join(_AXES[:axes])
    flag = f"{FLAG} = ({launched}) // {period} % 2 == 1"
    out.insert(outer.lineno - 1, f"{' ' * outer.col_offset}{flag}  # every other {period} programs\n")
    return out
