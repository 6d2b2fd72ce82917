"""Checks that every capture passes.

Sampled workgroups, interpreted for real, touch the same lines, and the same sectors as found from the addresses alone,
without coalescing. A persistent kernel is its tiles: program p does what
tiles p, p + programs, ... do, one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from swizzle_sim.capture.claims import TileClaims
from swizzle_sim.capture.interpret import Interpreter, Touch
from swizzle_sim.capture.loaded_kernel import LoadedKernel
from xcd_model import Trace
from xcd_model.errors import CaptureError
from xcd_model.trace.trace import SECTOR_BYTES

RANDOM = 4  # workgroups drawn in addition to the corners and one of each path
MAX_PATHS = 8
ENOUGH = 6000  # tensor instructions after which no further workgroup is interpreted
AT_LEAST = 2  # workgroups, however long


def sample(grid: tuple[int, ...], paths: Sequence[np.ndarray], seed: int) -> list[int]:
    """Linear ids to interpret, in random order: corners of the grid, one of each of some paths, a few at random."""
    draw = np.random.default_rng(seed)
    sides = [sorted({0, side - 1}) for side in grid]
    corners = [x + grid[0] * (y + grid[1] * z) for x, y, z in itertools.product(*sides)]
    total = int(np.prod(grid, dtype=np.int64))
    chosen = [int(draw.choice(path)) for path in paths[:: max(1, -(-len(paths) // MAX_PATHS))]]
    found = sorted({*corners, *chosen, *draw.integers(0, total, RANDOM).tolist()})
    draw.shuffle(found)
    return found


def check(
    kernel: LoadedKernel,
    trace: Trace,
    workgroups: Sequence[int],
    index_data: Mapping[int, np.ndarray],
    claims: TileClaims,
) -> list[int]:
    """Interpret workgroups for real and compare, instruction by instruction and line by line.

    Long workgroups are slow to interpret: after `ENOUGH` instructions the rest is left out. Gives those compared.

    Tensors that are no index read as zeros, and products are left out: nothing that was followed depends on them.
    """
    real = Interpreter(kernel, trace.line_bytes, index_data, claims)
    done: list[int] = []
    instructions = 0
    for workgroup in workgroups:
        if instructions > ENOUGH and len(done) >= AT_LEAST:
            break
        real.run(workgroup)
        _compare(kernel, trace, workgroup, real.touches)
        done.append(workgroup)
        instructions += len(real.touches)
    return sorted(done)


def _compare(kernel: LoadedKernel, trace: Trace, workgroup: int, touches: list[Touch]) -> None:
    first, end = int(trace.start[workgroup]), int(trace.start[workgroup + 1])
    name = f"{kernel.launch.path.name}: {kernel.launch.function}: workgroup {workgroup}"
    if end - first != len(touches):
        raise CaptureError(
            f"{name} was captured with {end - first} tensor instructions, and interpreted with {len(touches)}: "
            "the capture is wrong and was thrown away; use --full",
            code="mismatch",
        )
    for i, touch in enumerate(touches):
        template = int(trace.template[first + i])
        span = slice(int(trace.rel_start[template]), int(trace.rel_start[template + 1]))
        same = (
            np.array_equal(trace.rel[span] + trace.base[first + i], touch.touched.line + touch.base)
            and np.array_equal(trace.sectors[span], touch.touched.sectors)
            and np.array_equal(trace.wave_requests[span], touch.touched.wave_requests)
            and (bool(trace.is_write[template]), int(trace.tensor[template])) == (touch.is_write, touch.tensor)
            and np.array_equal(_sectors(trace, first + i, span), touch.sectors)
        )
        if not same:
            raise CaptureError(
                f"{name}, tensor instruction {i} touches other lines when interpreted: the capture is wrong and was "
                "thrown away; use --full",
                code="mismatch",
            )


def _sectors(trace: Trace, instruction: int, span: slice) -> np.ndarray:
    """Sectors of an instruction in order, from its lines and their bits."""
    a_line = trace.line_bytes // SECTOR_BYTES
    line, bit = np.nonzero(trace.sectors[span, None] >> np.arange(a_line, dtype=np.uint8) & 1)
    return np.sort((trace.base[instruction] + trace.rel[span][line]) * a_line + bit)


def check_tiles(name: str, tiles: Trace, programs: Trace) -> None:
    """Refuse a trace by tile that is not the launch's, instruction by instruction and line by line."""
    step = programs.n_workgroups
    owner = np.arange(tiles.n_workgroups) % step
    order = np.argsort(owner, kind="stable")
    counts = np.diff(tiles.start)[order]
    at = np.repeat(tiles.start[:-1][order] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    wanted = np.bincount(owner, np.diff(tiles.start), minlength=step).astype(np.int64)
    if tiles.tensors != programs.tensors:
        raise _not_its_tiles(name, "the tensors depend on the number of programs")
    if np.any(wanted != np.diff(programs.start)):
        p = int(np.argmax(wanted != np.diff(programs.start)))
        has = int(np.diff(programs.start)[p])
        raise _not_its_tiles(name, f"program {p} has {has} tensor instructions, its tiles one by one {wanted[p]}")
    numbers: dict[tuple, int] = {}
    own, other = _numbers(tiles, numbers)[tiles.template[at]], _numbers(programs, numbers)[programs.template]
    differs = (own != other) | (tiles.base[at] != programs.base)
    if np.any(differs):
        p = int(np.searchsorted(programs.start, int(np.argmax(differs)), side="right")) - 1
        raise _not_its_tiles(name, f"program {p} touches other lines than its tiles one by one")


def _numbers(trace: Trace, known: dict[tuple, int]) -> np.ndarray:
    """Number of each template by its content, (n_templates,) int64."""
    found = []
    for t in range(trace.rel_start.size - 1):
        span = slice(int(trace.rel_start[t]), int(trace.rel_start[t + 1]))
        parts = (trace.rel[span], trace.sectors[span], trace.wave_requests[span])
        content = (bool(trace.is_write[t]), int(trace.tensor[t]), *(part.tobytes() for part in parts))
        found.append(known.setdefault(content, len(known)))
    return np.array(found, np.int64)


def _not_its_tiles(name: str, what: str) -> CaptureError:
    return CaptureError(
        f"{name} is declared with programs=..., and {what}: without programs= its programs are counted, not its tiles",
        code="mismatch",
    )
