"""How fast an SM takes in what the L2 sends, when other SMs ask for theirs at the same time.

    in step = mean over loads of the sum over the other workgroups that run of  min(1, their loads of tiles that this
              one loads, too / loads of the operand that it loads most)  / others that run
    a request takes  alone + in step * (together - alone)

Workgroups that wait for the same lines go on together: whoever is ahead waits for memory, and whoever follows finds the
lines there. So they load at the same time, and the L2 gives out what they ask for in turn. ``alone`` is the time of a
request at the rate of the SM's own way in, ``together`` at its part of what the L2 gives out; both are measured, and
no constant is fitted. Orders of a GEMM whose rows or columns of tiles are wide run so (decision 0059).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from xcd_model.trace.tiles import tile_numbers
from xcd_model.trace.trace import Trace

WINDOWS = 4  # of the order, each as many workgroups as run at once, evenly spaced
ASKED = 8  # workgroups of each window, evenly spaced


def _spaced(n: int, last: int) -> list[int]:
    """Of 0 to ``last``, ``n`` evenly spaced, once each."""
    return sorted({last * i // (n - 1) for i in range(n)})


def share_in_step(trace: Trace, order: np.ndarray, running: int) -> Fraction:
    """Share of the other workgroups that run with which one is in step.

    Parameters
    ----------
    trace : Trace
    order : (n_workgroups,) int array
        Workgroups of the trace, as they are dispatched.
    running : int
        Workgroups that run at once, at least 1.

    Returns
    -------
    share : Fraction
        0 where no two load the same, to 1 where all load the same.
    """
    n = min(running, order.size)
    found = [one for begin in _spaced(WINDOWS, order.size - n) for one in _shares(trace, order[begin : begin + n])]
    loads = sum(weight for weight, _ in found)
    return sum((weight * share for weight, share in found), Fraction(0)) / max(loads, 1)


def _shares(trace: Trace, workgroups: np.ndarray) -> list[tuple[int, Fraction]]:
    """Loads of each workgroup that is asked, and with what share of the others it is in step."""
    n, start = workgroups.size, trace.start[workgroups]
    counts = trace.start[workgroups + 1] - start
    end = np.cumsum(counts)
    instruction = np.repeat(start - end + counts, counts) + np.arange(end[-1] if n else 0)
    of = np.repeat(np.arange(n), counts)
    loads = ~trace.is_write[trace.template[instruction]]
    instruction, of = instruction[loads], of[loads]
    tile, tensor = tile_numbers(trace)[instruction], trace.tensor[trace.template[instruction]]
    at = np.searchsorted(of, np.arange(n + 1))
    wanted = np.zeros(int(tile.max(initial=0)) + 1, np.bool_)
    found = []
    for one in _spaced(ASKED, n - 1) if n > 1 else ():
        mine = slice(at[one], at[one + 1])
        if at[one] == at[one + 1]:
            continue
        wanted[tile[mine]] = True
        most = int(np.bincount(tensor[mine]).max())
        both = np.minimum(np.bincount(of[wanted[tile]], minlength=n), most)
        share = Fraction(int(both.sum() - both[one]), most * (n - 1))
        found.append((int(at[one + 1] - at[one]), share))
        wanted[tile[mine]] = False
    return found


def fill_time(trace: Trace, order: np.ndarray, running: int, alone: int, together: int) -> int:
    """Time [fs] of a request that an SM takes in: ``alone`` to ``together``, by the share of SMs in step."""
    return round(alone + share_in_step(trace, order, running) * max(0, together - alone))
