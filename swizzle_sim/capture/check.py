"""The check no capture escapes: a sample of workgroups, interpreted for real, must touch the same lines."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from swizzle_sim.capture.follow import program_ids
from swizzle_sim.capture.interpret import Interpreter, Touch
from swizzle_sim.capture.program import Program
from xcd_model import Trace
from xcd_model.errors import CaptureError

RANDOM = 4  # workgroups drawn beside the corners and one of each path
MAX_PATHS = 8
ENOUGH = 6000  # tensor instructions after which no further workgroup is interpreted
AT_LEAST = 2  # workgroups, however long


def sample(grid: tuple[int, ...], paths: Sequence[np.ndarray], seed: int) -> list[int]:
    """Linear ids to interpret, in random order: corners of the grid, one of each of some paths, a few at random."""
    draw = np.random.default_rng(seed)
    sides = [sorted({0, side - 1}) for side in grid]
    corners = [x + grid[0] * (y + grid[1] * z) for x, y, z in itertools.product(*sides)]
    total = int(np.prod(grid, dtype=np.int64))
    chosen = [int(draw.choice(path)) for path in _some(paths)]
    found = sorted({*corners, *chosen, *draw.integers(0, total, RANDOM).tolist()})
    draw.shuffle(found)
    return found


def _some(paths: Sequence[np.ndarray]) -> list[np.ndarray]:
    step = max(1, -(-len(paths) // MAX_PATHS))
    return list(paths[::step])


def check(
    program: Program,
    trace: Trace,
    workgroups: Sequence[int],
    index_data: Mapping[int, np.ndarray],
) -> list[int]:
    """Interpret workgroups for real and compare, instruction by instruction and line by line.

    Long workgroups are slow to interpret: after `ENOUGH` instructions the rest is left out. Gives those compared.

    Tensors that are no index read as zeros, and products are left out: nothing that was followed depends on them.

    Raises
    ------
    CaptureError
        If one differs; the trace is then worthless.
    """
    real = Interpreter(program.language.parts, program.space, trace.line_bytes, index_data)
    real.builder.set_grid_dim(*program.grid)
    done: list[int] = []
    instructions = 0
    for workgroup in workgroups:
        if instructions > ENOUGH and len(done) >= AT_LEAST:
            break
        x, y, z = program_ids(np.array([workgroup]), program.grid)[:, 0].tolist()
        real.builder.set_grid_idx(x, y, z)
        real.touches.clear()
        program.run(real.builder)
        _compare(program, trace, workgroup, real.touches)
        done.append(workgroup)
        instructions += len(real.touches)
    return sorted(done)


def _compare(program: Program, trace: Trace, workgroup: int, touches: list[Touch]) -> None:
    first, end = int(trace.start[workgroup]), int(trace.start[workgroup + 1])
    name = f"{program.launch.path.name}: {program.launch.function}: workgroup {workgroup}"
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
        )
        if not same:
            raise CaptureError(
                f"{name}, tensor instruction {i} touches other lines when interpreted: the capture is wrong and was "
                "thrown away; use --full",
                code="mismatch",
            )
