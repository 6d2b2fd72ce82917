"""Triton source of the suite's batched GEMM: one output tile of one product a workgroup, on a 3-D grid.

Source: the blocked product of the Triton documentation's matrix multiplication tutorial with the batch as the third
axis of the launch, written anew without an order of its own.
"""

import triton
import triton.language as tl


@triton.jit
def batched_gemm(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """C[z] = A[z] B[z] for row-major A (BATCH, M, K), B (BATCH, K, N), C (BATCH, M, N), accumulated in fp32."""
    pid_n = tl.program_id(0)
    pid_m = tl.program_id(1)
    batch = tl.program_id(2).to(tl.int64)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    a_base = batch * M * K
    b_base = batch * K * N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + a_base + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + b_base + inner[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = (rows[:, None] < M) & (cols[None, :] < N)
    out = acc.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + batch * M * N + rows[:, None] * N + cols[None, :], out, mask=c_mask)
