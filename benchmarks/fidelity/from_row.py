"""From a measured row to what is replayed: the kernel's access model, and the tiles of each hardware workgroup."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.fidelity import attention, copies, gemms, h200, mapping, orders
from benchmarks.fidelity.rows import Row
from benchmarks.fidelity.workload import Workload
from swizzle_sim.kernels import kernel, kernel_names
from xcd_model.errors import UnknownName

MAKERS: dict[str, Callable[[Row], Workload]] = {
    "copy": copies.copy,
    **{f"h200_{name}": partial(h200.make, name) for name in h200.KERNELS},
    **{name: partial(gemms.make, name) for name in gemms.KERNELS},
    **{name: partial(attention.make, name) for name in attention.KERNELS},
}


def workload(row: Row) -> Workload:
    """Build the access model that a row's kernel stands for.

    Raises
    ------
    UnknownName
        If there is no such kernel.
    """
    if row.kernel in MAKERS:
        return MAKERS[row.kernel](row)
    if row.kernel not in kernel_names():
        raise UnknownName("kernel", row.kernel, [*MAKERS, *kernel_names()])
    return Workload.of_kernel(kernel(row.kernel, **row.problem))


def tiles_of(row: Row, work: Workload, xcds: int) -> np.ndarray:
    """Tiles that each hardware workgroup computes; `mapping.NOTHING` where it computes none.

    Returns
    -------
    tiles : (n_workgroups,) or (n_workgroups, most) int64
    """
    if row.mapping:
        return mapping.tiles_of(row.mapping, work.grid, xcds)
    if work.schedule is not None:
        return work.schedule(row.order, xcds)
    return orders.tiles_of(row.order, *work.tiles, xcds)
