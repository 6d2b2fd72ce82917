"""Small launches of every kernel of the suite, whole and ragged, as its own lattice of other grids has them."""

from swizzle_sim.workload.kernels import kernel, kernel_names

NAMES = kernel_names()
DEPTH = {  # of kernels whose grid says nothing of how deep their loops are
    "conv_2d": {"C": 40},
    "gemm_splitk": {"K": 600, "SPLITS": 3},
    "gemm_streamk": {"M": 400, "N": 600, "K": 90, "PROGRAMS": 7},
}


def small(name):
    """Sizes at the smallest of these grids that has four workgroups, with few steps of a product."""
    depth = DEPTH.get(name, {"K": 90} if "K" in kernel(name).problem else {})
    grids = [(grid, sizes) for grid, sizes in kernel(name, **depth).at_grids() if grid.num_pids >= 4]
    least = min(grid.num_pids for grid, _ in grids)
    return [sizes for grid, sizes in grids if grid.num_pids == least]
