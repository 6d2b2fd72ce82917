"""A product whose steps go round the same operands; `swizzle_benchmarks.lab product-steps` times it."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product_steps(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, STEPS, N: tl.constexpr, K: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """Multiply ``STEPS`` steps of a tile of A by B transposed, again from the first one behind the last of K."""
    pid, columns = tl.program_id(0), tl.cdiv(N, BLOCK_N)
    rows = pid // columns * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid % columns * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a = a_ptr + rows[:, None] * K + depth[None, :]
    b = b_ptr + cols[None, :] * K + depth[:, None]
    in_a, in_b = (rows < M)[:, None], (cols < N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, STEPS):
        at = step % (K // BLOCK_K)
        left, right = tl.load(a, mask=in_a, other=0.0), tl.load(b, mask=in_b, other=0.0)
        if SCALED:
            scale = tl.load(a_scale_ptr + at * M + rows)
            total += tl.dot(left, right) * scale[:, None] * tl.load(b_scale_ptr + cols // 128 * (K // BLOCK_K) + at)
        else:
            total = tl.dot(left, right, total)
        onward = tl.where(at == K // BLOCK_K - 1, BLOCK_K - K, BLOCK_K)
        a += onward
        b += onward
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.bfloat16), mask=in_a & in_b)
