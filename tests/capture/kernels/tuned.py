"""An autotuned matrix multiplication: two configurations of one tile, another, one that spills and one too large."""

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel

TILES = ((32, 64, 4), (32, 64, 8), (64, 32, 4), (64, 64, 2), (64, 64, 1))  # rows, columns, warps
CONFIGS = [triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=warps) for m, n, warps in TILES]


@triton.autotune(configs=CONFIGS, key=["K"])
@triton.jit
def matmul(a, b, c, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """C = A B of whole tiles."""
    pid = tl.program_id(0)
    columns = N // BLOCK_N
    rows = pid // columns * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid % columns * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        depth = k + tl.arange(0, BLOCK_K)
        left = tl.load(a + rows[:, None] * K + depth[None, :])
        total = tl.dot(left, tl.load(b + depth[:, None] * N + cols[None, :]), total)
    tl.store(c + rows[:, None] * N + cols[None, :], total.to(tl.float16))


kernel = Kernel(
    matmul,
    sizes={"M": 512, "N": 512, "K": 64},
    arguments=lambda s: {
        "a": Array(shape=(s.M, s.K), dtype="fp16"), "b": Array(shape=(s.K, s.N), dtype="fp16"),
        "c": Array(shape=(s.M, s.N), dtype="fp16", role="out"), "N": s.N, "K": s.K,
    },
    constexprs={"BLOCK_K": 32},
    grid=lambda s: (s.M // s.BLOCK_M * (s.N // s.BLOCK_N),),
    tiles=lambda s: (s.M // s.BLOCK_M, s.N // s.BLOCK_N),
)  # fmt: skip
