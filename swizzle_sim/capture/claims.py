"""Tiles that programs claim from atomic counters, where each program of the launch stands for one tile.

The counters hand out what they hold in the order of program ids, to each program until it touches anything else: that
is its tile. Afterwards they are at the number of programs, so that every program leaves its loop.
"""

from __future__ import annotations

import numpy as np

from xcd_model.errors import CaptureError

MOST_CLAIMS = 64  # of one program: to its tile in each pool that it asks, and to learn that none is left


class TileClaims:
    """Values that atomic adds to counters give, all counters at 0 when the launch begins."""

    def __init__(self, n_programs: int):
        self._given: dict[int, np.ndarray] = {}  # by the how-manieth claim of a program: its value, -1 where unknown
        self._next: dict[int, int] = {}  # by the address of a counter
        self._programs = n_programs

    def values(self, turn: int, address: np.ndarray, programs: np.ndarray) -> np.ndarray:
        """Values of the claims that rising ``programs`` make of counters before they have a tile, all (n,) int64."""
        given = self._given.setdefault(turn, np.full(self._programs, -1, np.int64))
        new = given[programs] < 0
        for counter in np.unique(address[new]).tolist():
            mine = programs[new & (address == counter)]
            first = self._next.get(counter, 0)
            given[mine] = first + np.arange(mine.size)
            self._next[counter] = first + mine.size
        return given[programs]

    def spent(self, turn: int) -> int:
        """Value of the claims that a program makes after it has had its tile."""
        if turn > MOST_CLAIMS:
            raise CaptureError(
                f"a program claims {turn} tiles: a counter at {self._programs} does not end its "
                "loop; launch as many programs as tiles",
                code="not-followed",
            )
        return self._programs
