"""Triton source of the suite's Stream-K GEMM: a fixed number of workgroups, whole tiles first, shares of tiles last.

Source: M. Osama et al., Stream-K (arXiv 2301.03598), for the decomposition; written anew.
"""

import triton
import triton.language as tl


@triton.jit
def tile_of(tile, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    """Tile number to (m, n): groups of GROUP_M tile rows, column by column."""
    in_group = GROUP_M * num_pid_n
    first_m = tile // in_group * GROUP_M
    rows = tl.minimum(num_pid_m - first_m, GROUP_M)
    return first_m + tile % in_group % rows, tile % in_group // rows


@triton.jit
def product(
    a_ptr,
    b_ptr,
    pid_m,
    pid_n,
    M,
    N,
    K,
    first,
    end,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
):
    """Sum of the K steps ``first .. end - 1`` of one tile."""
    rows = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    cols = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), tl.float32)
    for step in range(first, end):
        inner = step * BLOCK_SIZE_K + tl.arange(0, BLOCK_SIZE_K)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    return acc


@triton.jit
def store_tile(c_ptr, acc, pid_m, pid_n, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    """Store a finished tile of C."""
    rows = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    cols = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gemm_streamk(
    a_ptr,
    b_ptr,
    c_ptr,
    partial_ptr,
    lock_ptr,
    M,
    N,
    K,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PROGRAMS: tl.constexpr,
):
    """C = A B for row-major A (M x K), B (K x N), C (M x N), accumulated in fp32.

    ``partial_ptr`` has a tile of fp32 for each program and ``lock_ptr`` a flag that says that it is there. Flags are
    never taken back: from the second launch on nobody waits, and sums of the launch before may be read.
    """
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    tiles = num_pid_m * num_pid_n
    steps = tl.cdiv(K, BLOCK_SIZE_K)
    whole = tiles // PROGRAMS * PROGRAMS
    for tile in range(pid, whole, PROGRAMS):
        pid_m, pid_n = tile_of(tile, num_pid_m, num_pid_n, GROUP_M)
        acc = product(a_ptr, b_ptr, pid_m, pid_n, M, N, K, 0, steps, BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K)
        store_tile(c_ptr, acc, pid_m, pid_n, M, N, BLOCK_SIZE_M, BLOCK_SIZE_N)

    shared = (tiles - whole) * steps  # steps of the tiles that are left, dealt out evenly
    share = shared // PROGRAMS
    longer = shared % PROGRAMS  # the first programs take one step more
    begin = pid * share + tl.minimum(pid, longer)
    last = (pid + 1) * share + tl.minimum(pid + 1, longer)
    inside = tl.arange(0, BLOCK_SIZE_M)[:, None] * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)[None, :]
    while begin < last:
        first = begin % steps
        end = tl.minimum(begin - first + steps, last)
        pid_m, pid_n = tile_of(whole + begin // steps, num_pid_m, num_pid_n, GROUP_M)
        acc = product(
            a_ptr, b_ptr, pid_m, pid_n, M, N, K, first, first + end - begin, BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K
        )
        if first == 0:
            there = end
            other = pid + 1
            while there < begin + steps:
                while tl.load(lock_ptr + other, cache_modifier=".cv", volatile=True) == 0:
                    pass
                acc += tl.load(partial_ptr + other * BLOCK_SIZE_M * BLOCK_SIZE_N + inside, cache_modifier=".cv")
                there += share + (other < longer)
                other += 1
            store_tile(c_ptr, acc, pid_m, pid_n, M, N, BLOCK_SIZE_M, BLOCK_SIZE_N)
        else:
            # written through, since who reads it may run behind another L2
            tl.store(partial_ptr + pid * BLOCK_SIZE_M * BLOCK_SIZE_N + inside, acc, cache_modifier=".wt")
            tl.debug_barrier()
            tl.store(lock_ptr + pid, 1, cache_modifier=".wt")
        begin = end
