"""Which workgroups share which cache lines, counted from a trace and put into words: the memory analysis of a kernel.

`sharing` compares one workgroup with all others; `sharing_words` says it in sentences, for `swizzle-sim show` and for
the prompt of a model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.language.grid import Grid
from xcd_model import Gpu, Trace, xcd_of
from xcd_model.compiled.numba_setup import njit
from xcd_model.errors import SizeError

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


@njit(cache=True, nogil=True)
def _touch(touches, mine, marked, latest, several, count):
    """Go through the lines of one tensor that are marked, workgroup by workgroup; ``count`` those that each touches.

    touches : of a trace, ``base`` from the tensor's first line;  mine : (n_templates,) bool, the tensor's
    latest : (n_lines,) int32, -1: last workgroup that touched a line;  several : (n_lines,) bool, False: more did
    """
    start, base, template, rel_start, rel = touches
    for workgroup in range(start.size - 1):
        for i in range(start[workgroup], start[workgroup + 1]):
            if not mine[template[i]]:
                continue
            for entry in range(rel_start[template[i]], rel_start[template[i] + 1]):
                line = base[i] + rel[entry]
                if marked[line] and latest[line] != workgroup:
                    several[line] |= latest[line] >= 0
                    latest[line] = workgroup
                    count[workgroup] += 1


def _touched(trace: Trace, tensor: int, start: np.ndarray, marked: np.ndarray) -> tuple[np.ndarray, ...]:
    """Whether any workgroup, and whether several, touch each line of a tensor; and how many lines each touches."""
    latest, several = np.full(marked.size, -1, np.int32), np.zeros(marked.size, bool)
    count = np.zeros(start.size - 1, np.int64)
    base = trace.base - trace.tensors[tensor].base_line
    touches = (start, base, trace.template, trace.rel_start, trace.rel)
    _touch(touches, trace.tensor == tensor, marked, latest, several, count)
    return latest >= 0, several, count


def shared_lines(trace: Trace, enough: float = math.inf) -> tuple[int, int]:
    """Lines that more than one workgroup touches, and all lines that are touched; of tensors until ``enough`` are."""
    shared = lines = 0
    for number, tensor in enumerate(trace.tensors):
        if shared < enough:
            touched, several, _ = _touched(trace, number, trace.start, np.ones(tensor.n_lines, bool))
            shared, lines = shared + int(several.sum()), lines + int(touched.sum())
    return shared, lines


def sharing(trace: Trace, workgroup: int) -> tuple[Shared, ...]:
    """Compare what one workgroup touches with what all others do."""
    if not 0 <= workgroup < trace.n_workgroups:
        raise SizeError(f"workgroup = {workgroup}: the kernel has workgroups 0 to {trace.n_workgroups - 1}")
    own = np.arange(trace.start[workgroup], trace.start[workgroup + 1])
    owner = trace.tensor[trace.template]
    return tuple(_share_of(trace, tensor, workgroup, own[owner[own] == tensor]) for tensor in np.unique(owner[own]))


def _share_of(trace: Trace, tensor: int, workgroup: int, own: np.ndarray) -> Shared:
    about = trace.tensors[tensor]
    alone = trace.start[workgroup : workgroup + 2]
    lines, *_ = _touched(trace, tensor, alone, np.ones(about.n_lines, bool))
    *_, count = _touched(trace, tensor, trace.start, lines)
    share = (count / lines.sum()).astype(np.float32)
    writes = trace.is_write[trace.template[own]]
    return Shared(about.name, about.size_bytes, bool((~writes).any()), bool(writes.any()), int(lines.sum()), share)


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
