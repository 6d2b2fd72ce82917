"""Classes of reuse of one launch order of tiles: by which earlier touch a line came into an L2, and whether it missed.

Every touch of a sampled line is classed by the workgroup that touched the line before, in the order of the lockstep
replay. Hits are those of one fully associative LRU cache an XCD, from exact stack distances of lines sampled by hash:
an estimate next to the replay's counts, which leaves out associativity, the workgroup skew of the timed replay, and
the second partition of an L2 that has two.

Sources: Mattson et al., IBM Systems Journal 9(2), 1970 (stack distance); Waldspurger et al., FAST 2015 (SHARDS: a
sample of lines by hash keeps stack distances in proportion).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from swizzle_sim.language.grid import Grid
from swizzle_sim.report.display.tiles import tile_coordinates
from xcd_model import Plan
from xcd_model.analysis.sampled_misses import MAX_SAMPLES, Touches, sampled_touches
from xcd_model.analysis.schedule import Schedule, schedule_of

FIRST, FIRST_HERE, OWN, ALONG_M, ALONG_N, DIAGONAL, LATER = range(7)
KINDS = {  # in a report, and what it means
    "first touch": "no XCD had touched the line: no order avoids it",
    "touched elsewhere": "first touch by this XCD, another one had touched the line",
    "reuse in a workgroup": "the workgroup itself had touched the line",
    "reuse along m": "a workgroup that runs beside it, of the same tile column, had",
    "reuse along n": "a workgroup that runs beside it, of the same tile row, had",
    "reuse beside": "another workgroup that runs beside it had",
    "reuse across waves": "a workgroup that has finished had",
}


@dataclass(frozen=True, eq=False)
class Reuse:
    """Touches of sampled lines by class of reuse under one order, scaled to the whole."""

    tensors: tuple[str, ...]
    # (n_tensors, len(KINDS)) float [lines, or what a miss fetches of one]: touches of each kind, and those whose stack
    # distance exceeds the L2
    touches: np.ndarray = field(repr=False)
    misses: np.ndarray = field(repr=False)
    # (n_tensors,) float: XCDs that touch a line, on average over the lines touched
    copies: np.ndarray = field(repr=False)
    sampled_fraction: float = 1.0  # of all lines


def reuse_of(plan: Plan, order: np.ndarray, *, workgroups_per_cu: int, grid: Grid) -> Reuse:
    """Classes of reuse of one order, a permutation."""
    l2 = plan.gpu.l2
    if l2.fetch_bytes < l2.line_bytes:  # a miss fetches a piece of a line, so pieces are what hits and misses
        plan = replace(plan, trace=plan.trace.with_lines_of(l2.fetch_bytes))
    trace = plan.trace
    schedule = schedule_of(plan, order, workgroups_per_cu=workgroups_per_cu)
    touches = sampled_touches(plan, schedule, MAX_SAMPLES)
    program = np.empty(order.size, np.int64)  # of each tile; of a kernel that is not persistent the workgroup itself
    program[order] = np.arange(order.size) % (plan.machine.programs or order.size)
    kind = _classes(touches, schedule, program, grid, plan.gpu.xcds)
    scale = float(touches.one_in)
    miss = (touches.distance < 0) | (touches.distance >= l2.size_bytes // l2.fetch_bytes / scale)
    tensor = trace.tensor[trace.template[schedule.sequence[touches.at]]]
    table = [np.zeros((len(trace.tensors), len(KINDS))) for _ in range(2)]
    np.add.at(table[0], (tensor, kind), scale)
    np.add.at(table[1], (tensor[miss], kind[miss]), scale)
    names = tuple(t.name for t in trace.tensors)
    first = touches.distance < 0
    tensor_of_line = np.zeros(touches.n_lines, np.int64)
    tensor_of_line[touches.line] = tensor
    fetched = np.bincount(tensor_of_line[touches.line[first]], minlength=len(names))
    copies = fetched / np.maximum(1, np.bincount(tensor_of_line, minlength=len(names)))
    return Reuse(names, table[0], table[1], copies, 1 / touches.one_in)


def _classes(touches: Touches, schedule: Schedule, program: np.ndarray, grid: Grid, xcds: int) -> np.ndarray:
    """Kind of each touch; tiles of one persistent ``program`` are one workgroup."""
    line, at, xcd, owner = touches.line, touches.at, touches.xcd, schedule.owner
    earlier = np.full(line.size, -1)
    for x in range(xcds):
        mine = np.flatnonzero(xcd == x)
        by_line = mine[np.argsort(line[mine], kind="stable")]
        same = np.flatnonzero(line[by_line[1:]] == line[by_line[:-1]])
        earlier[by_line[same + 1]] = by_line[same]
    row, col = tile_coordinates(grid)
    now, before = owner[at], owner[at[np.maximum(earlier, 0)]]
    kind = np.full(line.size, DIAGONAL)
    if grid.shape is not None:  # other grids have no tile rows and columns
        kind[row[now] == row[before]] = ALONG_N
        kind[col[now] == col[before]] = ALONG_M
    kind[schedule.born[now] > schedule.died[before]] = LATER
    kind[program[now] == program[before]] = OWN
    first = touches.distance < 0
    kind[first] = FIRST_HERE
    # the XCD with the earliest turn brought the line first; position within an XCD's part stands for time
    starts = np.concatenate([[0], np.flatnonzero(np.diff(xcd)) + 1])
    since = at - at[starts[np.searchsorted(starts, np.arange(line.size), side="right") - 1]] if line.size else at
    candidates = np.flatnonzero(first)
    by_time = candidates[np.lexsort((xcd[candidates], since[candidates], line[candidates]))]
    kind[by_time[np.unique(line[by_time], return_index=True)[1]]] = FIRST
    return kind
