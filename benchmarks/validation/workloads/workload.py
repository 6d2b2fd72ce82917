"""`Workload`: what a prediction needs of a kernel, and no more; the scorer takes it as it takes a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from swizzle_sim.language import Grid
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Claims, Clusters, Resources, Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """One kernel at one size."""

    name: str
    problem: Mapping[str, int]
    dtype: str  # type of the arithmetic, a key of ``Gpu.peak_tflops``
    resources: Resources
    flops: float
    issued_flops: float
    # ``build_trace(line_bytes) -> Trace``, one workgroup a tile
    build_trace: Callable[[int], Trace] = field(repr=False)
    grid: tuple[int, ...] = ()  # workgroups launched, x fastest: what a formula is over
    tiles: tuple[int, int] = (1, 1)  # rows and columns of tiles: what a named order is over
    # ``schedule(order, xcds) -> tiles`` where a workgroup computes more than one tile, or none
    schedule: Callable[[str, int], np.ndarray] | None = field(repr=False, default=None)
    vector_ops: float = 0.0
    programs: int | None = None
    claims: Claims | None = None
    clusters: Clusters | None = None
    launches: int = 1  # launches in a row that the counts are taken after
    # what a swizzle of the closed language is over, where that is not the workgroups of ``grid`` and ``tiles``
    swizzled: Grid | None = None
    note: str = ""  # what was shortened, and why that changes nothing
    # constants of this description that were fitted to measured rows: ids of those rows, by the constant's name
    fitted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
        return cls(
            name=kernel.name,
            problem=kernel.problem,
            dtype=kernel.dtype,
            resources=kernel.resources,
            flops=kernel.flops,
            issued_flops=kernel.issued_flops,
            vector_ops=kernel.vector_ops,
            build_trace=kernel.build_trace,
            grid=kernel.grid.launch,
            programs=kernel.programs,
            claims=kernel.claims,
            clusters=kernel.clusters,
            launches=kernel.launches,
            swizzled=kernel.grid,
            fitted=kernel.fitted,
        )
