"""Sums of rows by block pointers, carried through a loop and a helper, and by pointers with a mask."""

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def step(p, acc, BK: tl.constexpr):
    acc += tl.sum(tl.load(p, boundary_check=(0, 1), padding_option="zero").to(tl.float32), 1)
    p = tl.advance(p, (0, BK))
    return p, acc


@triton.jit
def rows(x, y, t, M, K, sm, BM: tl.constexpr, BK: tl.constexpr, TR: tl.constexpr):
    pid = tl.program_id(0)
    if TR:
        p = tl.make_block_ptr(t, (M, K), (1, M), (pid * BM, 0), (BM, BK), (0, 1))
    else:
        p = tl.make_block_ptr(
            base=x, shape=(M, K), strides=(sm, 1), offsets=(pid * BM, 0), block_shape=(BM, BK), order=(1, 0)
        )
    acc = tl.zeros((BM,), tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        p, acc = step(p, acc, BK)
    q = tl.make_block_ptr(y, (M,), (1,), (pid * BM,), (BM,), (0,))
    tl.store(q, acc.to(q.dtype.element_ty), boundary_check=(0,))


@triton.jit
def plain(x, y, t, M, K, sm, BM: tl.constexpr, BK: tl.constexpr, TR: tl.constexpr):
    pid = tl.program_id(0)
    r = pid * BM + tl.arange(0, BM)
    acc = tl.zeros((BM,), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        c = k * BK + tl.arange(0, BK)
        m = (r[:, None] < M) & (c[None, :] < K)
        if TR:
            v = tl.load(t + r[:, None] + c[None, :] * M, mask=m, other=0.0)
        else:
            v = tl.load(x + r[:, None] * sm + c[None, :], mask=m, other=0.0)
        acc += tl.sum(v.to(tl.float32), 1)
    tl.store(y + r, acc.to(tl.float16), mask=r < M)


def _declared(function, is_transposed):
    return Kernel(
        function,
        sizes={"M": 300, "K": 200},
        arguments=lambda s: {
            "x": Array(shape=(s.M, s.K), dtype="fp16"),
            "y": Array(shape=(s.M,), dtype="fp16", role="out"),
            "t": Array(shape=(s.K, s.M), dtype="fp16"),
            "M": s.M,
            "K": s.K,
            "sm": s.K,
        },
        constexprs={"BM": 32, "BK": 64, "TR": is_transposed},
        grid=lambda s: (-(-s.M // 32),),
    )


by_blocks, by_mask = _declared(rows, False), _declared(plain, False)
transposed, transposed_by_mask = _declared(rows, True), _declared(plain, True)
