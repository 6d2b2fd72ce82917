"""GEMM and attention of `nvidia_kernels` with a clock in their loop: 33 times a workgroup, the time is stored.

Needs Triton on an NVIDIA GPU; sizes are whole numbers of tiles, and steps a multiple of 32.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer, smid

POINTS = 33


@triton.jit
def drift_gemm(
    order, at, sm, a, b, c, M, N, K, EVERY: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """C = A B, with the time of every ``EVERY`` th step."""
    pid = tl.program_id(0)
    tl.store(sm + pid, smid())
    tile = tl.load(order + pid)
    rows = (tile // (N // BN)) * BM + tl.arange(0, BM)
    cols = (tile % (N // BN)) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + rows[:, None].to(tl.int64) * K + inner[None, :]
    right = b + inner[:, None].to(tl.int64) * N + cols[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(K // BK):
        tl.store(at + pid * 33 + step // EVERY, globaltimer(), mask=step % EVERY == 0)
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * N
    tl.store(c + rows[:, None].to(tl.int64) * N + cols[None, :], total.to(tl.float16))
    tl.store(at + pid * 33 + 32, globaltimer())


@triton.jit
def drift_attention(
    order,
    at,
    sm,
    q,
    k,
    v,
    o,
    S,
    SCALE: tl.constexpr,
    D: tl.constexpr,
    EVERY: tl.constexpr,
    BQ: tl.constexpr,
    BK: tl.constexpr,
):
    """Forward attention of one query block, with the time of every ``EVERY`` th step."""
    pid = tl.program_id(0)
    tl.store(sm + pid, smid())
    tile = tl.load(order + pid)
    head = (tile // (S // BQ)).to(tl.int64) * S * D
    queries = (tile % (S // BQ)) * BQ + tl.arange(0, BQ)
    keys = tl.arange(0, BK)
    depth = tl.arange(0, D)
    query = tl.load(q + head + queries[:, None] * D + depth[None, :])
    highest = tl.full((BQ,), float("-inf"), tl.float32)
    weight = tl.zeros((BQ,), tl.float32)
    total = tl.zeros((BQ, D), tl.float32)
    for step in range(S // BK):
        tl.store(at + pid * 33 + step // EVERY, globaltimer(), mask=step % EVERY == 0)
        key = tl.load(k + head + (step * BK + keys)[None, :] * D + depth[:, None])
        score = tl.dot(query, key) * SCALE
        top = tl.maximum(highest, tl.max(score, 1))
        part = tl.exp(score - top[:, None])
        fade = tl.exp(highest - top)
        value = tl.load(v + head + (step * BK + keys)[:, None] * D + depth[None, :])
        total = tl.dot(part.to(tl.float16), value, total * fade[:, None])
        weight = weight * fade + tl.sum(part, 1)
        highest = top
    tl.store(o + head + queries[:, None] * D + depth[None, :], (total / weight[:, None]).to(tl.float16))
    tl.store(at + pid * 33 + 32, globaltimer())
