"""Fused attention after the Triton documentation's tutorial, written anew: causal, 2-D grid, trips by program id."""

import triton
import triton.language as tl

from swizzle_sim.capture import Array, Kernel


@triton.jit
def _inner(
    acc, l_i, m_i, q, k_ptr, v_ptr, base, offs_m, lo, hi, N, D: tl.constexpr, BLOCK_N: tl.constexpr, EDGE: tl.constexpr
):
    """Blocks lo .. hi of keys and values; EDGE masks what comes after a row, or is beyond the end."""
    offs_d = tl.arange(0, D)
    for start in range(lo, hi, BLOCK_N):
        offs_n = tl.multiple_of(start, BLOCK_N) + tl.arange(0, BLOCK_N)
        inside = offs_n[:, None] < N
        k = tl.load(k_ptr + base + offs_n[:, None] * D + offs_d[None, :], mask=inside, other=0.0)
        qk = tl.dot(q, k.T)
        if EDGE:
            qk = tl.where(offs_m[:, None] >= offs_n[None, :], qk, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + base + offs_n[:, None] * D + offs_d[None, :], mask=inside, other=0.0)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(tl.float16), v, acc)
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, N, stride_h, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One block of queries of one head a program."""
    start_m = tl.program_id(0)
    head = tl.program_id(1)
    base = head.to(tl.int64) * stride_h
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    mask = offs_m[:, None] < N
    q = tl.load(q_ptr + base + offs_m[:, None] * D + offs_d[None, :], mask=mask, other=0.0)
    q = (q * scale).to(tl.float16)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    edge = start_m * BLOCK_M
    last = tl.minimum((start_m + 1) * BLOCK_M, N)
    acc, l_i, m_i = _inner(acc, l_i, m_i, q, k_ptr, v_ptr, base, offs_m, 0, edge, N, D, BLOCK_N, False)
    acc, l_i, m_i = _inner(acc, l_i, m_i, q, k_ptr, v_ptr, base, offs_m, edge, last, N, D, BLOCK_N, True)
    tl.store(o_ptr + base + offs_m[:, None] * D + offs_d[None, :], (acc / l_i[:, None]).to(tl.float16), mask=mask)


kernel = Kernel(
    attention,
    sizes={"N": 330, "HEADS": 3, "D": 64, "BLOCK_M": 64, "BLOCK_N": 32},
    arguments=lambda s: {
        **{f"{name}_ptr": Array(shape=(s.HEADS, s.N, s.D), dtype="fp16") for name in "qkv"},
        "o_ptr": Array(shape=(s.HEADS, s.N, s.D), dtype="fp16", role="out"),
        "N": s.N,
        "stride_h": s.N * s.D,
        "scale": 0.125,
    },
    constexprs=lambda s: {"D": s.D, "BLOCK_M": s.BLOCK_M, "BLOCK_N": s.BLOCK_N},
    grid=lambda s: (triton.cdiv(s.N, s.BLOCK_M), s.HEADS),
    flops=lambda s: 2.0 * s.HEADS * s.N * s.N * s.D,
)
