"""Raw schedules: replay what a kernel did on the hardware, right or wrong, to hold the model against its counters.

Some published patterns are no bijections: their kernels computed a few tiles many times and left the rest out, and
what was measured is the hit rate of that. Nothing of the kind is ever scored: `swizzle_sim.Scorer` and
`xcd_model.replay.lockstep` refuse it. For fidelity alone, `raw_trace` writes the schedule out as a trace of its own, in
which each hardware workgroup does what the tile it was given does, and `replay_raw` counts it.
"""

from __future__ import annotations

import numpy as np

from swizzle_sim.kernels import Kernel
from xcd_model import Gpu, Trace, Traffic, prepare, replay_lockstep, workgroups_per_cu
from xcd_model.analysis.instruction_fetch import add_fetches, instruction_fetches
from xcd_model.errors import TraceError
from xcd_model.replay.launches import MAX_LAUNCHES, replay_launches


def raw_trace(trace: Trace, tiles: np.ndarray) -> Trace:
    """Trace in which hardware workgroup ``w`` does what workgroup ``tiles[w]`` of another trace does.

    Parameters
    ----------
    trace : Trace
    tiles : (n_workgroups,) int array
        Any tiles of the trace; the same one may come again and again.

    Returns
    -------
    trace : Trace

    Raises
    ------
    TraceError
        If a tile is not of the trace: a workgroup that computes nothing has no trace.
    """
    tiles = np.asarray(tiles)
    if tiles.ndim != 1 or not tiles.size or not np.issubdtype(tiles.dtype, np.integer):
        raise TraceError(f"tiles has shape {tiles.shape} and type {tiles.dtype}: a row of integers is needed")
    bad = (tiles < 0) | (tiles >= trace.n_workgroups)
    if bad.any():
        w = int(np.argmax(bad))
        raise TraceError(f"workgroup {w} computes tile {tiles[w]}: the trace has tiles 0 to {trace.n_workgroups - 1}")
    count = np.diff(trace.start)[tiles]
    start = np.concatenate([[0], np.cumsum(count)])
    instruction = np.repeat(trace.start[tiles] - start[:-1], count) + np.arange(start[-1])
    return Trace(
        line_bytes=trace.line_bytes,
        tensors=trace.tensors,
        start=start,
        base=trace.base[instruction],
        template=trace.template[instruction],
        rel_start=trace.rel_start,
        rel=trace.rel,
        sectors=trace.sectors,
        is_write=trace.is_write,
        tensor=trace.tensor,
        wave_requests=trace.wave_requests,
    )


def replay_raw(kernel: Kernel, gpu: Gpu, tiles: np.ndarray) -> Traffic:
    """Lockstep counts of a kernel whose hardware workgroup ``w`` computes tile ``tiles[w]``, bijection or not.

    Parameters
    ----------
    kernel : Kernel
    gpu : Gpu
    tiles : (num_pids,) int array

    Returns
    -------
    traffic : Traffic
        Of the launch that counts as the one before it, for a kernel that is launched again and again.
    """
    trace = raw_trace(kernel.build_trace(gpu.l2.line_bytes), tiles)
    plan = prepare(trace, gpu, programs=kernel.programs)
    as_given, fit = np.arange(trace.n_workgroups), workgroups_per_cu(kernel.resources, gpu)
    replayed = replay_launches(
        [plan],
        lambda plan, caches: replay_lockstep(plan, as_given, workgroups_per_cu=fit, caches=caches),
        min(kernel.launches, MAX_LAUNCHES),
    )[0]
    fetches = instruction_fetches(gpu, kernel.resources, kernel.programs or trace.n_workgroups)
    return add_fetches(replayed, fetches)
