"""Triton source of the suite's grouped GEMM: tiles of tokens sorted by expert, each against its expert's matrix.

Source: the contiguous grouped layout of MoE libraries (MegaBlocks, arXiv 2211.15841; DeepGEMM), written anew with the
tile tables as plain index arrays and without an order of its own.
"""

import triton
import triton.language as tl


@triton.jit
def grouped_gemm(
    a_ptr,
    b_ptr,
    c_ptr,
    expert_ptr,
    first_row_ptr,
    end_row_ptr,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """C[r] = A[r] B[e(r)] for rows sorted by expert: A (ROWS, K), B (E, K, N), C (ROWS, N), accumulated in fp32."""
    pid = tl.program_id(0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    tile = pid // num_pid_n
    pid_n = pid % num_pid_n
    expert = tl.load(expert_ptr + tile)
    first = tl.load(first_row_ptr + tile)
    end = tl.load(end_row_ptr + tile)
    rows = first + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b_base = expert.to(tl.int64) * K * N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < end) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + b_base + inner[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = (rows[:, None] < end) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty), mask=c_mask)
