"""C = A B^T with B of shape (N, K), as every linear layer has it, its tile spelled in two ways that compile alike."""

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def linear(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, AS_ROWS: tl.constexpr):
    """One tile of C; B is loaded as rows of N and transposed, or as rows of K."""
    num_pid_n = tl.cdiv(N, BLOCK)
    rows = tl.program_id(0) // num_pid_n * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(0) % num_pid_n * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        ks = k + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
        if AS_ROWS:
            b = tl.load(b_ptr + cols[:, None] * K + ks, mask=(cols[:, None] < N) & (ks[None, :] < K), other=0.0).T
        else:
            b = tl.load(b_ptr + ks[:, None] + cols * K, mask=(ks[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.float16), mask=mask)


as_rows, as_columns = (
    Kernel(
        linear,
        sizes={"M": 200, "N": 160, "K": 224},
        arguments=lambda s: {
            "a_ptr": Array(shape=(s.M, s.K), dtype="fp16"),
            "b_ptr": Array(shape=(s.N, s.K), dtype="fp16"),
            "c_ptr": Array(shape=(s.M, s.N), dtype="fp16", role="out"),
            **s,
        },
        constexprs={"BLOCK": 64, "AS_ROWS": by_rows},
        grid=lambda s: (triton.cdiv(s.M, 64) * triton.cdiv(s.N, 64),),
    )
    for by_rows in (True, False)
)
