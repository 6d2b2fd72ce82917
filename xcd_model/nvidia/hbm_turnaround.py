"""Reads that come between writes: a memory channel that is writing lets them wait, one that only reads hardly does.

How long is drawn evenly from nothing to twice the mean, since a read may come at any moment of what its channel is at.
The mean grows with the part of the last microsecond that memory was busy, and with the part of it that was writing, up
to a quarter.

Source: measured on one H200, docs/decisions/0023-reads-between-writes-and-a-workgroups-start.md.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xcd_model.splitmix import _mix

WINDOW_FS = 1_000_000_000
PICO = 1000
WRITES_COUNT = 4  # from a quarter of the time on, more writes make reads wait no longer


def nothing_yet() -> np.ndarray:
    """Of a memory not asked for anything yet, (5,) int64: the window, busy and writing before it, and in it."""
    return np.zeros(5, np.int64)


@njit(inline="always")
def _note_busy(recent, at, busy_fs, writing_fs):
    """Note that memory was busy, and of that writing, with what it ended ``at`` [fs]; ends never go back."""
    window = at // WINDOW_FS
    if window > recent[0]:
        follows = window == recent[0] + 1
        recent[1] = min(recent[3], WINDOW_FS) if follows else 0
        recent[2] = min(recent[4], WINDOW_FS) if follows else 0
        recent[0], recent[3], recent[4] = window, 0, 0
    recent[3] += busy_fs
    recent[4] += writing_fs


@njit(inline="always")
def _mixed_wait(recent, at, most_fs):
    """What a read that memory sends off ``at`` [fs] waits longer, given the mean of a memory that is always busy."""
    before = WINDOW_FS - at % WINDOW_FS  # how much of the last microsecond is the window before
    busy = recent[1] // PICO * (before // PICO) // (WINDOW_FS // PICO) + recent[3] // PICO
    writing = recent[2] // PICO * (before // PICO) // (WINDOW_FS // PICO) + recent[4] // PICO
    share = min(WINDOW_FS // PICO, busy, WRITES_COUNT * writing)
    mean = most_fs * share // (WINDOW_FS // PICO)
    return np.int64(_mix(np.uint64(at)) % np.uint64(2 * mean + 1))
