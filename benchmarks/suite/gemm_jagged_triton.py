"""Triton source of the suite's jagged GEMM: rows of groups packed one after the other, each group by its own matrix.

Source: the jagged product of HSTU's recommendation models (facebookresearch/generative-recommenders) as ROCm/aiter PR
4042 lays it out, matrices transposed beforehand and an early exit beyond a group's end; written anew, no order of its
own.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_jagged(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    offset_ptr,
    N,
    K,
    BLOCKS,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """C[r] = A[r] B[g]^T + bias[g] for rows r of group g: A (ROWS, K), B (GROUPS, N, K), C (ROWS, N), sums in fp32."""
    pid = tl.program_id(0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    row_tile = pid // num_pid_n
    pid_n = pid % num_pid_n
    group = row_tile // BLOCKS
    first = tl.load(offset_ptr + group) + row_tile % BLOCKS * BLOCK_M
    end = tl.load(offset_ptr + group + 1)
    if first >= end:
        return
    rows = first + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b_base = group.to(tl.int64) * N * K
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < end) & (inner[None, :] < K)
        b_mask = (cols[:, None] < N) & (inner[None, :] < K)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + b_base + cols[:, None] * K + inner[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, tl.trans(b), acc)
    bias = tl.load(bias_ptr + group * N + cols, mask=cols < N, other=0.0)
    out = (acc + bias[None, :].to(tl.float32)).to(c_ptr.dtype.element_ty)
    c_mask = (rows[:, None] < end) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], out, mask=c_mask)
