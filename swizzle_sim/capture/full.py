"""Capture by full interpretation: every workgroup, one at a time, on real data. Slow, and follows anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from swizzle_sim.capture.follow import Path, assemble, program_ids
from swizzle_sim.capture.interpret import Interpreter
from swizzle_sim.capture.program import Program
from swizzle_sim.capture.record import Templates
from xcd_model import Trace
from xcd_model.trace.coalesce import Touched


def interpret_all(
    program: Program, line_bytes: int, memory: Mapping[int, np.ndarray], on_progress: Callable[[int, int], None]
) -> Trace:
    """Trace of a launch from its full interpretation, workgroups in the order of their linear ids.

    Parameters
    ----------
    program : Program
    line_bytes : int
    memory : mapping of int to 1-D array
        Items of every tensor, changed in place.
    on_progress : callable
        ``on_progress(done, total)``.
    """
    real = Interpreter(program.language.parts, program.space, line_bytes, memory)
    real.builder.set_grid_dim(*program.grid)
    total = int(np.prod(program.grid, dtype=np.int64))
    templates, paths = Templates(), []
    for workgroup in range(total):
        own = np.array([workgroup], np.int64)
        real.builder.set_grid_idx(*program_ids(own, program.grid)[:, 0].tolist())
        real.touches.clear()
        program.run(real.builder)
        base, number = np.empty((len(real.touches), 1), np.int64), np.empty((len(real.touches), 1), np.int32)
        for i, touch in enumerate(real.touches):
            lowest = int(touch.touched.line.min())
            moved = Touched(touch.touched.line - lowest, touch.touched.sectors, touch.touched.wave_requests)
            base[i], number[i] = touch.base + lowest, templates.number(moved, touch.tensor, touch.is_write)
        paths.append(Path(own, base, number))
        on_progress(workgroup + 1, total)
    return assemble(paths, templates, program, line_bytes)
