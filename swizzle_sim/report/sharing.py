"""Which workgroups share which lines: counted from a trace, for one workgroup against all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.swizzle.grid import Grid
from xcd_model import Trace
from xcd_model.errors import SizeError

_TOUCHES_AT_ONCE = 1 << 22
_CELLS_AT_ONCE = 1 << 25


@dataclass(frozen=True, eq=False)
class Shared:
    """What one workgroup shares of one tensor.

    Parameters
    ----------
    tensor : str
    size_bytes : int
        Of the whole tensor.
    reads, writes : bool
        What the workgroup does with it.
    lines : int
        Distinct lines of it that the workgroup touches.
    share : (n_workgroups,) float32 array
        How many of those lines each workgroup touches, 0 to 1; 1 for the workgroup itself.
    """

    tensor: str
    size_bytes: int
    reads: bool
    writes: bool
    lines: int
    share: np.ndarray = field(repr=False)


def lines_of(trace: Trace, instructions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lines that instructions touch, one instruction after the other.

    Parameters
    ----------
    trace : Trace
    instructions : (n,) int array

    Returns
    -------
    line, count : (n_touches,), (n,) int64 arrays
        The lines, and how many of them each instruction touches.
    """
    template = trace.template[instructions]
    count = trace.entries_per_template[template]
    entry = np.repeat(trace.rel_start[template] - np.cumsum(count) + count, count) + np.arange(count.sum())
    return np.repeat(trace.base[instructions], count) + trace.rel[entry], count


def distinct_lines(trace: Trace) -> int:
    """Lines that the workgroups of a trace touch, each counted once."""
    # an instruction that only repeats another adds nothing
    by_line = np.lexsort((trace.template, trace.base))
    base, template = trace.base[by_line], trace.template[by_line]
    new = np.concatenate([[True], (base[1:] != base[:-1]) | (template[1:] != template[:-1])])
    owner = trace.tensor[trace.template]
    total = 0
    for number, tensor in enumerate(trace.tensors):
        mine = by_line[new & (owner[by_line] == number)]
        seen = np.zeros(tensor.n_lines, bool)
        for part in _parts(trace, mine):
            seen[lines_of(trace, part)[0] - tensor.base_line] = True
        total += int(np.count_nonzero(seen))
    return total


def sharing(trace: Trace, workgroup: int) -> tuple[Shared, ...]:
    """Compare what one workgroup touches with what all others do.

    Parameters
    ----------
    trace : Trace
    workgroup : int
        Tile of the trace, from 0.

    Returns
    -------
    shared : tuple of Shared
        One for each tensor that the workgroup touches, in the order of the trace's tensors.

    Raises
    ------
    SizeError
        If there is no such workgroup.
    """
    if not 0 <= workgroup < trace.n_workgroups:
        raise SizeError(f"workgroup = {workgroup}: the kernel has workgroups 0 to {trace.n_workgroups - 1}")
    own = np.arange(trace.start[workgroup], trace.start[workgroup + 1])
    owner = trace.tensor[trace.template]
    return tuple(_share_of(trace, tensor, own[owner[own] == tensor], owner) for tensor in np.unique(owner[own]))


def _share_of(trace: Trace, tensor: int, own: np.ndarray, owner: np.ndarray) -> Shared:
    lines = np.unique(lines_of(trace, own)[0])
    rank = np.full(int(lines[-1] - lines[0]) + 1, -1, np.int32)
    rank[lines - lines[0]] = np.arange(lines.size)
    lowest = np.minimum.reduceat(trace.rel, trace.rel_start[:-1])[trace.template] + trace.base
    highest = np.maximum.reduceat(trace.rel, trace.rel_start[:-1])[trace.template] + trace.base
    near = np.flatnonzero((owner == tensor) & (lowest <= lines[-1]) & (highest >= lines[0]))
    workgroup = np.searchsorted(trace.start, near, side="right") - 1
    share = np.zeros(trace.n_workgroups, np.float32)
    step = max(1, _CELLS_AT_ONCE // lines.size)
    for first in range(0, trace.n_workgroups, step):
        begin, end = np.searchsorted(workgroup, [first, first + step])
        if begin == end:
            continue
        seen = np.zeros((min(step, trace.n_workgroups - first), lines.size), bool)
        for part, who in zip(
            _parts(trace, near[begin:end]), _parts(trace, near[begin:end], workgroup[begin:end]), strict=True
        ):
            line, count = lines_of(trace, part)
            inside = (line >= lines[0]) & (line <= lines[-1])
            found = rank[line[inside] - lines[0]]
            seen[np.repeat(who - first, count)[inside][found >= 0], found[found >= 0]] = True
        share[first : first + len(seen)] = np.count_nonzero(seen, axis=1) / lines.size
    writes = trace.is_write[trace.template[own]]
    about = trace.tensors[tensor]
    return Shared(about.name, about.size_bytes, bool((~writes).any()), bool(writes.any()), lines.size, share)


def _parts(trace: Trace, instructions: np.ndarray, values: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """Cut instructions, or values beside them, where their touches grow too many to hold at once."""
    if not instructions.size:
        return
    touches = np.cumsum(trace.entries_per_template[trace.template[instructions]])
    cuts = np.flatnonzero(np.diff(touches // _TOUCHES_AT_ONCE)) + 1
    yield from np.split(instructions if values is None else values, cuts)


def axes_of(grid: Grid) -> dict[str, tuple[int, int]]:
    """Stride and extent of each tile axis of a grid, by name: tile ``= sum(coordinate * stride)``."""
    if grid.tiles:
        return {"pid_m": (grid.tiles[1], grid.tiles[0]), "pid_n": (1, grid.tiles[1])}
    if len(grid.launch) == 1:
        return {"pid": (1, grid.launch[0])}
    names = ("pid_m", "pid_n") if len(grid.launch) == 2 else ("pid_x", "pid_y", "pid_z")
    strides = np.cumprod((1, *grid.launch[:-1])).tolist()
    return dict(zip(names, zip(strides, grid.launch, strict=True), strict=True))


def middle_of(grid: Grid) -> int:
    """Tile in the middle of a grid: the one that has neighbours on all sides, if any has."""
    return sum(extent // 2 * stride for stride, extent in axes_of(grid).values())
