"""`capture_cuda`: a launch of CUDA or HIP to its trace.

Some workgroups are run: of the grid's inside, and of its last row and column, which may be ragged, the first, its
neighbour along each axis, the last, some at random. Where the whole grid takes seconds all are run. Else a neighbour's
distance in bytes, instruction by instruction, is that of all neighbours; a workgroup that was run and lies elsewhere
refuses the capture. Run again on other numbers, workgroups touch the same: data decide no address.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from swizzle_sim.capture.cuda.execute import ARENA, Program, Run
from swizzle_sim.capture.follow import ControlFlowPath, assemble
from swizzle_sim.capture.memory import AddressSpace, flat_items, real_items
from swizzle_sim.capture.record import MAX_INSTRUCTIONS, Templates
from swizzle_sim.language.grid import Grid
from swizzle_sim.workload.launch import Launch
from xcd_model import Trace
from xcd_model.errors import CaptureError
from xcd_model.trace.coalesce import WAVE_SIZE, Touched, passes_of
from xcd_model.trace.trace import SECTOR_BYTES, waves_of

WHOLE_S, LONG_S = 20.0, 300.0  # of a grid that is run whole; of one whose workgroups are not alike
RANDOM = 6  # workgroups drawn of each part of the grid
AGAIN = 3  # workgroups run again on other numbers
DEPENDS = (
    "which bytes are touched depends on data: declare the tensor with is_index=True and give its items in "
    "make_inputs=lambda s, seed: ..."
)


@dataclass(frozen=True, eq=False)
class CudaCapture:
    """A trace, and how it was come by."""

    trace: Trace
    executed: int  # workgroups that were run
    checked: tuple[int, ...]  # of those the ones that were compared with what a neighbour's distance says
    parts: int  # of the grid, each with its own distances
    left_out: str  # of the file, in words
    dependencies: dict[str, str]  # digest of the kernel's file and of the headers that it includes
    # sectors of 32 B that warps load and store: ``l1tex__t_sectors_pipe_lsu_mem_global_op_ld`` and ``_st``
    sectors: Mapping[str, int]
    shared_bytes: int  # [bytes]: that the launch asks for, and that is declared with its size and touched


@dataclass(frozen=True)
class Part:
    """Workgroups of a grid that are at the end of the same axes."""

    extents: tuple[int, ...]  # of its coordinates; those at the end of an axis have one
    strides: tuple[int, ...]  # of a workgroup's id
    origin: int

    @property
    def members(self) -> np.ndarray:
        """(n, n_axes + 1) int64: coordinates and id of each workgroup."""
        at = np.stack(np.meshgrid(*map(np.arange, self.extents), indexing="ij"), axis=-1).reshape(-1, len(self.extents))
        return np.column_stack([at, self.origin + at @ np.array(self.strides)])

    @property
    def steps(self) -> list[int]:
        """Ids of the neighbours of the first along each axis that has any."""
        return [self.origin + s for s, n in zip(self.strides, self.extents, strict=True) if n > 1]

    def sample(self, draw: np.random.Generator) -> set[int]:
        """Ids to run."""
        ids = self.members[:, -1]
        drawn = draw.choice(ids, min(RANDOM, ids.size), replace=False)
        return {self.origin, *self.steps, int(ids[-1]), *drawn.tolist()}


def capture_cuda(launch: Launch, grid: Grid, *, line_bytes: int, full: bool = False, seed: int = 0) -> CudaCapture:
    """Capture a launch whose workgroups a swizzle permutes as ``grid`` says."""
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:
        program = Program(launch, AddressSpace.place(launch.storage), Path(folder))
        return _captured(program, grid, line_bytes, full=full, seed=seed)


def _captured(program: Program, grid: Grid, line_bytes: int, *, full: bool, seed: int) -> CudaCapture:
    given, parts = _given(program.space, program.launch, seed), parts_of(grid)
    draw = np.random.default_rng(seed)
    sample = sorted(set().union(*(one.sample(draw) for one in parts)))
    found = program.run(sample, given)
    whole_s = found.seconds / len(sample) * grid.num_pids
    _check_again(program, found, sample, given)
    checked: list[int] = []
    paths = None
    if not full and whole_s > WHOLE_S:
        rows = {w: i for i, w in enumerate(sample)}
        try:
            paths = [_spread(program, found, rows, one, checked) for one in parts]
        except CaptureError:
            if whole_s > LONG_S:
                raise
    if paths is None:
        if len(sample) < grid.num_pids:
            sample, checked = list(range(grid.num_pids)), []
            found = program.run(sample, given)
        paths = _as_they_ran(found)
    trace, sectors = _trace(program, found, paths, line_bytes)
    of = {"shared_bytes": found.shared_bytes + program.options["shared_bytes"], "sectors": sectors}
    return CudaCapture(
        trace,
        len(sample),
        tuple(sorted(checked)),
        len(parts) if checked else 0,
        program.source.left_out,
        program.files,
        **of,
    )


def parts_of(grid: Grid) -> list[Part]:
    """Inside of a grid, and what is at the end of each set of its axes."""
    digits = list(grid.axes.values())
    found = []
    for ends in itertools.product((False, True), repeat=len(digits)):
        extents = tuple(1 if end else digit.extent - 1 for digit, end in zip(digits, ends, strict=True))
        origin = sum((digit.extent - 1) * digit.stride for digit, end in zip(digits, ends, strict=True) if end)
        if all(extents):
            found.append(Part(extents, tuple(digit.stride for digit in digits), origin))
    return found


def _given(space: AddressSpace, launch: Launch, seed: int) -> dict[int, np.ndarray]:
    """Items of the tensors whose values a declaration gives."""
    made = {name: np.asarray(value) for name, value in launch.make_inputs(seed).items()}
    found = real_items(space, made, everything=False, seed=seed)
    for i, (name, array) in enumerate(zip(space.names, space.arrays, strict=True)):
        if array.points_to:
            found[i] = found[i] + ARENA
        elif name in made and i not in found:
            found[i] = flat_items(name, array, made[name])
    return found


def _check_again(program: Program, found: Run, sample: Sequence[int], given: Mapping[int, np.ndarray]) -> None:
    """Refuse a kernel that touches other bytes on other numbers."""
    places = np.unique(np.linspace(0, len(sample) - 1, AGAIN).astype(int)).tolist()
    try:
        again = program.run([sample[i] for i in places], given, is_drawn=True)
    except CaptureError as error:
        raise program.error(f"{DEPENDS} (on other numbers: {error})", "not-followed") from None
    for k, i in enumerate(places):
        one, other = found.row(i), again.row(k)
        if one != other:
            differ = (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
            at = next(differ, min(len(one), len(other)) - 1)
            raise program.error(f"{program.line_of(found, i, at)}: {DEPENDS}", "not-followed")


def _as_they_ran(found: Run) -> list[ControlFlowPath]:
    """Workgroups with their own instructions, those of a length together."""
    counts = np.diff(found.start)
    paths = []
    for count in np.unique(counts):
        which = np.flatnonzero(counts == count)
        at = found.start[which] + np.arange(count)[:, None]
        paths.append(ControlFlowPath(which, found.first_byte[at], found.pattern[at]))
    return paths


def _spread(program: Program, found: Run, rows: Mapping[int, int], part: Part, checked: list[int]) -> ControlFlowPath:
    """Workgroups of a part, from those that were run."""
    first, pattern = found.of(rows[part.origin])
    shifts = []
    for stride, extent in zip(part.strides, part.extents, strict=True):
        step = found.of(rows[part.origin + stride])[0] if extent > 1 else first
        if step.size != first.size:
            raise _not_alike(program, found, rows, part.origin + stride, part.origin, 0)
        shifts.append(step - first)
    members = part.members
    if first.size * len(members) > MAX_INSTRUCTIONS:
        raise program.error(f"more than {MAX_INSTRUCTIONS} accesses of workgroups: use a smaller problem")
    base = first[:, None] + np.stack(shifts, axis=1) @ members[:, :-1].T
    for i in np.flatnonzero(np.isin(members[:, -1], list(rows))):
        workgroup = int(members[i, -1])
        own, kinds = found.of(rows[workgroup])
        same = own.size == first.size and np.array_equal(kinds, pattern) and np.array_equal(own, base[:, i])
        if not same:
            n = min(own.size, first.size)
            differs = (kinds[:n] != pattern[:n]) | (own[:n] != base[:n, i])
            raise _not_alike(program, found, rows, workgroup, part.origin, int(np.argmax(differs)) if n else 0)
        checked.append(workgroup)
    return ControlFlowPath(members[:, -1], base, np.repeat(pattern[:, None], len(members), axis=1))


def _not_alike(program: Program, found: Run, rows: Mapping[int, int], one: int, other: int, at: int) -> CaptureError:
    place = program.line_of(found, rows[one], at)
    return program.error(
        f"{place}: workgroup {one} touches other bytes than its distance from workgroup {other} says, so all have to "
        f"be run, which takes more than {LONG_S:g} s: use a smaller problem, say tiles=..., or capture --full",
        "not-followed",
    )


def _trace(program: Program, found: Run, paths: list[ControlFlowPath], line_bytes: int) -> tuple[Trace, dict[str, int]]:
    """Trace of instructions whose base is a byte and whose template a pattern, and the sectors of their warps."""
    keys = [(one.template.astype(np.int64) * line_bytes + one.base % line_bytes).ravel() for one in paths]
    kinds, back, counts = np.unique(np.concatenate(keys), return_inverse=True, return_counts=True)
    templates, sectors, warp = Templates(), Counter({"loads": 0, "stores": 0}), 64 if program.source.is_hip else 32
    numbers = np.empty(kinds.size, np.int64)
    for k, (pattern, phase) in enumerate(zip(*divmod(kinds, line_bytes), strict=True)):
        tensor, is_write = found.head[pattern, :2].tolist()
        lanes = found.lanes[found.at[pattern] : found.at[pattern + 1]]
        touched, of_warps = _coalesced(lanes, int(phase), line_bytes, warp)
        numbers[k] = templates.number(touched, tensor, bool(is_write))
        sectors["stores" if is_write else "loads"] += of_warps * int(counts[k])
    ends = np.cumsum([one.size for one in keys])[:-1]
    numbered = np.split(numbers[back], ends)
    placed = [
        one._replace(base=one.base // line_bytes, template=part.reshape(one.template.shape))
        for one, part in zip(paths, numbered, strict=True)
    ]
    return assemble(placed, templates, program, line_bytes), dict(sectors)


def _coalesced(lanes: np.ndarray, phase: int, line_bytes: int, warp: int) -> tuple[Touched, int]:
    """Lines of an instruction whose threads each access their own bytes, (thread, from the first byte, bytes)."""
    thread, address, size = lanes[:, 0], lanes[:, 1] + phase, lanes[:, 2]
    first = address // SECTOR_BYTES
    each = (address + size - 1) // SECTOR_BYTES - first + 1
    of = np.repeat(np.arange(thread.size), each)
    sector = first[of] + np.arange(of.size) - np.repeat(np.cumsum(each) - each, each)
    per_line = line_bytes // SECTOR_BYTES
    line, at, back = np.unique(sector // per_line, return_index=True, return_inverse=True)
    bits = np.zeros(line.size, np.uint8)
    np.bitwise_or.at(bits, back, (1 << sector % per_line).astype(np.uint8))
    pairs = np.unique(back + line.size * (thread[of] // WAVE_SIZE))
    requests = np.bincount(pairs % line.size, minlength=line.size).astype(np.uint16)
    ones = np.ones_like(thread)
    _, passes = passes_of(np.zeros_like(thread), thread, address, ones, ones, int(size.max()))
    waves = waves_of(np.bincount(thread // WAVE_SIZE), 1, 1, int(size.max()), line_bytes, int(passes[0]))
    of_warps = np.unique(sector + (sector.max() + 1) * (thread[of] // warp)).size
    order = np.argsort(at, kind="stable")
    return Touched(line[order], bits[order], requests[order], waves), of_warps
