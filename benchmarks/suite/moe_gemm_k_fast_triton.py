"""Triton source of the suite's fused MoE GEMM with weights (EXPERTS, N, K), as vLLM keeps them."""

import triton
import triton.language as tl


@triton.jit
def moe_gemm_k_fast(
    a_ptr,
    b_ptr,
    c_ptr,
    bound_ptr,
    slot_ptr,
    expert_ptr,
    N,
    K,
    ROWS,
    TOPK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """C[s] = A[s // TOPK] B[e(s)] for the slots s of each block: A (TOKENS, K), B (E, N, K), C (ROWS, N)."""
    pid = tl.program_id(0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    tile = pid // num_pid_n
    pid_n = pid % num_pid_n
    bound = tl.load(bound_ptr)
    if tile * BLOCK_M >= bound:
        return
    slots = tl.load(slot_ptr + tile * BLOCK_M + tl.arange(0, BLOCK_M))
    expert = tl.load(expert_ptr + tile)
    real = slots < ROWS
    rows = slots // TOPK
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b_base = expert.to(tl.int64) * K * N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = real[:, None] & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + b_base + cols[None, :] * K + inner[:, None], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = real[:, None] & (cols[None, :] < N)
    tl.store(c_ptr + slots[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty), mask=c_mask)
