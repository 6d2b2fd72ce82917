"""A cache as 32-bit words: set ``s`` of ``w`` ways is ``words[s * w : (s + 1) * w]``, and a word is one line.

    bit  31 ............ 6   5 4     3 2 1 0
         |   tag + 1     | valid  |  dirty  |        0 is an empty way

``dirty``: request-sized pieces of the line that were stored to. ``valid``: pieces that are there, of a cache that
fetches half lines; else the lower bit stands for the whole line. Set and tag give the line (`xcd_model.cache.locate`).
The dirty pieces and those that a touch wants are its ``marks``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from xcd_model.errors import TraceError
from xcd_model.spec.gpu import Cache

DIRTY_BITS = 4
FILL_BITS = 2  # most pieces in which a line is fetched
MARK_BITS = DIRTY_BITS + FILL_BITS
DIRTY = (1 << DIRTY_BITS) - 1
VALID = ((1 << FILL_BITS) - 1) << DIRTY_BITS
MARKS = (1 << MARK_BITS) - 1
WORD = (1 << 32) - 1
HIT, PARTLY = 1, 16  # no line's word: what a look-up returns of a line that is there, with all that is wanted or not


@njit(cache=True)
def _popcount4(dirty):
    """Dirty pieces of a word: ones among its four low bits."""
    return (dirty & 1) + ((dirty >> 1) & 1) + ((dirty >> 2) & 1) + ((dirty >> 3) & 1)


@njit(inline="always")
def _fetched(victim, marks):
    """Pieces that a miss fetches: the one that lacked of a line partly there, else all that the touch wants."""
    wanted = np.int64(marks) >> DIRTY_BITS
    return np.int64(1) if victim == PARTLY else (wanted & 1) + (wanted >> 1)


def check_tags(highest_line: int, cache: Cache, name: str, *, mark_bits: int = MARK_BITS) -> None:
    """Refuse a trace whose tags would not fit a word.

    Raises
    ------
    TraceError
        If ``highest_line // cache.sets`` is over 2**(32 - mark_bits) - 2.
    """
    max_tag = (1 << (32 - mark_bits)) - 2
    if highest_line // cache.sets > max_tag:
        limit = max_tag * cache.sets * cache.line_bytes
        raise TraceError(
            f"line {highest_line} does not fit the tags of {name}: the model addresses {limit} B there; use smaller "
            "tensors"
        )
