"""The check that a persistent kernel is its tiles: program p does what tiles p, p + programs, ... do, one by one."""

from __future__ import annotations

import numpy as np

from xcd_model import Trace
from xcd_model.errors import CaptureError


def check_tiles(name: str, tiles: Trace, programs: Trace) -> None:
    """Refuse a trace by tile that is not the launch's, instruction by instruction and line by line.

    Parameters
    ----------
    name : str
        Of the kernel.
    tiles : Trace
        Of as many programs as there are tiles.
    programs : Trace
        Of the launch as it is.

    Raises
    ------
    CaptureError
        If some program does something else than its tiles; names the first.
    """
    step = programs.n_workgroups
    owner = np.arange(tiles.n_workgroups) % step
    order = np.argsort(owner, kind="stable")
    counts = np.diff(tiles.start)[order]
    at = np.repeat(tiles.start[:-1][order] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    wanted = np.bincount(owner, np.diff(tiles.start), minlength=step).astype(np.int64)
    if tiles.tensors != programs.tensors:
        raise _refuse(name, "the tensors depend on the number of programs")
    if np.any(wanted != np.diff(programs.start)):
        p = int(np.argmax(wanted != np.diff(programs.start)))
        has = int(np.diff(programs.start)[p])
        raise _refuse(name, f"program {p} has {has} tensor instructions, its tiles one by one {wanted[p]}")
    numbers: dict[tuple, int] = {}
    own, other = _numbers(tiles, numbers)[tiles.template[at]], _numbers(programs, numbers)[programs.template]
    differs = (own != other) | (tiles.base[at] != programs.base)
    if np.any(differs):
        p = int(np.searchsorted(programs.start, int(np.argmax(differs)), side="right")) - 1
        raise _refuse(name, f"program {p} touches other lines than its tiles one by one")


def _numbers(trace: Trace, known: dict[tuple, int]) -> np.ndarray:
    """Number of each template by its content, (n_templates,) int64."""
    found = []
    for t in range(trace.rel_start.size - 1):
        span = slice(int(trace.rel_start[t]), int(trace.rel_start[t + 1]))
        parts = (trace.rel[span], trace.sectors[span], trace.wave_requests[span])
        content = (bool(trace.is_write[t]), int(trace.tensor[t]), *(part.tobytes() for part in parts))
        found.append(known.setdefault(content, len(known)))
    return np.array(found, np.int64)


def _refuse(name: str, what: str) -> CaptureError:
    return CaptureError(
        f"{name} is declared with programs=..., and {what}: without programs= its programs are counted, not its tiles",
        code="mismatch",
    )
