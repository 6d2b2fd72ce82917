"""The Triton documentation's matrix multiplication, written anew: grouped order inside the kernel, wrapped rows."""

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """C = A B, tiles numbered in groups of GROUP_M rows."""
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group = pid // num_pid_in_group
    first_pid_m = group * GROUP_M
    group_rows = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_rows)
    pid_n = (pid % num_pid_in_group) // group_rows
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c = acc.to(tl.float16)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * rows[:, None] + stride_cn * cols[None, :]
    tl.store(c_ptrs, c, mask=(rows[:, None] < M) & (cols[None, :] < N))


kernel = Kernel(
    matmul,
    sizes={"M": 300, "N": 200, "K": 100, "BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP_M": 4},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"),
        "b_ptr": Array(shape=(s.K, s.N), dtype="fp16"),
        "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
        "M": s.M,
        "N": s.N,
        "K": s.K,
        "stride_am": s.K,
        "stride_ak": 1,
        "stride_bk": s.N,
        "stride_bn": 1,
        "stride_cm": s.N,
        "stride_cn": 1,
    },
    constexprs=lambda s: {name: s[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")},
    grid=lambda s: (triton.cdiv(s.M, s.BLOCK_M) * triton.cdiv(s.N, s.BLOCK_N),),
    tiles=lambda s: (triton.cdiv(s.M, s.BLOCK_M), triton.cdiv(s.N, s.BLOCK_N)),
    num_warps=8,
    flops=lambda s: 2.0 * s.M * s.N * s.K,
)
