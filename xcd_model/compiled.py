"""How the replays are compiled."""

from __future__ import annotations

import functools
from typing import Any

import numba

_njit: Any = numba.njit  # its stubs do not know _nrt

# Cached, without the interpreter's lock, and without numba's reference counting, which makes a replay three to ten
# times slower: it counts references to every array of a tuple that is passed on. In return nothing inside may allocate.
uncounted = functools.partial(_njit, cache=True, nogil=True, error_model="numpy", _nrt=False)
