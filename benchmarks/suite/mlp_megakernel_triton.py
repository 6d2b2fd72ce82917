"""Triton source of the suite's megakernel: two GEMMs of an MLP as tiles of one queue, or of a queue an XCD.

A tile of the second GEMM waits for the flags of its row of H, which the tiles of the first set. Source: claims as in
ROCm/tritonBLAS PR 64, a queue an XCD as in Fleet (arXiv 2604.15379), flags as in Stream-K; written anew.
"""

import triton
import triton.language as tl


@triton.jit
def claim(counter_ptr, pid, LOCAL: tl.constexpr, POOLS: tl.constexpr):
    """Next tile of the program's queue; where that is empty, of the tiles from LOCAL on, which are for all."""
    pool = pid % POOLS
    tile = tl.atomic_add(counter_ptr + pool, 1) * POOLS + pool
    if tile >= LOCAL:
        tile = LOCAL + tl.atomic_add(counter_ptr + POOLS, 1)
    return tile


@triton.jit
def product(a_ptr, b_ptr, rows, cols, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """One tile of A B for row-major A (M x K), B (K x N), in fp32."""
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    return acc


@triton.jit
def mlp_megakernel(
    x_ptr,
    w1_ptr,
    h_ptr,
    w2_ptr,
    y_ptr,
    done_ptr,
    counter_ptr,
    M,
    K,
    H,
    N,
    LOCAL: tl.constexpr,
    POOLS: tl.constexpr,
    FLAGS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """H = max(X W1, 0), Y = H W2 for row-major X (M x K), W1 (K x H), W2 (H x N), Y (M x N).

    ``counter_ptr`` holds POOLS + 1 zeros, ``done_ptr`` a zero for each tile of H; FLAGS is a power of two, at least the
    tiles of a row of H.
    """
    pid = tl.program_id(0)
    num_pid_h = tl.cdiv(H, BLOCK_N)
    num_pid_n = num_pid_h + tl.cdiv(N, BLOCK_N)
    num_tiles = tl.cdiv(M, BLOCK_M) * num_pid_n
    tile = claim(counter_ptr, pid, LOCAL, POOLS)
    while tile < num_tiles:
        pid_m = tile // num_pid_n
        pid_n = tile % num_pid_n
        rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        if pid_n < num_pid_h:
            cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
            acc = product(x_ptr, w1_ptr, rows, cols, M, H, K, BLOCK_M, BLOCK_N, BLOCK_K)
            h_mask = (rows[:, None] < M) & (cols[None, :] < H)
            h = tl.maximum(acc, 0.0).to(h_ptr.dtype.element_ty)
            # written through, since who reads it may run behind another L2
            tl.store(h_ptr + rows[:, None] * H + cols[None, :], h, mask=h_mask, cache_modifier=".wt")
            tl.debug_barrier()
            tl.store(done_ptr + pid_m * num_pid_h + pid_n, 1, cache_modifier=".wt")
        else:
            flags = tl.arange(0, FLAGS)
            at = done_ptr + pid_m * num_pid_h + flags
            some = flags < num_pid_h
            while tl.min(tl.load(at, mask=some, other=1, cache_modifier=".cv", volatile=True)) == 0:
                pass
            cols = (pid_n - num_pid_h) * BLOCK_N + tl.arange(0, BLOCK_N)
            acc = product(h_ptr, w2_ptr, rows, cols, M, N, H, BLOCK_M, BLOCK_N, BLOCK_K)
            y_mask = (rows[:, None] < M) & (cols[None, :] < N)
            tl.store(y_ptr + rows[:, None] * N + cols[None, :], acc.to(y_ptr.dtype.element_ty), mask=y_mask)
        tile = claim(counter_ptr, pid, LOCAL, POOLS)
