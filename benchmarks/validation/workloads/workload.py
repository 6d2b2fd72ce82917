"""`Workload`: what a prediction needs of a kernel, and no more; the scorer takes it as it takes a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields

import numpy as np

from swizzle_sim.language import Grid
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.work import Work


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload(Work):
    """One kernel at one size."""

    name: str
    grid: tuple[int, ...] = ()  # workgroups launched, x fastest: what a formula is over
    tiles: tuple[int, int] = (1, 1)  # rows and columns of tiles: what a named order is over
    # ``schedule(order, xcds) -> tiles`` where a workgroup computes more than one tile, or none
    schedule: Callable[[str, int], np.ndarray] | None = field(repr=False, default=None)
    # what a swizzle of the closed language is over, where that is not the workgroups of ``grid`` and ``tiles``
    swizzled: Grid | None = None
    note: str = ""  # what was shortened, and why that changes nothing

    @property
    def launched(self) -> Grid:
        """Grid that a swizzle of the closed language is over."""
        if self.swizzled is not None:
            return self.swizzled
        n = math.prod(self.grid)
        return Grid((n,), self.tiles if math.prod(self.tiles) == n else None)

    @classmethod
    def of_kernel(cls, kernel: Kernel) -> Workload:
        """Kernel of the suite, launched as its grid says."""
        same = {one.name: getattr(kernel, one.name) for one in fields(Work)}
        return cls(name=kernel.name, grid=kernel.grid.launch, swizzled=kernel.grid, **same)
