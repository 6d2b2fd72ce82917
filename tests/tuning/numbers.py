"""A product whose blocks are numbers: in the kernel, by a name of it, and by a name of the file."""

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel

TILE = tl.constexpr(64)  # columns


@triton.jit
def product(a, b, c, M, N, K):
    # which tile
    pid = tl.program_id(0)
    STEP: tl.constexpr = 32  # of K
    columns = tl.cdiv(N, TILE)
    rows = pid // columns * 256 + tl.arange(0, 256)  # rows of the tile
    cols = pid % columns * TILE + tl.arange(0, TILE)
    total = tl.zeros((256, TILE), tl.float32)
    for k in range(0, K, STEP):
        depth = k + tl.arange(0, STEP)
        inside = depth < K
        left = tl.load(a + rows[:, None] * K + depth[None, :], (rows[:, None] < M) & inside[None, :], 0.0)
        right = tl.load(b + depth[:, None] * N + cols[None, :], inside[:, None] & (cols[None, :] < N), 0.0)
        total = tl.dot(left, right, total)
    stored = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c + rows[:, None] * N + cols[None, :], total.to(tl.float16), mask=stored)


kernel = Kernel(
    product,
    sizes={"M": 512, "N": 256, "K": 64},
    arguments=lambda s: {
        "a": Array(shape=(s.M, s.K), dtype="fp16"), "b": Array(shape=(s.K, s.N), dtype="fp16"),
        "c": Array(shape=(s.M, s.N), dtype="fp16", role="out"), "M": s.M, "N": s.N, "K": s.K,
    },
    grid=lambda s: (triton.cdiv(s.M, 256) * triton.cdiv(s.N, 64),),
    tiles=lambda s: (triton.cdiv(s.M, 256), triton.cdiv(s.N, 64)),
)  # fmt: skip
