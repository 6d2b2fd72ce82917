"""The door for integers of callers: Python's and NumPy's are taken; True, fractions and text are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcd_model.errors import SwizzleSimError


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def wholes(values: Any, what: str, error: type[SwizzleSimError]) -> np.ndarray:
    """Array of integers of 64 bits, masks as 0 and 1; raise ``error`` where one is no integer, or is beyond them."""
    try:
        found = np.asarray(values)
        if found.dtype == bool and found.ndim:
            return found.astype(np.int64)
        if found.dtype.kind in "iu" and (found.dtype != np.uint64 or not found.size or found.max() < 2**63):
            return found.astype(np.int64, copy=False)
    except (OverflowError, ValueError):
        pass
    raise error(f"{what}: {str(values)[:60]} are no integers of 64 bits")
