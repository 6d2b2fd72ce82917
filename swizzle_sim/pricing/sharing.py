"""Which workgroups share which cache lines, counted from a trace and put into words: the memory analysis of a kernel.

`sharing` compares one workgroup with all others; `sharing_words` says it in sentences, for `swizzle-sim show` and for
the prompt of a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.language.grid import Grid
from xcd_model import Gpu, Trace, xcd_of
from xcd_model.compiled.numba_setup import uncounted
from xcd_model.errors import SizeError

_TOUCHES_AT_ONCE = 1 << 22
_CELLS_AT_ONCE = 1 << 25
LISTED = 8  # sharers named one by one
NEAR = 4  # tiles away that still count as a neighbour


@dataclass(frozen=True, eq=False)
class Shared:
    """What one workgroup shares of one tensor."""

    tensor: str
    size_bytes: int  # of the whole tensor
    reads: bool  # what the workgroup does with it
    writes: bool
    lines: int  # distinct lines of it that the workgroup touches
    # (n_workgroups,) float32 array: how many of those lines each workgroup touches, 0 to 1; 1 for the workgroup itself
    share: np.ndarray = field(repr=False)


def lines_of(trace: Trace, instructions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lines that instructions touch, one instruction after the other.

    Parameters
    ----------
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


@uncounted()
def _count_shared(start, base, template, rel_start, rel, mine, toucher):
    """Lines of a tensor that more than one workgroup touches, and all that one does.

    base : (n_instructions,) int64, first line, from the tensor's first one;  mine : (n_templates,) bool, the tensor's
    toucher : (n_lines,) int32, zeros: 1 + the workgroup that touches a line, -1 where there are more
    """
    shared = touched = np.int64(0)
    for workgroup in range(start.size - 1):
        for i in range(start[workgroup], start[workgroup + 1]):
            if not mine[template[i]]:
                continue
            for entry in range(rel_start[template[i]], rel_start[template[i] + 1]):
                line = base[i] + rel[entry]
                if toucher[line] == 0:
                    toucher[line] = workgroup + 1
                    touched += 1
                elif toucher[line] > 0 and toucher[line] != workgroup + 1:
                    toucher[line] = -1
                    shared += 1
    return shared, touched


def shared_lines(trace: Trace) -> tuple[int, int]:
    """Lines that more than one workgroup touches, and all lines that are touched."""
    shared = touched = 0
    for number, tensor in enumerate(trace.tensors):
        arrays = (trace.start, trace.base - tensor.base_line, trace.template, trace.rel_start, trace.rel)
        found = _count_shared(*arrays, trace.tensor == number, np.zeros(tensor.n_lines, np.int32))
        shared, touched = shared + found[0], touched + found[1]
    return shared, touched


def sharing(trace: Trace, workgroup: int) -> tuple[Shared, ...]:
    """Compare what one workgroup touches with what all others do."""
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
    """Cut instructions, or values of theirs, where their touches grow too many to hold at once."""
    if not instructions.size:
        return
    touches = np.cumsum(trace.entries_per_template[trace.template[instructions]])
    cuts = np.flatnonzero(np.diff(touches // _TOUCHES_AT_ONCE)) + 1
    yield from np.split(instructions if values is None else values, cuts)


def middle_of(grid: Grid) -> int:
    """Tile in the middle of a grid: the one that has neighbours on all sides, if any has."""
    return sum(digit.extent // 2 * digit.stride for digit in grid.axes.values())


def sharing_words(
    shared: Sequence[Shared], grid: Grid, workgroup: int, gpu: Gpu | None, programs: int | None = None
) -> list[str]:
    """A sentence or three for each tensor: what the workgroup touches, with whom, and on which XCDs they run."""
    xcd = None if gpu is None else xcd_of(grid.num_pids, gpu, programs)
    return [_of_tensor(one, grid, workgroup, xcd) for one in shared]


def _of_tensor(one: Shared, grid: Grid, workgroup: int, xcd: np.ndarray | None) -> str:
    verb = "reads and writes" if one.reads and one.writes else "reads" if one.reads else "writes"
    text = f"{one.tensor} ({_size(one.size_bytes)}): workgroup {workgroup} {verb} {_lines(one.lines)}"
    sharers = np.flatnonzero(one.share)
    sharers = sharers[sharers != workgroup]
    if not sharers.size:
        which = "that line" if one.lines == 1 else "those"
        placed = "" if xcd is None else f": its XCD makes no difference to {one.tensor}"
        return f"{text}, and no other workgroup touches {which}{placed}."
    share = one.share[sharers]
    low, high = float(share.min()), float(share.max())
    how = "all of them" if low == 1 else f"{_pct(low)} of them" if low == high else f"{_pct(low)} to {_pct(high)}"
    if one.lines == 1:
        how = "that line"
    n = "1 other touches" if sharers.size == 1 else f"{sharers.size:,} others touch"
    text = f"{text}; {n} {how}: {_who(sharers, grid, workgroup)}."
    if xcd is None:
        return text
    return f"{text} {_placed(int(np.count_nonzero(xcd[sharers] == xcd[workgroup])), sharers.size)}"


def _placed(here: int, sharers: int) -> str:
    """How many sharers the hardware's round robin puts on the same XCD."""
    if sharers == 1:
        return f"In launch order it runs on {'the same' if here else 'another'} XCD."
    count = f"{here:,} of them run{'s' * (here == 1)}" if here else "none of them runs"
    many = "all of them run" if here == sharers else count
    return f"In launch order {many} on its XCD."


def _who(sharers: np.ndarray, grid: Grid, workgroup: int) -> str:
    """Name a set of workgroups by where they lie."""
    if sharers.size == grid.num_pids - 1:
        return "every workgroup of the grid"
    axes = grid.axes
    own = {name: workgroup // digit.stride % digit.extent for name, digit in axes.items()}
    away = {name: sharers // digit.stride % digit.extent - own[name] for name, digit in axes.items()}
    fixed = [name for name in axes if axes[name].extent > 1 and not away[name].any()]
    free = [name for name in axes if axes[name].extent > 1 and away[name].any()]
    members = int(np.prod([axes[name].extent for name in free])) - 1
    same = " and ".join(f"{name} = {own[name]}" for name in fixed)
    if fixed and sharers.size == members:
        return f"all with {same}"
    if sharers.size <= LISTED:
        steps = sorted(zip(*(away[name].tolist() for name in axes), strict=True))
        listed = ", ".join("(" + ", ".join(f"{step:+d}" for step in steps_of) + ")" for steps_of in steps)
        return f"{'the one' if sharers.size == 1 else 'those'} at {listed} from it in ({', '.join(axes)})"
    if len(axes) == 1 and (distances := _by_distance(np.concatenate([sharers - workgroup, [0]]))):
        return distances
    reach = ", ".join(_reach(name, away[name], axes[name].extent) for name in free)
    box = int(np.prod([max(0, int(away[name].max())) - min(0, int(away[name].min())) + 1 for name in free])) - 1
    near = all(int(abs(away[name]).max()) <= NEAR for name in free)
    kind = "neighbours" if near else "all" if box == sharers.size else "some"
    return f"{kind} with {same + ' and ' if same else ''}{reach}"


def _by_distance(away: np.ndarray) -> str:
    """Sharers of a grid with one axis, where their ids are evenly spaced or lie in even runs; else empty.

    away : (n,) int, distance of the ids, the workgroup's own 0 among them
    """
    away = np.sort(away)
    starts = away[np.concatenate([[True], np.diff(away) > 1])]
    lengths = np.diff([*np.flatnonzero(np.isin(away, starts)).tolist(), away.size])
    steps = np.diff(starts)
    span = f"{away[0]:+d} to {away[-1]:+d} from it"
    if not steps.size:
        return f"ids {span}"
    if (steps != steps[0]).any() or (lengths[1:-1] != lengths.max()).any():
        return ""
    return f"every {steps[0]}th id {span}" if lengths.max() == 1 else f"{lengths.max()} ids of every {steps[0]}, {span}"


def _reach(name: str, away: np.ndarray, extent: int) -> str:
    """How far sharers lie away along one axis."""
    low, high = min(0, int(away.min())), max(0, int(away.max()))
    return f"any {name}" if high - low == extent - 1 else f"{name} {low:+d} to {high:+d} from it"


def _lines(n: int) -> str:
    return f"{n:,} line{'s' if n > 1 else ''} of it"


def _pct(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.2g} %"


def _size(size_bytes: int) -> str:
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= scale:
            return (
                f"{size_bytes / scale:.3g} {unit}" if size_bytes < 1000 * scale else f"{size_bytes / scale:.0f} {unit}"
            )
    return f"{size_bytes} B"
