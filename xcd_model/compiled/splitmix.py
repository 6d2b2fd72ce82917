"""Scrambling integers: draws that are the same on every machine, and hashes."""

from __future__ import annotations

import numpy as np

from xcd_model.compiled.numba_inline import inlined


@inlined
def _mix(x):
    """Scramble 64 bits. Source: Steele, Lea and Flood, OOPSLA 2014 (SplitMix64)."""
    x = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
