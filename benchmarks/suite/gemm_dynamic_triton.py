"""Triton source of the suite's GEMM with claimed tiles: programs stay and take a tile from an atomic counter each time.

Source: the persistent product of the Triton documentation; counters as in ROCm/tritonBLAS PRs 64 and 86, a pool for
each XCD and one for all, written anew without an order of its own.
"""

import triton
import triton.language as tl


@triton.jit
def claim(counter_ptr, pid, LOCAL: tl.constexpr, POOLS: tl.constexpr, STEAL: tl.constexpr):
    """Next tile of the program's pool, if STEAL else of the next pools in turn; where none has one, from LOCAL on."""
    pool = pid % POOLS
    tile = tl.atomic_add(counter_ptr + pool, 1) * POOLS + pool
    if STEAL:
        for step in range(1, POOLS):
            if tile >= LOCAL:
                pool = (pid + step) % POOLS
                tile = tl.atomic_add(counter_ptr + pool, 1) * POOLS + pool
    if tile >= LOCAL:
        tile = LOCAL + tl.atomic_add(counter_ptr + POOLS, 1)
    return tile


@triton.jit
def gemm_dynamic(
    a_ptr,
    b_ptr,
    c_ptr,
    counter_ptr,
    M,
    N,
    K,
    LOCAL: tl.constexpr,
    POOLS: tl.constexpr,
    STEAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """C = A B for row-major A (M x K), B (K x N), C (M x N); ``counter_ptr`` holds POOLS + 1 zeros."""
    pid = tl.program_id(0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_tiles = tl.cdiv(M, BLOCK_M) * num_pid_n
    tile = claim(counter_ptr, pid, LOCAL, POOLS, STEAL)
    while tile < num_tiles:
        pid_m = tile // num_pid_n
        pid_n = tile % num_pid_n
        rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            inner = start + tl.arange(0, BLOCK_K)
            a_mask = (rows[:, None] < M) & (inner[None, :] < K)
            b_mask = (inner[:, None] < K) & (cols[None, :] < N)
            a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
            b = tl.load(b_ptr + inner[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
            acc = tl.dot(a, b, acc)
        c_mask = (rows[:, None] < M) & (cols[None, :] < N)
        tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty), mask=c_mask)
        tile = claim(counter_ptr, pid, LOCAL, POOLS, STEAL)
