"""From a measured row to what is replayed: the kernel's access model, and the tiles of each hardware workgroup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from swizzle_sim.language import Swizzle
from swizzle_sim.workload.kernels import Kernel, kernel, kernel_names
from xcd_model import Resources, gpu
from xcd_model.errors import UnknownName

from ..rows import Row
from . import attention, copies, dense_attention, fdtd, formulas, gemms, h200, orders
from .workload import Workload

MAKERS: dict[str, Callable[[Row], Workload]] = {
    "copy": copies.copy,
    "read_passes": copies.passes,
    "attention_dense": dense_attention.make,
    "fdtd_2d": fdtd.make,
    **{f"h200_{name}": partial(h200.make, name) for name in h200.KERNELS},
    **{name: partial(gemms.make, name) for name in gemms.KERNELS},
    **{name: partial(attention.make, name) for name in attention.KERNELS},
}


def workload(row: Row) -> Workload:
    """Build the access model that a row's kernel stands for."""
    if row.kernel in MAKERS:
        return MAKERS[row.kernel](row)
    if row.kernel not in kernel_names():
        raise UnknownName("kernel", row.kernel, [*MAKERS, *kernel_names()])
    found = kernel(row.kernel, **row.problem)
    return Workload.of_kernel(replace(found, resources=_resources(found, row)) if row.resources else found)


def _resources(found: Kernel, row: Row) -> Resources:
    """What a workgroup of a suite kernel occupied where the row was measured, by another compiler than AMD's."""
    threads = found.launch.num_warps * gpu(row.gpu).limits.wave_size if found.launch else found.resources.threads
    return replace(
        found.resources,
        threads=threads,
        vgprs=row.resources.get("registers", found.resources.vgprs),
        lds_bytes=row.resources.get("shared_bytes", found.resources.lds_bytes),
        source="as the profiler reports them",
    )


def tiles_of(row: Row, work: Workload, xcds: int) -> np.ndarray:
    """Tiles that each hardware workgroup computes; `mapping.NOTHING` where it computes none.

    Returns
    -------
    tiles : (n_workgroups,) or (n_workgroups, most) int64
    """
    if formulas.is_formula(row.mapping):
        return formulas.tiles_of(row.mapping, work.grid, xcds)
    if row.mapping:
        swizzle = Swizzle.parse(row.mapping, name=row.order, filename=row.id)
        return swizzle.permutation(work.launched, xcds, row.problem)
    if work.schedule is not None:
        return work.schedule(row.order, xcds)
    return orders.tiles_of(row.order, *work.tiles, xcds)
