"""GEMM in clusters: a program is a cluster of CTAS workgroups that share out a tile's rows and get its B by multicast.

The Triton source is that of the plain `gemm`, launched with ``num_ctas``: ids are those of programs, so that a swizzle
moves whole clusters. Workgroup j of a cluster has the j-th part of the tile's rows of A and C, and fetches the j-th
part of each step's B, which all of them get; without MULTICAST each fetches all of B. The default is 8192^3 in tiles of
256 x 128 by two workgroups.
Sources: CUTLASS documentation (Hopper GEMM in clusters, TMA multicast); ROCm/rocm-libraries PR 10189 (clusters of
gfx1250 whose workgroups along M get B by multicast).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Launch
from xcd_model import Clusters
from xcd_model.errors import SizeError

from .base import resources
from .gemm import gemm
from .gemm import launch as launch_of_gemm

NAME = "gemm_cluster"
NUM_WARPS = 4
NUM_STAGES = 2
MOST_CTAS = 16
# (a workgroup's tile, waves): (VGPRs, LDS bytes), of the plain kernel
COMPILED = {((128, 128, 64), NUM_WARPS): (248, 32 * 1024)}

SHARING = """\
Workgroups are dispatched in clusters of CTAS, together to one XCD, and program (m, n) is one cluster. Its workgroups
read row panel m of A, a CTAS-th of its rows each, and column panel n of B, a BLOCK_K slice of each per step; one fetch
of B serves them all if MULTICAST is 1. They write tile (m, n) of C once, their rows each. Programs of one tile row
share the A panel, programs of one tile column the B panel, and nothing else is shared."""


def gemm_cluster(
    *,
    M: int = 8192,
    N: int = 8192,
    K: int = 8192,
    BLOCK_M: int = 256,
    BLOCK_N: int = 128,
    BLOCK_K: int = 64,
    CTAS: int = 2,
    MULTICAST: bool = True,
) -> Kernel:
    """GEMM of row-major fp16 matrices by clusters of workgroups.

    Parameters
    ----------
    M, N, K : int
        A is (M, K), B is (K, N), C is (M, N).
    BLOCK_M, BLOCK_N, BLOCK_K : int
        Tile of a program; powers of two from 16 to 1024.
    CTAS : int
        Workgroups of a program, a power of two from 2 to 16 with at least 16 rows of the tile each.
    MULTICAST : bool
        Whether one fetch of B serves a cluster; if not, each of its workgroups fetches B for itself, as in the code
        that Triton 3.9 makes for Hopper.

    Returns
    -------
    Kernel

    Raises
    ------
    SizeError
        If CTAS or a block is no power of two in range, or the problem is too large to trace.
    """
    sizes = {"M": M, "N": N, "K": K, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K}
    if CTAS & (CTAS - 1) or not 2 <= CTAS <= min(MOST_CTAS, BLOCK_M // 16):
        raise SizeError(
            f"{NAME}: CTAS = {CTAS}, BLOCK_M = {BLOCK_M}: a cluster is a power of two from 2 to {MOST_CTAS} workgroups "
            "of at least 16 rows each"
        )
    plain, cluster = gemm(**sizes), {"CTAS": CTAS, "MULTICAST": int(MULTICAST)}
    tile = (BLOCK_M // CTAS, BLOCK_N, BLOCK_K)
    return replace(
        plain,
        name=NAME,
        summary="C = A B, fp16, a cluster of workgroups a tile, B by multicast",
        problem={**sizes, **cluster},
        resources=resources(COMPILED, tile, num_warps=NUM_WARPS, in_flight=2 * NUM_STAGES, loads_per_step=2),
        sharing=SHARING,
        sources=("CUTLASS documentation (clusters, TMA multicast)", "ROCm/rocm-libraries PR 10189 (gfx1250)"),
        clusters=Clusters(size=CTAS, common=("B",), multicast=bool(MULTICAST)),
        at_grids=lambda: [(grid, {**at, **cluster}) for grid, at in plain.at_grids()],
        make_launch=lambda: launch(sizes, CTAS),
    )


def launch(sizes: Mapping[str, int], ctas: int) -> Launch:
    """Launch of the Triton kernel of `gemm` at one size, each program a cluster."""
    options = {"num_ctas": ctas}
    return replace(launch_of_gemm(sizes), num_warps=NUM_WARPS, num_stages=NUM_STAGES, options=options)
