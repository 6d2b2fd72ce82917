"""Triton source of the suite's split-K GEMM: one row of ids over output tiles and splits, the split counted fastest.

Source: the unified ids of ROCm/aiter's GEMMs with NUM_KSPLIT, and their fp32 partial products for a second launch to
join; written anew without a remap, so that the order of the unified ids is wholly the swizzle's.
"""

import triton
import triton.language as tl


@triton.jit
def gemm_splitk(
    a_ptr,
    b_ptr,
    part_ptr,
    M,
    N,
    K,
    SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """part[s] = A[:, k(s)] B[k(s), :], k(s) the K of split s: A (M, K), B (K, N), part (SPLITS, M, N) in fp32."""
    pid = tl.program_id(0)
    split = pid % SPLITS
    tile = pid // SPLITS
    num_pid_n = tl.cdiv(N, BLOCK_N)
    pid_m = tile // num_pid_n
    pid_n = tile % num_pid_n
    share = tl.cdiv(tl.cdiv(K, BLOCK_K), SPLITS) * BLOCK_K
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(split * share, tl.minimum(K, (split + 1) * share), BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(part_ptr + split * M * N + rows[:, None] * N + cols[None, :], acc, mask=c_mask)
