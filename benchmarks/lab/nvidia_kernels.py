"""Triton kernels that lab's `counters` counts: GEMM, attention, transpose, stencil, layer norm, under any order.

Which tile a workgroup computes comes from a table, four bytes a workgroup, so that one compiled kernel serves every
order, permutations and others. Tiles are numbered row-major. Needs Triton; sizes are whole numbers of tiles.

With a ``clock``, (n_workgroups, 34) int64, GEMM and attention note the time of every ``EVERY`` th of 32 ``EVERY`` steps
[ns], that of their end, and the SM that they run on.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer, smid


@triton.jit
def fidelity_gemm(
    order, a, b, c, M, N, K, clock, EVERY: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """C = A B, all row-major fp16."""
    if clock is not None:
        clock += tl.program_id(0) * 34
        tl.store(clock + 33, smid().to(tl.int64))
    tile = tl.load(order + tl.program_id(0))
    rows = (tile // (N // BN)) * BM + tl.arange(0, BM)
    cols = (tile % (N // BN)) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + rows[:, None].to(tl.int64) * K + inner[None, :]
    right = b + inner[:, None].to(tl.int64) * N + cols[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(K // BK):
        if clock is not None:
            tl.store(clock + step // EVERY, globaltimer(), mask=step % EVERY == 0)
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * N
    tl.store(c + rows[:, None].to(tl.int64) * N + cols[None, :], total.to(tl.float16))
    if clock is not None:
        tl.store(clock + 32, globaltimer())


@triton.jit
def fidelity_transpose(order, x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Y is X transposed, fp32."""
    tile = tl.load(order + tl.program_id(0))
    rows = ((tile // (N // BN)) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = ((tile % (N // BN)) * BN + tl.arange(0, BN)).to(tl.int64)
    values = tl.load(x + rows[:, None] * N + cols[None, :])
    tl.store(y + cols[:, None] * M + rows[None, :], tl.trans(values))


@triton.jit
def fidelity_stencil(order, x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Mean of an item and its four neighbours, fp32; the border is copied."""
    tile = tl.load(order + tl.program_id(0))
    rows = ((tile // (N // BN)) * BM + tl.arange(0, BM)).to(tl.int64)[:, None]
    cols = ((tile % (N // BN)) * BN + tl.arange(0, BN)).to(tl.int64)[None, :]
    here = rows * N + cols
    inside = (rows > 0) & (rows + 1 < M) & (cols > 0) & (cols + 1 < N)
    own = tl.load(x + here)
    total = own + tl.load(x + here - N, mask=inside, other=0.0) + tl.load(x + here + N, mask=inside, other=0.0)
    total += tl.load(x + here - 1, mask=inside, other=0.0) + tl.load(x + here + 1, mask=inside, other=0.0)
    tl.store(y + here, tl.where(inside, total * 0.2, own))


@triton.jit
def fidelity_layernorm(order, x, w, bias, y, N, EPS: tl.constexpr, BN: tl.constexpr):
    """Layer norm of a row, fp16, read twice."""
    row = tl.load(order + tl.program_id(0)).to(tl.int64) * N
    at = tl.arange(0, BN)
    total = tl.zeros((BN,), tl.float32)
    square = tl.zeros((BN,), tl.float32)
    for first in range(0, N, BN):
        value = tl.load(x + row + first + at).to(tl.float32)
        total += value
        square += value * value
    mean = tl.sum(total) / N
    scale = 1.0 / tl.sqrt(tl.sum(square) / N - mean * mean + EPS)
    for first in range(0, N, BN):
        value = tl.load(x + row + first + at).to(tl.float32)
        result = (value - mean) * scale * tl.load(w + first + at) + tl.load(bias + first + at)
        tl.store(y + row + first + at, result.to(tl.float16))


@triton.jit
def fidelity_attention(
    order,
    q,
    k,
    v,
    o,
    S,
    clock,
    EVERY: tl.constexpr,
    SCALE: tl.constexpr,
    D: tl.constexpr,
    BQ: tl.constexpr,
    BK: tl.constexpr,
):
    """Forward attention of one query block, fp16; tile rows are heads, columns query blocks."""
    if clock is not None:
        clock += tl.program_id(0) * 34
        tl.store(clock + 33, smid().to(tl.int64))
    tile = tl.load(order + tl.program_id(0))
    head = (tile // (S // BQ)).to(tl.int64) * S * D
    queries = (tile % (S // BQ)) * BQ + tl.arange(0, BQ)
    keys = tl.arange(0, BK)
    depth = tl.arange(0, D)
    query = tl.load(q + head + queries[:, None] * D + depth[None, :])
    highest = tl.full((BQ,), float("-inf"), tl.float32)
    weight = tl.zeros((BQ,), tl.float32)
    total = tl.zeros((BQ, D), tl.float32)
    for step in range(S // BK):
        first = step * BK
        if clock is not None:
            tl.store(clock + step // EVERY, globaltimer(), mask=step % EVERY == 0)
        key = tl.load(k + head + (first + keys)[None, :] * D + depth[:, None])
        score = tl.dot(query, key) * SCALE
        top = tl.maximum(highest, tl.max(score, 1))
        part = tl.exp(score - top[:, None])
        fade = tl.exp(highest - top)
        value = tl.load(v + head + (first + keys)[:, None] * D + depth[None, :])
        total = tl.dot(part.to(tl.float16), value, total * fade[:, None])
        weight = weight * fade + tl.sum(part, 1)
        highest = top
    tl.store(o + head + queries[:, None] * D + depth[None, :], (total / weight[:, None]).to(tl.float16))
    if clock is not None:
        tl.store(clock + 32, globaltimer())
