"""GEMM in clusters: a program is a cluster of CTAS workgroups that share out a tile's rows and get its B by multicast.

The Triton source is that of the plain `gemm`, launched with ``num_ctas``: ids are those of programs, so that a swizzle
moves whole clusters. Workgroup j of a cluster has the j-th part of the tile's rows of A and C, and fetches the j-th
part of each step's B, which all of them get; without MULTICAST each fetches all of B, as in the code that Triton 3.9
makes for Hopper. The default is 8192^3 in tiles of 256 x 128 by two workgroups.
"""

from dataclasses import replace

from xcd_model import Clusters

from .gemm import gemm

gemm_cluster = replace(
    gemm,
    name="gemm_cluster",
    summary="C = A B, fp16, a cluster of workgroups a tile, B by multicast",
    sharing="""\
Workgroups are dispatched in clusters of CTAS, together to one XCD, and program (m, n) is one cluster. Its workgroups
read row panel m of A, a CTAS-th of its rows each, and column panel n of B, a BLOCK_K slice of each per step; one fetch
of B serves them all if MULTICAST is 1. They write tile (m, n) of C once, their rows each. Programs of one tile row
share the A panel, programs of one tile column the B panel, and nothing else is shared.""",
    sources=("CUTLASS documentation (clusters, TMA multicast)", "ROCm/rocm-libraries PR 10189 (gfx1250)"),
    sizes={**gemm.sizes, "BLOCK_N": 128, "CTAS": 2, "MULTICAST": True},
    derived={"rows": lambda s: s.BLOCK_M // s.CTAS},  # of a workgroup
    rules={
        "CTAS = {s.CTAS}, BLOCK_M = {s.BLOCK_M}: a cluster is a power of two from 2 to 16 workgroups of at least 16 "
        "rows each": lambda s: not s.CTAS & (s.CTAS - 1) and 2 <= s.CTAS <= min(16, s.BLOCK_M // 16)
    },
    compiled={((128, 128, 64), 4): (248, 32 * 1024)},  # of the plain kernel
    tile="rows BLOCK_N BLOCK_K",
    estimate=None,
    num_warps=4,
    options=lambda s: {"num_ctas": s.CTAS},
    more=lambda s: {"clusters": Clusters(size=s.CTAS, common=("B",), multicast=bool(s.MULTICAST))},
    triton="gemm_triton.py",
    function="gemm",
)
