"""Workgroups that run at once, and what they load: a few windows of an order, for rates that follow from the order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from xcd_model.trace.tiles import tile_numbers
from xcd_model.trace.trace import Trace

WINDOWS = 4  # of the order, each as many workgroups as run at once, evenly spaced


class Window(NamedTuple):
    """Workgroups that run at once.

    Parameters
    ----------
    n : int
        Workgroups, in the order in which they are dispatched.
    instruction, of, tile : (n_loads,) int array
        Each load's instruction, the workgroup of the window that issues it, ascending, and the tile that it loads.
    """

    n: int
    instruction: np.ndarray
    of: np.ndarray
    tile: np.ndarray


def spaced(n: int, last: int) -> list[int]:
    """Of 0 to ``last``, ``n`` evenly spaced, once each."""
    return sorted({last * i // (n - 1) for i in range(n)})


def windows(trace: Trace, order: np.ndarray, running: int) -> Iterator[Window]:
    """Windows of an order.

    Parameters
    ----------
    trace : Trace
    order : (n_workgroups,) int array
        Workgroups of the trace, as they are dispatched; those that touch nothing end as they begin, and run beside
        nobody.
    running : int
        Workgroups that run at once, at least 1.
    """
    order = order[trace.start[order] < trace.start[order + 1]]
    n = min(running, order.size)
    tiles = tile_numbers(trace)
    for first in spaced(WINDOWS, order.size - n):
        start, end = (trace.start[order[first : first + n] + i] for i in range(2))
        counts = end - start
        before = np.cumsum(counts) - counts
        instruction = np.repeat(start - before, counts) + np.arange(counts.sum())
        loads = ~trace.is_write[trace.template[instruction]]
        instruction = instruction[loads]
        yield Window(n, instruction, np.repeat(np.arange(n), counts)[loads], tiles[instruction])
