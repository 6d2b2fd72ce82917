"""Concolic capture: one run of the kernel for each control-flow path, for all workgroups that take it at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from swizzle_sim.capture.builder import FollowingBuilder
from swizzle_sim.capture.claims import TileClaims
from swizzle_sim.capture.loaded_kernel import LoadedKernel
from swizzle_sim.capture.record import InstructionRecorder, Templates
from swizzle_sim.capture.values import Fork, Patterns
from xcd_model import Trace
from xcd_model.errors import CaptureError

MAX_RUNS = 20_000
OnProgress = Callable[[int, int], None]


class ControlFlowPath(NamedTuple):
    """Instructions of the workgroups that take one path: ``base`` and ``template`` (n_instructions, n)."""

    workgroups: np.ndarray
    base: np.ndarray
    template: np.ndarray


def program_ids(workgroups: np.ndarray, grid: tuple[int, ...]) -> np.ndarray:
    """(3, n) program ids of linear ids; the hardware counts x fastest."""
    x, rest = workgroups % grid[0], workgroups // grid[0]
    return np.stack([x, rest % grid[1], rest // grid[1]])


def follow(
    kernel: LoadedKernel,
    line_bytes: int,
    index_data: Mapping[int, np.ndarray],
    claims: TileClaims,
    on_progress: OnProgress,
) -> tuple[Trace, list[np.ndarray], Counter[str]]:
    """Trace of a launch, the workgroups of each path, and the operations of all their matrix products by type."""
    grid = kernel.grid
    total = int(np.prod(grid, dtype=np.int64))
    table, templates = Patterns(), Templates()
    waiting, paths, done, runs = [np.arange(total, dtype=np.int64)], [], 0, 0
    flops: Counter[str] = Counter()
    while waiting:
        workgroups = waiting.pop()
        recorder = InstructionRecorder(table, kernel.space, templates, workgroups, line_bytes)
        pids = program_ids(workgroups, grid)
        runs += 1
        if runs > MAX_RUNS:
            raise CaptureError(
                f"workgroups take more than {MAX_RUNS // 2} different paths through the kernel: use --full",
                code="not-followed",
            )
        try:
            builder = FollowingBuilder(kernel.language, recorder, pids, grid, index_data, claims)
            flops += Counter({kind: workgroups.size * count for kind, count in kernel.run(builder).items()})
        except Fork as fork:
            waiting.extend(workgroups[part] for part in reversed(fork.parts))
            continue
        paths.append(_path(recorder))
        done += workgroups.size
        on_progress(done, total)
    return assemble(paths, templates, kernel, line_bytes), [path.workgroups for path in paths], flops


def _path(recorder: InstructionRecorder) -> ControlFlowPath:
    shape = (len(recorder.base), recorder.workgroups.size)
    base, template = np.empty(shape, np.int64), np.empty(shape, np.int32)
    for i, (b, t) in enumerate(zip(recorder.base, recorder.template, strict=True)):
        base[i], template[i] = b, t
    return ControlFlowPath(recorder.workgroups, base, template)


def assemble(paths: list[ControlFlowPath], templates: Templates, kernel: Any, line_bytes: int) -> Trace:
    """Trace of all paths, each workgroup's instructions in program order."""
    total = sum(path.workgroups.size for path in paths)
    counts = np.zeros(total, np.int64)
    for path in paths:
        counts[path.workgroups] = (path.template >= 0).sum(axis=0)
    if not counts.any():
        raise CaptureError(f"no workgroup of {kernel.launch.function} loads or stores anything")
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    base, template = np.empty(start[-1], np.int64), np.empty(start[-1], np.int32)
    for path in paths:
        keep = path.template.T >= 0
        own = counts[path.workgroups]
        to = np.arange(own.sum()) + np.repeat(start[path.workgroups] - (np.cumsum(own) - own), own)
        base[to], template[to] = path.base.T[keep], path.template.T[keep]
    sizes = [touched.line.size for touched in templates.touched]
    return Trace(
        line_bytes=line_bytes,
        tensors=kernel.space.tensors(line_bytes),
        start=start,
        base=base,
        template=template,
        rel_start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        rel=np.concatenate([touched.line for touched in templates.touched]).astype(np.int32),
        sectors=np.concatenate([touched.sectors for touched in templates.touched]),
        wave_requests=np.concatenate([touched.wave_requests for touched in templates.touched]),
        waves=np.stack([touched.waves for touched in templates.touched]),
        is_write=np.array([write for _, write in templates.owner], bool),
        tensor=np.array([tensor for tensor, _ in templates.owner], np.int32),
    )
