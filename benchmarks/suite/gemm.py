"""GEMM with plain tiles: C = A B in fp16, one output tile a workgroup, tiles numbered row-major.

Sources: shapes and tile of SwizzlePerf (arXiv 2508.20258, appendix A.2; measured there as Stream-K with 304
workgroups, which is another kernel); tile 256 x 256 x 64 is also what the ROCm gfx950 Gluon tutorials count.
"""

import numpy as np

from .declared import DOT, Declared, Sizes, Tensor, cdiv, lines_of

NUM_WARPS = 8


def access(s, build, pid, a, b, c, *_) -> None:
    """Per K step one load of A, one of B; at the end one store of C."""
    row, col = (pid[0] * s.BLOCK_M)[:, None], (pid[1] * s.BLOCK_N)[:, None]
    inner = np.arange(0, s.K, s.BLOCK_K)[None, :]
    build.step(
        build.read(a, row=row, col=inner, rows=s.BLOCK_M, cols=s.BLOCK_K),
        build.read(b, row=inner, col=col, rows=s.BLOCK_K, cols=s.BLOCK_N),
    )
    build.step(build.write(c, row=row, col=col, rows=s.BLOCK_M, cols=s.BLOCK_N))


def product(s, a, b) -> np.ndarray:
    """C, accumulated in fp32."""
    return a.astype(np.float32) @ b.astype(np.float32)


def work(s) -> tuple[float, float]:
    """Two loads a step, of BLOCK_M rows of A and BLOCK_K rows of B."""
    steps = cdiv(s.K, s.BLOCK_K)
    return 2 * steps, steps * (lines_of(s.BLOCK_M, s.BLOCK_K) + lines_of(s.BLOCK_K, s.BLOCK_N))


def estimate(s: Sizes) -> tuple[int, int, str]:
    """VGPRs and LDS of a tile nobody compiled: accumulators and as much again for operands and addresses."""
    threads = 64 * NUM_WARPS
    vgprs = max(64, 2 * s.BLOCK_M * s.BLOCK_N // threads)
    source = f"estimated: fp32 accumulators over {threads} threads plus addresses, one stage of A and B in LDS"
    return vgprs, (s.BLOCK_M + s.BLOCK_N) * s.BLOCK_K * 2, source


gemm = Declared(
    name="gemm",
    summary="C = A B, fp16, one output tile a workgroup",
    sharing="""\
Workgroup (m, n) reads row panel m of A and column panel n of B, a BLOCK_K slice of each per step, and writes tile
(m, n) of C once. Tiles of one tile row share the A panel, tiles of one tile column share the B panel, and nothing
else is shared. Tiles that run at the same time march through K together, so a slice is reused only while they are in
step.""",
    sources=("arXiv 2508.20258, appendix A.2", "ROCm gfx950-gluon-tutorials, GEMM kernels"),
    sizes={"M": 8192, "N": 8192, "K": 8192, "BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 64},
    grid="M/BLOCK_M N/BLOCK_N",
    flat=True,
    tensors={"A": Tensor("M K"), "B": Tensor("K N"), "C": Tensor("M N", role="out")},
    arguments="M N K stride_am=K stride_bk=N stride_cm=N",
    access=access,
    reference=product,
    flops=lambda s: 2.0 * s.M * s.N * s.K,
    padded="K/BLOCK_K",
    blocks={"BLOCK_M BLOCK_N BLOCK_K": DOT},
    work=work,
    compiled={((128, 128, 64), NUM_WARPS): (128, 32 * 1024), ((256, 256, 64), NUM_WARPS): (248, 64 * 1024)},
    estimate=estimate,
    staged=lambda tile: (tile[0] + tile[1]) * tile[2],
    num_warps=NUM_WARPS,
    in_flight=4,
    loads_per_step=2,
)
