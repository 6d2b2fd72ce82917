"""C = A B^T with B of shape (N, K), as every linear layer has it, its tile spelled in two ways that compile alike."""

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def linear(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_bn,
    stride_bk,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    AS_ROWS: tl.constexpr,
):
    """One tile of C; B is loaded as (BLOCK_N, BLOCK_K) and transposed, or as (BLOCK_K, BLOCK_N)."""
    num_pid_n = tl.cdiv(N, BLOCK_N)
    rows = tl.program_id(0) // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
        if AS_ROWS:
            b = tl.load(
                b_ptr + cols[:, None] * stride_bn + ks[None, :] * stride_bk,
                mask=(cols[:, None] < N) & (ks[None, :] < K),
                other=0.0,
            ).T
        else:
            b = tl.load(
                b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn,
                mask=(ks[:, None] < K) & (cols[None, :] < N),
                other=0.0,
            )
        acc = tl.dot(a, b, acc)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.float16), mask=mask)


def declared(as_rows):
    """The declaration of one spelling."""
    return Kernel(
        linear,
        sizes={"M": 200, "N": 160, "K": 224, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64},
        arguments=lambda s: {
            "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"),
            "b_ptr": Array(shape=(s.N, s.K), dtype="fp16"),
            "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
            "M": s.M,
            "N": s.N,
            "K": s.K,
            "stride_bn": s.K,
            "stride_bk": 1,
        },
        constexprs=lambda s: {**{name: s[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")}, "AS_ROWS": as_rows},
        grid=lambda s: (triton.cdiv(s.M, s.BLOCK_M) * triton.cdiv(s.N, s.BLOCK_N),),
        tiles=lambda s: (triton.cdiv(s.M, s.BLOCK_M), triton.cdiv(s.N, s.BLOCK_N)),
        num_warps=4,
        flops=lambda s: 2.0 * s.M * s.N * s.K,
    )


as_rows, as_columns = declared(True), declared(False)
