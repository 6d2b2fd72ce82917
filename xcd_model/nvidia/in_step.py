"""How fast an SM takes in what the L2 sends, when other SMs ask for theirs at the same time.

    shared(i, j)  loads of workgroup j of tiles that workgroup i loads, too
    most(i)       loads of i of the operand that it loads most
    in step(i)    mean of min(1, shared(i, j) / most(i)) over the others j that run beside i
    a request takes  alone + in step * (together - alone),  in step being the mean over loads

Workgroups that wait for the same lines load at the same time: whoever is ahead waits for memory, and whoever follows
finds the lines there. What they ask for the L2 gives out in turn. ``alone`` is the time of a request at the rate of the
SM's own way in, ``together`` at its part of what the L2 gives out; both are measured, no constant is fitted. Where the
L2 has room for all that the workgroups load which run at once, nobody waits for memory, and nobody is in step. Four
windows of the order are looked at, and eight workgroups of each. Decision 0022.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from xcd_model.nvidia.at_once import Window, spaced, windows
from xcd_model.trace.tiles import touch_more
from xcd_model.trace.trace import Trace

ASKED = 8  # workgroups of each window, evenly spaced


def share_in_step(trace: Trace, order: np.ndarray, running: int, l2_lines: int) -> Fraction:
    """Share of the other workgroups that run with which one is in step.

    Parameters
    ----------
    trace, order, running
        See `xcd_model.nvidia.at_once.windows`.
    l2_lines : int
        Lines that the L2 has room for.

    Returns
    -------
    share : Fraction
        0 where no two load the same, to 1 where all load the same.
    """
    found = [one for window in windows(trace, order, running) for one in _shares(trace, window, l2_lines)]
    loads = sum(weight for weight, _ in found)
    return sum((weight * share for weight, share in found), Fraction(0)) / max(loads, 1)


def _shares(trace: Trace, window: Window, l2_lines: int) -> list[tuple[int, Fraction]]:
    """Loads of each workgroup that is asked, and with what share of the others it is in step."""
    n, instruction, of, tile = window
    tensor = trace.tensor[trace.template[instruction]]
    at = np.searchsorted(of, np.arange(n + 1))
    waits = touch_more(trace, instruction[np.unique(tile, return_index=True)[1]], l2_lines)
    wanted = np.zeros(int(tile.max(initial=0)) + 1, np.bool_)
    found = []
    for one in spaced(ASKED, n - 1) if n > 1 else ():
        mine = slice(at[one], at[one + 1])
        if at[one] == at[one + 1]:
            continue
        wanted[tile[mine]] = True
        most = int(np.bincount(tensor[mine]).max())
        shared = np.minimum(np.bincount(of[wanted[tile]], minlength=n), most)
        share = Fraction(int(shared.sum() - shared[one]), most * (n - 1)) if waits else Fraction(0)
        found.append((int(at[one + 1] - at[one]), share))
        wanted[tile[mine]] = False
    return found


def fill_time(trace: Trace, order: np.ndarray, *, running: int, cus: int, l2_lines: int, alone: int, of_l2: int) -> int:
    """Time [fs] of a request that an SM takes in.

    Parameters
    ----------
    trace, order, running, l2_lines
        See `share_in_step`.
    cus : int
        That the L2 serves.
    alone, of_l2 : int [fs]
        Time of a request at the rate of an SM's own way in, and at the rate of the L2.
    """
    busy = min(cus, running, order.size)
    share = share_in_step(trace, order, running, l2_lines)
    return round(alone + share * max(0, busy * of_l2 - alone))
