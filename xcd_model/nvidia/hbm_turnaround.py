"""Read-write turnaround of the HBM: extra read latency while memory also writes (modelled for NVIDIA's H200).

    wait ~ uniform on [0, 2 * mean],    mean = turnaround * min(1, busy, 4 * writing)

where busy and writing are shares of the last microsecond: a read may come at any moment of what its channel is at, and
from a quarter of writes on, more of them make it wait no longer.

Source: measured on one H200, docs/decisions/0022-the-h200-beside-the-mi300x.md; JEDEC's names for what
a channel loses when it changes direction are tWTR and tRTW.
"""

from __future__ import annotations

import numpy as np

from xcd_model.numba_setup import njit
from xcd_model.splitmix import _mix

WINDOW_FS = 1_000_000_000
PICO = 1000
WRITES_COUNT = 4  # from a quarter of the time on, more writes make reads wait no longer


def idle_memory() -> np.ndarray:
    """(5,) int64 of a memory that has served nothing: the window, busy and writing [fs] before it, and in it."""
    return np.zeros(5, np.int64)


@njit(inline="always")
def _note_busy(recent, at, busy_fs, writing_fs):
    """Add service that ended ``at`` [fs] to the window of that time; ends never go back."""
    window = at // WINDOW_FS
    if window > recent[0]:
        follows = window == recent[0] + 1
        recent[1] = min(recent[3], WINDOW_FS) if follows else 0
        recent[2] = min(recent[4], WINDOW_FS) if follows else 0
        recent[0], recent[3], recent[4] = window, 0, 0
    recent[3] += busy_fs
    recent[4] += writing_fs


@njit(inline="always")
def _turnaround(recent, at, most_fs):
    """Extra latency of a read served ``at`` [fs]; ``most_fs``: its mean in a memory that is busy all the time."""
    before = WINDOW_FS - at % WINDOW_FS  # how much of the last microsecond is the window before
    busy = recent[1] // PICO * (before // PICO) // (WINDOW_FS // PICO) + recent[3] // PICO
    writing = recent[2] // PICO * (before // PICO) // (WINDOW_FS // PICO) + recent[4] // PICO
    share = min(WINDOW_FS // PICO, busy, WRITES_COUNT * writing)
    mean = most_fs * share // (WINDOW_FS // PICO)
    return np.int64(_mix(np.uint64(at)) % np.uint64(2 * mean + 1))
